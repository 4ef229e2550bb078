/** Updates the metrics with a pass. */

import { type ImageItem, outcomeItems, type RemovalResult } from "../../model/outcome.ts";
import type { Pass } from "../../model/pass.ts";
import type { ImagePlan } from "../../model/plan.ts";
import { type Duration, instantToMs, since, toMs } from "../../model/time.ts";
import type { MetricRegistry } from "./registry.ts";

export type PassOutcome =
  | "done"
  | "idle"
  /** Ended before its target was reached. */
  | "short"
  | "futile"
  | "blocked"
  | "stopped"
  | "dry-run"
  | "failed";

export function countPass(metrics: MetricRegistry, pass: Pass): void {
  const outcome = passOutcome(pass);
  const endedAt = instantToMs(pass.endedAt) / 1000;
  metrics.add("crigc_passes_total", 1, [pass.kind, outcome]);
  metrics.observe("crigc_pass_duration_seconds", inSeconds(since(pass.endedAt, pass.startedAt)), [
    pass.kind,
  ]);
  for (const step of pass.steps)
    metrics.observe("crigc_step_duration_seconds", inSeconds(step.took), [step.name]);
  metrics.set("crigc_pass_last_attempt_timestamp_seconds", endedAt, [pass.kind]);
  if (outcome !== "failed")
    metrics.set("crigc_pass_last_success_timestamp_seconds", endedAt, [pass.kind]);
  if (pass.plan.images !== null) countPlan(metrics, pass.plan.images);
  countImages(metrics, pass);
  countContainerItems(metrics, pass);
}

export function passOutcome(pass: Pass): PassOutcome {
  const ends = [pass.images?.end, pass.containers?.end];
  const { containers } = pass.plan;
  const unread = containers?.logsError ?? null;
  const unready = containers?.podSource.kind === "not-ready";
  if (pass.error !== null || unread !== null || unready || ends.includes("observation-failed"))
    return "failed";
  if (pass.dryRun) return "dry-run";
  if (ends.includes("stopped")) return "stopped";
  if (ends.includes("blocked") || pass.images?.end === "invalid-capacity") return "blocked";
  if (pass.images?.end === "futile" || pass.images?.end === "nothing-freed") return "futile";
  if (isShort(pass)) return "short";
  return pass.images?.end === "nothing-to-do" && triedNothing(pass) ? "idle" : "done";
}

const isShort = (pass: Pass): boolean =>
  pass.images?.end === "removal-limit" ||
  pass.images?.end === "settle-exhausted" ||
  pass.images?.end === "age-removal-errors" ||
  (pass.images?.end === "candidates-exhausted" &&
    pass.plan.images !== null &&
    pass.plan.images.targets.some((target) => target.kind !== "everything"));

const triedNothing = ({ containers }: Pass): boolean =>
  containers === null || outcomeItems(containers).length === 0;

/** Counted only when the metrics are read, because judging every image is expensive. */
export function countKept(metrics: MetricRegistry, plan: ImagePlan): void {
  const kept = new Map<string, number>();
  for (const { reason } of plan.kept) kept.set(reason.kind, (kept.get(reason.kind) ?? 0) + 1);
  metrics.replace(
    "crigc_images_kept",
    Array.from(kept, ([reason, count]) => [[reason], count] as const),
  );
}

function countPlan(metrics: MetricRegistry, plan: ImagePlan): void {
  metrics.replace(
    "crigc_image_removal_blocked",
    plan.blocks.map((block) => [[block.kind], 1] as const),
  );
  metrics.set("crigc_image_candidates", plan.candidates.length);
  const unknown = plan.blocks.some(({ kind }) =>
    ["usage-unknown", "pods-unknown", "pods-incomplete"].includes(kind),
  );
  metrics.set("crigc_in_use_unknown", unknown ? 1 : 0);
}

function countImages(metrics: MetricRegistry, pass: Pass): void {
  const outcome = pass.images;
  if (outcome === null) return;
  const futile = outcome.end === "futile" || outcome.end === "nothing-freed";
  metrics.set("crigc_futile", futile ? 1 : 0);
  metrics.add("crigc_futile_passes_total", futile ? 1 : 0);
  metrics.add("crigc_image_wanted_bytes_total", outcome.wantedBytes ?? 0n);
  metrics.add("crigc_image_freed_reported_bytes_total", outcome.reportedFreedBytes);
  metrics.add("crigc_image_freed_measured_bytes_total", outcome.measuredFreedBytes);
  for (const item of outcome.items) countImage(metrics, item);
}

function countImage(metrics: MetricRegistry, item: ImageItem): void {
  const { result, trigger } = item;
  if (result.kind === "skipped") {
    metrics.add("crigc_removal_skipped_total", 1, ["image", result.reason.kind]);
    return;
  }
  metrics.observe("crigc_removal_duration_seconds", inSeconds(item.took), ["image"]);
  if (result.kind === "failed")
    metrics.add("crigc_removal_failures_total", 1, ["image", result.code]);
  if (result.kind === "ghost") metrics.add("crigc_ghost_images_total", 1);
  if (result.kind === "removed") {
    const reason = trigger.kind === "pressure" ? trigger.signal : trigger.kind;
    metrics.add("crigc_removed_total", 1, ["image", trigger.kind, reason]);
  }
}

function countContainerItems(metrics: MetricRegistry, pass: Pass): void {
  const outcome = pass.containers;
  if (outcome === null) return;
  metrics.add("crigc_container_freed_measured_bytes_total", outcome.measuredFreedBytes ?? 0n);
  const count = (
    kind: string,
    it: { readonly reason: { readonly kind: string }; readonly result: RemovalResult },
  ): void => {
    const { result, reason } = it;
    if (result.kind === "failed")
      metrics.add("crigc_removal_failures_total", 1, [kind, result.code]);
    else if (result.kind === "skipped")
      metrics.add("crigc_removal_skipped_total", 1, [kind, "changed"]);
    else metrics.add("crigc_removed_total", 1, [kind, pass.purpose.kind, reason.kind]);
  };
  for (const it of outcome.containers) {
    count("container", it);
    metrics.add("crigc_log_removed_bytes_total", it.logBytes);
  }
  for (const it of outcome.sandboxes) count("sandbox", it);
  for (const it of outcome.logs) {
    count(it.kind, it);
    metrics.add("crigc_log_removed_bytes_total", it.bytes);
  }
}

const inSeconds = (span: Duration): number => toMs(span) / 1000;
