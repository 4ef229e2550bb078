/** The results that a check of doctor may have, in short. */

import type { DoctorCheck } from "../../report/table/doctor.ts";

export const ok = (name: string, message: string): DoctorCheck => ({
  name,
  result: "ok",
  message,
  advice: null,
});

export const warning = (name: string, message: string, advice: string | null): DoctorCheck => ({
  name,
  result: "warning",
  message,
  advice,
});

export const failed = (name: string, message: string, advice: string | null): DoctorCheck => ({
  name,
  result: "failed",
  message,
  advice,
});

/** `because`: the check that it needs. */
export const skipped = (name: string, because: string): DoctorCheck => ({
  name,
  result: "skipped",
  message: `not checked: ${because}`,
  advice: null,
});
