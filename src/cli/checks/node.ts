/** What an observation of the node says: lists, filesystems, what blocks, who owns its containers, who says that pods are gone. */

import type { Prepared } from "../../loop/pass/prepare.ts";
import { assertNever } from "../../model/assert.ts";
import type { ImageLimits, Limits } from "../../model/limits.ts";
import type { ImagePlan, PodSourceState } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Filesystem, Snapshot } from "../../model/snapshot.ts";
import { ownership } from "../../policy/container/ownership.ts";
import { sandboxImageReason, sandboxNames } from "../../policy/image/sandbox-image.ts";
import { counted, humanBytes, usedPercent } from "../../report/bytes.ts";
import { logsErrorWords } from "../../report/container-reasons.ts";
import { imageBlock } from "../../report/image-reasons.ts";
import type { DoctorCheck } from "../../report/table/doctor.ts";
import { failed, ok, warning } from "./check.ts";
import { runtimeCheck } from "./runtime-faults.ts";

export function nodeChecks(prepared: Prepared, limits: Limits): readonly DoctorCheck[] {
  const { snapshot, plan } = prepared;
  return [
    runtimeCheck(snapshot.runtime),
    listCheck(snapshot),
    ...snapshot.filesystems.map((filesystem) => filesystemCheck(filesystem, limits.images)),
    ...(plan.images === null ? [] : blockChecks(plan.images)),
    ...(plan.containers === null ? [] : [podSourceCheck(plan.containers.podSource)]),
    ownerCheck(snapshot, limits),
    sandboxImageCheck(snapshot, limits.images),
    logCheck(snapshot),
  ];
}

const listCheck = ({ images, containers, sandboxes }: Snapshot): DoctorCheck =>
  ok(
    "lists",
    `the runtime lists ${counted(images.length, "image")}, ${counted(containers.length, "container")} and ${counted(sandboxes.length, "sandbox", "sandboxes")}`,
  );

function filesystemCheck(filesystem: Filesystem, limits: ImageLimits): DoctorCheck {
  const { roles, path, mountpoint, capacityBytes, availableBytes } = filesystem;
  const name = `filesystem-${roles.join("-")}`;
  const where = path === mountpoint ? path : `${path} (mounted at ${mountpoint})`;
  if (capacityBytes === 0n)
    return failed(
      name,
      `${where} reports a capacity of 0 bytes, so its usage is unknown and nothing is removed for it`,
      "check what is mounted there",
    );
  const used = usedPercent(capacityBytes, availableBytes);
  const figures = `${where} is ${used}% full, ${humanBytes(availableBytes)} of ${humanBytes(capacityBytes)} available`;
  if (!roles.includes("imagefs") || used < limits.highPercent) return ok(name, figures);
  return warning(
    name,
    `${figures}, at or over the high threshold of ${limits.highPercent}%`,
    "crigc plan shows what would be removed; crigc gc removes it now",
  );
}

/** What keeps images from being removed now. */
function blockChecks(plan: ImagePlan): readonly DoctorCheck[] {
  const checks = plan.blocks.flatMap(blockCheck);
  return checks.length === 0 && plan.blocks.length === 0
    ? [ok("blocks", "nothing blocks removal")]
    : checks;
}

function blockCheck(block: ImageBlock): readonly DoctorCheck[] {
  const name = `block-${block.kind}`;
  switch (block.kind) {
    // The keep rules have a check of their own.
    case "keep-rules-invalid":
      return [];
    case "on-hold":
    case "futile":
      return [warning(name, imageBlock.text(block), null)];
    case "boot-grace":
    case "pod-starting":
      return [ok(name, imageBlock.text(block))];
    case "usage-unknown":
    case "pods-unknown":
    case "pods-incomplete":
    case "invalid-capacity":
      return [
        failed(
          name,
          imageBlock.text(block),
          "check the runtime; nothing is removed until this is known",
        ),
      ];
    default:
      return assertNever(block);
  }
}

function podSourceCheck(state: PodSourceState): DoctorCheck {
  const name = "pod-source";
  switch (state.kind) {
    case "ready":
      return ok(name, `${state.source} detects deleted pods`);
    case "none":
      return warning(
        name,
        `no pod source: dead containers are removed only by their limits (${state.why})`,
        "set --pod-source",
      );
    case "not-ready":
      return failed(
        name,
        `${state.source} is not ready, so no container, sandbox or log is removed: ${state.why}`,
        "see whether --pod-source and --root-dir are those of this node's kubelet",
      );
    default:
      return assertNever(state);
  }
}

function ownerCheck(snapshot: Snapshot, limits: Limits): DoctorCheck {
  const owners = ownership(snapshot, "none");
  const containers = snapshot.containers.filter((it) => owners.ofContainer(it).foreign).length;
  const sandboxes = snapshot.sandboxes.filter((it) => owners.ofSandbox(it).foreign).length;
  const all = snapshot.containers.length + snapshot.sandboxes.length;
  const foreign = containers + sandboxes;
  const words = `${counted(containers, "container")} and ${counted(sandboxes, "sandbox", "sandboxes")}`;
  if (foreign === 0) return ok("owners", "all containers and sandboxes were created by Kubernetes");
  if (limits.containers.collectForeign)
    return ok("owners", `${words} not created by Kubernetes; they are collected, too`);
  if (foreign < all) return ok("owners", `${words} not created by Kubernetes; they are left alone`);
  return warning(
    "owners",
    `everything on the node is foreign: none of its ${words} was created by Kubernetes, so only images are collected`,
    "set --collect-foreign to collect dead ones",
  );
}

function sandboxImageCheck(snapshot: Snapshot, limits: ImageLimits): DoctorCheck {
  const names = sandboxNames(snapshot, limits.infraImages);
  const kept = snapshot.images.filter((image) => sandboxImageReason(names, image) !== null);
  const pinned = snapshot.images.filter((image) => image.pinned).length;
  if (kept.length > 0)
    return ok("sandbox-image", `${counted(kept.length, "image")} kept as sandbox image`);
  if (pinned > 0)
    return ok("sandbox-image", `none known by name; the runtime pins ${counted(pinned, "image")}`);
  if (snapshot.sandboxes.length === 0)
    return ok("sandbox-image", "none, and no sandbox needs one yet");
  return warning(
    "sandbox-image",
    "no image is known as the sandbox image, and the runtime pins none: it could be removed, and no pod starts without it",
    "set --pod-infra-container-image, or add a keep rule",
  );
}

function logCheck({ logs }: Snapshot): DoctorCheck {
  if (logs === null) return ok("pod-logs", "no pod log directory, so nothing to clean");
  if (logs.kind === "failed")
    return failed("pod-logs", logsErrorWords(logs.message), "check that path");
  const strays =
    logs.strays.length === 0
      ? ""
      : `; ${counted(logs.strays.length, "other entry", "other entries")} left alone`;
  return ok(
    "pod-logs",
    `${logs.podLogsDirectory} has the logs of ${counted(logs.podLogs.length, "pod")}${strays}`,
  );
}
