/** Finds what seems leaked or inconsistent on a node. Decides no removal. */

import type { AuditFinding, PastRemoval } from "../model/audit.ts";
import type { ImageId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { Plan } from "../model/plan.ts";
import type { ImageKeepReason } from "../model/reason.ts";
import type { Image, Snapshot } from "../model/snapshot.ts";
import { ownership } from "./container/ownership.ts";
import { isImportName, repositoryOf } from "./image/reference.ts";
import { type Usage, usageOf } from "./image/usage.ts";
import { gainOf } from "./layer/gain.ts";
import { keptContent } from "./layer/kept-content.ts";
import { forestOf } from "./layer/origins.ts";
import { breakdownOf, BYTES_PER_REPORTED_BYTE, reportedBytes } from "./space/futility.ts";

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
  return snapshot.filesystems
    .filter(({ roles }) => roles.includes("imagefs") || roles.includes("containerfs"))
    .flatMap((filesystem): readonly AuditFinding[] => {
      const breakdown = breakdownOf(filesystem, { ...snapshot, layers });
      const { path, capacityBytes, imageUsedBytes, roles } = filesystem;
      const unexplained = breakdown.otherBytes * 100n > capacityBytes * UNEXPLAINED_PERCENT;
      const listed = reportedBytes(snapshot.images);
      const most = BYTES_PER_REPORTED_BYTE * listed;
      const overfull =
        roles.includes("imagefs") &&
        imageUsedBytes !== null &&
        imageUsedBytes > most + STORE_SLACK_BYTES;
      return [
        ...(unexplained
          ? [{ kind: "unexplained-bytes" as const, filesystem: path, breakdown }]
          : []),
        ...(overfull
          ? [
              {
                kind: "unexplained-store-bytes" as const,
                filesystem: path,
                usedBytes: imageUsedBytes,
                reportedBytes: listed,
                images: snapshot.images.length,
              },
            ]
          : []),
      ];
    });
}

/** Containers without a known image, and uses that could not be read. */
function useFindings(snapshot: Snapshot, usage: Usage): readonly AuditFinding[] {
  const users = [...usage.users.values()].flat();
  const resolved = new Set(users.flatMap((it) => (it.kind === "container" ? [it.id] : [])));
  const unknown = usage.unknown.map((it): AuditFinding => ({
    kind: "unknown-use",
    subject: it.subject,
    message: it.message,
  }));
  const unresolved = snapshot.containers
    .filter(({ id }) => !resolved.has(id))
    .filter(({ id }) => !usage.unknown.some(({ subject }) => subject.includes(id)))
    .map((container): AuditFinding => ({
      kind: "unresolved-reference",
      reference: container.imageName || container.imageRef || container.imageId,
      message: `container ${container.name} (${container.state}) of pod ${container.podName || "none"} names it, but the runtime has no such image`,
    }));
  return [...unknown, ...unresolved, ...unlistedUses(snapshot, usage)];
}

/** An image that is in use but not listed: the runtime resolves its name, and its list omits it. */
function unlistedUses(snapshot: Snapshot, usage: Usage): readonly AuditFinding[] {
  const listed = new Set<ImageId>(snapshot.images.map(({ id }) => id));
  return [...usage.users.keys()]
    .filter((id) => !listed.has(id))
    .map((id) => ({
      kind: "unresolved-reference",
      reference: id,
      message: "it is in use, but missing from the runtime's list of images",
    }));
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
