/** Whether the keep rules are valid, and whether each of them keeps something. */

import type { Image, KeepRules } from "../../model/snapshot.ts";
import { compileKeepRules, unmatchedKeepRules } from "../../policy/keep/keep.ts";
import { counted } from "../../report/bytes.ts";
import type { DoctorCheck } from "../../report/table/doctor.ts";
import { failed, ok, warning } from "./check.ts";

const NAME = "keep-rules";

/** `images`: `null` where the node could not be looked at. */
export function keepCheckOf(keep: KeepRules, images: readonly Image[] | null): DoctorCheck {
  const compiled = compileKeepRules(keep.rules);
  const problems = [...keep.problems, ...compiled.problems];
  const [first] = problems;
  if (first !== undefined) {
    const more = problems.length === 1 ? "" : `, and ${problems.length - 1} more`;
    return failed(
      NAME,
      `invalid, so no image is removed: ${first.source}: ${first.message}${more}`,
      "crigc keep check lists all errors",
    );
  }
  if (keep.rules.length === 0) return ok(NAME, "none");
  const idle = images === null ? [] : unmatchedKeepRules(compiled, images);
  const rules = counted(keep.rules.length, "valid rule");
  if (idle.length === 0) return ok(NAME, rules);
  return warning(
    NAME,
    `${rules}, ${idle.length} of which ${idle.length === 1 ? "matches" : "match"} nothing on this node`,
    "crigc keep list shows which; check their spelling",
  );
}
