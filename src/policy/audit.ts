/** Finds what seems leaked or inconsistent on a node. Decides no removal. */

import type { ImageId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Plan } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import type { AuditFinding, PastRemoval } from "../model/reports.ts";
import type { Image, Snapshot } from "../model/snapshot.ts";
import { ownership } from "./container/ownership.ts";
import { indexImages, listedImages } from "./image/image-index.ts";
import { isLoaded } from "./image/protect.ts";
import { isUnderWay } from "./image/pulls.ts";
import { isImportName, repositoryOf, repositoryOfNames } from "./image/reference.ts";
import { type Usage, usageOf } from "./image/usage.ts";
import { isBaselineRule } from "./keep/baseline.ts";
import { compileKeepRules, matchKeepRules } from "./keep/keep.ts";
import { forestOf } from "./layer/origins.ts";
import { breakdownOf, BYTES_PER_REPORTED_BYTE, reportedBytesOf } from "./space/disk.ts";
import { gainOf, isWholeGain } from "./space/freed.ts";

export function auditFindings({
  snapshot,
  ledger,
  plan,
  removals,
}: {
  readonly snapshot: Snapshot;
  readonly ledger: Ledger;
  readonly plan: Plan;
  /** Removed images, as far as the history goes. */
  readonly removals: readonly PastRemoval[];
}): readonly AuditFinding[] {
  const usage = usageOf(snapshot);
  const kept = new Set(
    (plan.images?.kept ?? [])
      .filter(({ reason }) => !NOT_NOW.has(reason.kind))
      .map(({ image }) => image.id),
  );
  return [
    ...snapshot.images.flatMap((image) => ghostFindings(image, ledger)),
    ...snapshot.images.flatMap((image) => nameFindings(image, usage, kept)),
    ...diskFindings(snapshot, ledger),
    ...keptContent(removals),
    ...pullFindings(snapshot, ledger),
    ...useFindings(snapshot, usage),
    ...ownerFindings(snapshot),
    ...logFindings(snapshot),
  ];
}

function logFindings({ logs }: Snapshot): readonly AuditFinding[] {
  if (logs === null) return [];
  if (logs.kind === "failed") return [{ kind: "unread-logs", message: logs.message }];
  const directory = logs.podLogsDirectory;
  return logs.strays.map((entry) => ({ kind: "stray-log-entry", directory, entry }));
}

/** Temporary reasons: what they keep is not protected. */
const NOT_NOW: ReadonlySet<ImageKeepReason["kind"]> = new Set(["no-trigger", "ghost"]);

function ghostFindings(image: Image, ledger: Ledger): readonly AuditFinding[] {
  const ghost = ledger.images.get(image.id)?.ghost ?? null;
  if (ghost === null) return [];
  return [{ kind: "ghost-image", image, since: ghost.since, attempts: ghost.attempts }];
}

function nameFindings(
  image: Image,
  usage: Usage,
  kept: ReadonlySet<ImageId>,
): readonly AuditFinding[] {
  const inUse = usage.users.has(image.id);
  const removable = !inUse && !kept.has(image.id);
  const digests = image.repoDigests.filter(isName);
  if (image.repoTags.some(isName)) return [];
  if (digests.length === 0) return [{ kind: "nameless-image", image, inUse, removable }];
  if (digests.every((text) => isImportName(repositoryOf(text) ?? "")))
    return [{ kind: "made-up-name", image, inUse, removable }];
  return inUse || image.pinned ? [] : [{ kind: "untagged-image", image, removable }];
}

/** `<none>:<none>` is not a name. */
const isName = (text: string): boolean => text !== "" && !text.startsWith("<none>");

/** Smaller shares of a filesystem are not worth a search. */
const UNEXPLAINED_PERCENT = 10n;
/** Figures lag behind, and an empty store has files of its own. */
const STORE_SLACK_BYTES = 256n << 20n;

function diskFindings(snapshot: Snapshot, ledger: Ledger): readonly AuditFinding[] {
  const mostPerMille = gainOf(ledger, snapshot.runtime).most;
  const layers = { forest: forestOf(snapshot.images, ledger), mostPerMille };
  const listed = reportedBytesOf(snapshot.images);
  return snapshot.filesystems.flatMap((filesystem): readonly AuditFinding[] => {
    const { path, capacityBytes, imageUsedBytes, roles } = filesystem;
    if (!roles.includes("imagefs") && !roles.includes("containerfs")) return [];
    const findings: AuditFinding[] = [];
    const breakdown = breakdownOf(filesystem, { ...snapshot, layers });
    if (breakdown.otherBytes * 100n > capacityBytes * UNEXPLAINED_PERCENT)
      findings.push({ kind: "unexplained-bytes", filesystem: path, breakdown });
    const usedBytes = roles.includes("imagefs") ? imageUsedBytes : null;
    if (usedBytes !== null && usedBytes > BYTES_PER_REPORTED_BYTE * listed + STORE_SLACK_BYTES)
      findings.push({
        kind: "unexplained-store-bytes",
        filesystem: path,
        usedBytes,
        reportedBytes: listed,
        images: snapshot.images.length,
      });
    return findings;
  });
}

