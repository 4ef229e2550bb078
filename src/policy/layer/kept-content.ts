/**
 * Finds removals that freed far less than their layers suggest: another namespace or lease of the runtime keeps the content.
 */
import type { AuditFinding, PastRemoval } from "../../model/audit.ts";
import { repositoryOfNames } from "../image/reference.ts";
import { isWholeGain } from "./gain.ts";

/** The missing bytes must exceed what other programs do to a disk meanwhile. */
const MISSING_MIN_BYTES = 1_048_576n;

/** One finding per repository, the most missing bytes first. */
export function keptContent(removals: readonly PastRemoval[]): readonly AuditFinding[] {
  const found = new Map<string, Extract<AuditFinding, { readonly kind: "content-kept" }>>();
  for (const { names, measuredBytes, freesAtLeastBytes, settled, at } of removals) {
    const repository = repositoryOfNames(names);
    if (repository === null || measuredBytes === null || settled === null) continue;
    if (freesAtLeastBytes === null || !isWholeGain(settled)) continue;
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
