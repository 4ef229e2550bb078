/** Groups of commands that a flag applies to. */

/** Commands that decide or show what is removed. */
export const DECIDING = ["run", "gc", "rm", "plan", "explain", "report"] as const;
export const RUNTIME = [
  ...DECIDING,
  "images",
  "audit",
  "snapshot",
  "keep list",
  "keep test",
  "keep baseline",
  "doctor",
] as const;
/** Commands that read the keep rules. */
export const KEEPING = [...RUNTIME, "keep check", "keep add", "keep remove"] as const;
/** Commands that read pod logs and the pod source. */
export const PODS = [...DECIDING, "audit", "snapshot", "doctor"] as const;
export const REMOVING = ["run", "gc", "rm"] as const;
export const WITH_STATE = [...RUNTIME, "status", "history", "hold", "release"] as const;
export const CONFIGURED = [...WITH_STATE, "keep check", "config"] as const;
