/** The summary of a finished pass in one sentence, for the log and for `status`. */

import { isGone, outcomeItems } from "../model/outcome.ts";
import type { Pass } from "../model/pass.ts";
import { since } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { counted, humanBytes, humanDuration } from "./bytes.ts";
import { podSourceWords } from "./container-reasons.ts";
import { containerPassWords, failureWords, imagePassWords, passTitle } from "./pass-words.ts";
import { present } from "./terminal.ts";

/** One sentence: `Image GC: 3 images removed, 1.2 GiB freed, … (2.1s)`; `when`: after the title. */
export function passSummary(pass: Pass, when = ""): string {
  // Both halves may end for the same reason, as in a dry run.
  const parts = [...new Set([...containerParts(pass), ...imageParts(pass)])];
  const took = humanDuration(since(pass.endedAt, pass.startedAt));
  const nothing = pass.error === null ? "nothing requested" : `failed: ${pass.error}`;
  return `${capitalised(passTitle(pass.kind))}${when}: ${parts.join("; ") || nothing} (${took})`;
}

function imageParts(pass: Pass): readonly string[] {
  const outcome = pass.images;
  if (outcome === null) return [];
  const end = imagePassWords(pass);
  const removed = outcome.items.filter((it) => it.result.kind === "removed").length;
  const failures = failureWords(outcome.items);
  if (removed === 0) return [present([failures, end]).join(", ")];
  // Freed bytes are measured; the runtime's figures are added if they differ.
  const figures =
    outcome.measuredFreedBytes === 0n
      ? ` (${humanBytes(outcome.reportedFreedBytes)} reported)`
      : "";
  const freed = `${humanBytes(outcome.measuredFreedBytes)} freed${figures}`;
  return [present([`${counted(removed, "image")} removed`, freed, failures, end]).join(", ")];
}

function containerParts(pass: Pass): readonly string[] {
  const outcome = pass.containers;
  if (outcome === null) return [];
  const gone = [
    ...some(outcome.containers.filter(isGone), "container", "containers"),
    ...some(outcome.sandboxes.filter(isGone), "sandbox", "sandboxes"),
    ...some(outcome.logs.filter(isGone), "log entry", "log entries"),
  ];
  const tried = outcomeItems(outcome);
  const done = present([gone.length > 0 && `${gone.join(", ")} removed`, failureWords(tried)]);
  if (done.length > 0) return [done.join(", ")];
  const podSource = pass.plan.containers?.podSource;
  if (podSource?.kind === "not-ready") return [podSourceWords(podSource)];
  if (outcome.end === "done" && tried.length === 0) return ["no container to remove"];
  return [containerPassWords(pass)];
}

const some = ({ length }: readonly unknown[], one: string, many: string): readonly string[] =>
  length === 0 ? [] : [counted(length, one, many)];
