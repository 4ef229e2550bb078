/** The exit codes, and the exit code of each error. */
import { ConfigError, HostError, RuntimeError, StoreError } from "../model/errors.ts";

export const exit = {
  done: 0,
  internal: 1,
  usage: 2,
  runtime: 3,
  shortfall: 4,
  partial: 5,
  busy: 6,
  held: 7,
  unknown: 8,
} as const;

/** The meaning of each code, for help and documentation. */
export const exitTable: Readonly<Record<number, string>> = {
  [exit.done]: "done, or nothing to do",
  [exit.internal]: "internal error, or the result could not be written",
  [exit.usage]:
    "invalid usage, configuration or keep rules; several runtimes answer and none was specified",
  [exit.runtime]:
    "runtime unreachable or too old, a list or stat failed, or capacity 0; log directories unreadable (the rest was done)",
  [exit.shortfall]:
    "too little could be freed, or futile (`futile`, `nothing-freed`); images still too young, in the grace period after a boot, or a container being created",
  [exit.partial]: "some removals failed, the rest was done",
  [exit.busy]: "a second run, or gc waited longer than --runtime-request-timeout for another pass",
  [exit.held]: "on hold",
  [exit.unknown]:
    "unknown REF (explain, rm) or PATTERN (keep test, keep remove), no agent (status), a failed check (doctor)",
};

/** `null`: a bug, printed with its stack. */
export function exitOf(thrown: unknown): number | null {
  if (thrown instanceof ConfigError) return exit.usage;
  if (thrown instanceof RuntimeError)
    return thrown.kind === "ambiguous" ? exit.usage : exit.runtime;
  if (thrown instanceof HostError) return HOST_EXITS[thrown.kind] ?? exit.internal;
  return thrown instanceof StoreError ? exit.internal : null;
}

const HOST_EXITS: Readonly<Partial<Record<HostError["kind"], number>>> = {
  stat: exit.runtime,
  // An unreadable directory is a failed list too.
  read: exit.runtime,
  // Gave up waiting for another pass. A lock that cannot be taken at all is another error.
  lock: exit.busy,
};
