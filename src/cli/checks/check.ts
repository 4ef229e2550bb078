/** The results of a doctor check, and the table of checks. */

import type { DoctorCheck } from "../../report/doctor.ts";

export type Verdict = Omit<DoctorCheck, "name">;

/** By name of the check, in display order; `null`: nothing to report. */
export type Verdicts = readonly (readonly [name: string, verdict: Verdict | null])[];

/** `advice`: what to do; `null`: the message says it, or nothing can be done. */
const verdict =
  (result: Verdict["result"]) =>
  (message: string, advice: string | null = null): Verdict => ({ result, message, advice });

export const ok = verdict("ok");
export const warning = verdict("warning");
export const failed = verdict("failed");

/** `because`: the check that it depends on. */
export const skipped = (because: string): Verdict => verdict("skipped")(`not checked: ${because}`);
