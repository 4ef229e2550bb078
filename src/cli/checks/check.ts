/** The results of a doctor check, and the table of checks. */

import type { DoctorCheck } from "../../report/doctor.ts";

export type Verdict = Omit<DoctorCheck, "name">;

/** By name of the check, in display order; `null`: nothing to report. */
export type Verdicts = readonly (readonly [name: string, verdict: Verdict | null])[];

export const ok = (message: string): Verdict => ({ result: "ok", message, advice: null });

/** `advice`: what to do; `null`: the message says it, or nothing can be done. */
export const warning = (message: string, advice: string | null): Verdict => ({
  result: "warning",
  message,
  advice,
});

export const failed = (message: string, advice: string | null): Verdict => ({
  result: "failed",
  message,
  advice,
});

/** `because`: the check that it depends on. */
export const skipped = (because: string): Verdict => ({
  result: "skipped",
  message: `not checked: ${because}`,
  advice: null,
});