/** Uses that could not be read, containers without a known image, and images in use that the list lacks. */
function useFindings(snapshot: Snapshot, usage: Usage): readonly AuditFinding[] {
  const users = [...usage.users.values()].flat();
  const resolved = new Set(users.flatMap((it) => (it.kind === "container" ? [it.id] : [])));
  const listed = new Set(snapshot.images.map(({ id }) => id));
  return [
    ...usage.unknown.map((it): AuditFinding => ({ kind: "unknown-use", ...it })),
    ...snapshot.containers
      .filter(({ id }) => !resolved.has(id))
      .filter(({ id }) => !usage.unknown.some(({ subject }) => subject.includes(id)))
      .map((container): AuditFinding => ({
        kind: "unresolved-reference",
        reference: container.imageName || container.imageRef || container.imageId,
        message: `container ${container.name} (${container.state}) of pod ${container.podName || "none"} names it, but the runtime has no such image`,
      })),
    ...[...usage.users.keys()]
      .filter((id) => !listed.has(id))
      .map((id): AuditFinding => ({
        kind: "unresolved-reference",
        reference: id,
        message: "it is in use, but missing from the runtime's list of images",
      })),
  ];
}

/** Pull records that make the kubelet ask the registry, now or for an image that comes back. */
export function pullFindings(snapshot: Snapshot, ledger: Ledger): readonly AuditFinding[] {
  const { pulls, images } = snapshot;
  if (pulls.kind === "failed") return [];
  const content = new Map(pulls.records?.map((record) => [record.file, record]));
  const pathOf = (file: string): string => `${pulls.directory}/pulled/${file}`;
  const rules = snapshot.keep.rules.filter(isBaselineRule);
  const baseline = compileKeepRules(rules);
  const index = indexImages(images);
  const isPreloaded = (image: Image): boolean =>
    isLoaded(image) || ledger.images.get(image.id)?.pull === "no-record";
  return [
    ...images.flatMap((image) =>
      (pulls.recorded.get(image.id) ?? []).flatMap((file): readonly AuditFinding[] => {
        const record = content.get(file);
        const path = pathOf(file);
        if (record === undefined || record.isForAllPods) return [];
        if (record.imageRef === null) return [{ kind: "broken-pull-record", image, path }];
        const isNamed = matchKeepRules(baseline, image) !== null;
        if (!isNamed && !isPreloaded(image)) return [];
        const because = isNamed ? "baseline" : "loaded";
        return [{ kind: "pull-needs-credentials", image, path, because }];
      }),
    ),
    ...pulls.unlisted.map((file): AuditFinding => {
      const { imageRef = null, names = [] } = content.get(file) ?? {};
      return { kind: "stale-pull-record", path: pathOf(file), imageRef, names };
    }),
    ...[...ledger.pullIntents].flatMap(([name, intent]): readonly AuditFinding[] => {
      const isOver = intent.endedWatched !== null || isUnderWay(intent, ledger.watched);
      if (isOver || listedImages(index, name).length > 0) return [];
      return [{ kind: "stale-pull-intent", name, directory: `${pulls.directory}/pulling` }];
    }),
  ];
}

function ownerFindings(snapshot: Snapshot): readonly AuditFinding[] {
  const owners = ownership(snapshot, "none");
  const sandboxes = new Set(snapshot.sandboxes.map(({ id }) => id));
  return [
    ...snapshot.sandboxes
      .filter((sandbox) => owners.ofSandbox(sandbox).foreign)
      .map((sandbox): AuditFinding => ({ kind: "foreign-sandbox", sandbox })),
    ...snapshot.containers
      .filter((container) => owners.ofContainer(container).foreign)
      .map((container): AuditFinding => ({ kind: "foreign-container", container })),
    ...snapshot.containers
      .filter((container) => !sandboxes.has(container.sandboxId))
      .map((container): AuditFinding => ({ kind: "orphan-container", container })),
  ];
}

/** The missing bytes must exceed what other programs write in the same time. */
const MISSING_MIN_BYTES = 1_048_576n;

/**
 * Removals that freed far less than their layers suggest: another namespace or lease of the runtime keeps the content.
 * One finding per repository, the most missing bytes first.
 */
function keptContent(removals: readonly PastRemoval[]): readonly AuditFinding[] {
  const found = new Map<string, Extract<AuditFinding, { readonly kind: "content-kept" }>>();
  for (const { names, measuredBytes, freesAtLeastBytes, settled, at } of removals) {
    const repository = repositoryOfNames(names);
    if (repository === null || measuredBytes === null || freesAtLeastBytes === null) continue;
    if (settled === null || !isWholeGain(settled)) continue;
    if (!isFarLess(measuredBytes, freesAtLeastBytes)) continue;
    const before = found.get(repository);
    found.set(repository, {
      kind: "content-kept",
      repository,
      removals: (before?.removals ?? 0) + 1,
      expectedAtLeastBytes: (before?.expectedAtLeastBytes ?? 0n) + freesAtLeastBytes,
      measuredBytes: (before?.measuredBytes ?? 0n) + measuredBytes,
      lastAt: before === undefined || at > before.lastAt ? at : before.lastAt,
    });
  }
  const missing = (it: { readonly expectedAtLeastBytes: bigint; readonly measuredBytes: bigint }) =>
    it.expectedAtLeastBytes - it.measuredBytes;
  return [...found.values()].toSorted((one, other) => Number(missing(other) - missing(one)));
}

/** Files take whole blocks, and the runtime's own database grows: three quarters of the lower bound are enough. */
const isFarLess = (measuredBytes: bigint, atLeastBytes: bigint): boolean =>
  measuredBytes * 4n < atLeastBytes * 3n && atLeastBytes - measuredBytes >= MISSING_MIN_BYTES;
