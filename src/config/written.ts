/** What operators wrote in files, variables and flags: valid by itself, before anything of the node is merged in. */
import { ConfigError } from "../model/errors.ts";
import { type FieldName, fieldNames, fieldOf, namedInFull } from "./fields.ts";
import type { Merged } from "./source/merge.ts";
import { validated } from "./validate.ts";
import { shownText } from "./value/printed.ts";

export interface Written {
  readonly merged: Merged;
  /** Every file read, in merge order. */
  readonly files: readonly string[];
  readonly warnings: readonly string[];
  /** Fields whose new value waits for the next start. */
  readonly waiting: readonly FieldName[];
  /** Whether it has the values of a running agent, which has looked at the node itself. */
  readonly isOfAgent: boolean;
}

const BOUND_BY_CONNECTION: readonly FieldName[] = [
  "containerRuntimeEndpoint",
  "imageServiceEndpoint",
  "runtimeRequestTimeout",
];

/** Bound at the start: directories, addresses and modes. */
const BOUND_BY_START: readonly FieldName[] = [
  "podLogsDir",
  "containerLogsDir",
  "rootDir",
  "stateDir",
  "runDir",
  "metricsBindAddress",
  "compat",
  "dryRun",
];

/** `next` for a process that runs with `inForce`; throws `ConfigError` if it contradicts a bound value. */
export function boundTo(inForce: Written, next: Written, isConnected: boolean): Written {
  const bound = [...(isConnected ? BOUND_BY_CONNECTION : []), ...BOUND_BY_START];
  const waiting = differences(inForce, next).filter((name) => bound.includes(name));
  const stay = Object.fromEntries(waiting.map((name) => [name, inForce.merged[name]]));
  const merged = { ...next.merged, ...stay };
  const { issues } = validated(merged);
  if (issues.length === 0) return { ...next, merged, waiting };
  const why = `${waiting.map(namedInFull).join(", ")} would take effect only after a restart: restart the agent`;
  throw new ConfigError(issues.map((issue) => ({ ...issue, message: `${issue.message}; ${why}` })));
}

/** Fields with different values. */
export const differences = (one: Written, other: Written): readonly FieldName[] =>
  fieldNames.filter((name) => textOf(one, name) !== textOf(other, name));

export const textOf = ({ merged }: Written, name: FieldName): string =>
  shownText(fieldOf(name).type, merged[name].value);
