/** Values that a running process takes only at its start. */
import { ConfigError } from "../../model/errors.ts";
import type { Bound, Config } from "../config.ts";
import { type FieldName, fieldOf, namedInFull } from "../fields.ts";
import { type Validated, validated } from "../validate.ts";
import { shownText } from "../value/printed.ts";
import type { Merged } from "./merge.ts";

export interface Running {
  /** The configuration in force of a process that reloads; bound values stay as they are in it. */
  readonly running?: Config | null;
  /** Whether that process is connected; before, the sockets are not bound. Default true. */
  readonly connected?: boolean;
}

const BOUND_BY_CONNECTION = [
  "containerRuntimeEndpoint",
  "imageServiceEndpoint",
  "runtimeRequestTimeout",
] as const satisfies readonly FieldName[];

/** Bound at the start: directories, addresses and modes. */
const BOUND_BY_START = [
  "podLogsDir",
  "containerLogsDir",
  "rootDir",
  "stateDir",
  "runDir",
  "metricsBindAddress",
  "compat",
  "dryRun",
] as const satisfies readonly FieldName[];

/** `checked`: the result of validating `written` alone. */
export function boundToProcess(
  checked: Validated,
  written: Merged,
  { running = null, connected = true }: Running,
): Bound {
  if (running === null) return { merged: written, validated: checked, waiting: [] };
  const fields = [...(connected ? BOUND_BY_CONNECTION : []), ...BOUND_BY_START];
  const textOf = (name: FieldName, all: Merged): string =>
    shownText(fieldOf(name).type, all[name].value);
  const waiting = fields.filter((name) => textOf(name, written) !== textOf(name, running.values));
  const stay = Object.fromEntries(waiting.map((name) => [name, running.values[name]]));
  if (waiting.length === 0) return { merged: written, validated: checked, waiting };
  const together = { ...written, ...stay };
  return { merged: together, validated: validatedWith(together, waiting), waiting };
}

/** The new configuration is valid by itself, but may contradict bound values. */
function validatedWith(together: Merged, waiting: readonly FieldName[]): Validated {
  const checked = validated(together);
  if (checked.issues.length === 0) return checked;
  const why = `${waiting.map(namedInFull).join(", ")} would take effect only after a restart: restart the agent`;
  throw new ConfigError(
    checked.issues.map((issue) => ({ ...issue, message: `${issue.message}; ${why}` })),
  );
}
