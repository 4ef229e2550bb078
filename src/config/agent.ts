/** The effective configuration of a running agent, from its status, as a layer between a command's files and its flags. */
import * as v from "valibot";

import type { ConfigIssue } from "../model/errors.ts";
import { type FieldName, fieldNames, fieldOf, isFieldName } from "./fields.ts";
import { readEntry } from "./source/file-layer.ts";
import type { Merged } from "./source/merge.ts";
import { type Layer, type Place, type Setting, settingOf, valueIssue } from "./source/setting.ts";
import { shownText } from "./value/printed.ts";
import { isOptional } from "./value/value.ts";

const Value = v.object({ value: v.unknown(), source: v.string() });

const Answer = v.object({
  values: v.record(v.string(), Value),
  runtime: v.optional(v.nullable(v.object({ endpoint: v.optional(v.string()) })), null),
  configurationError: v.optional(v.nullable(v.string()), null),
  rootDirectoryId: v.optional(v.nullable(v.string()), null),
});

/** What a command takes from the agent's `Status`; agents of other versions leave fields out. */
export type AgentAnswer = v.InferOutput<typeof Answer>;
export type AgentValues = AgentAnswer["values"];

/** The values of an agent that a command adopts. */
export interface RunningAgent {
  readonly values: AgentValues;
  /** It runs in a container: its files are not this host's. */
  readonly isContained: boolean;
}

/** `null`: not an agent's status. */
export function parseAgentAnswer(json: unknown): AgentAnswer | null {
  const parsed = v.safeParse(Answer, json);
  return parsed.success ? parsed.output : null;
}

/** Settings of a process itself: its log, its files, whether it is a dry run. */
const OWN: readonly FieldName[] = [
  "dryRun",
  "logging.format",
  "logging.verbosity",
  "config",
  "configDir",
  "runDir",
];

/** Credentials and hooks; directories are the node's own, mounted at their own paths. */
const FILES = fieldNames.filter((name) => {
  const { type } = fieldOf(name);
  return type.kind === "path" && type.of === "file";
});

/** What a command does not adopt. Without its credentials, a container's `kubelet-api` is of no use either. */
function ownOf({ values, isContained }: RunningAgent): readonly FieldName[] {
  if (!isContained) return OWN;
  const usesApi = values["podSource"]?.value === "kubelet-api";
  return [...OWN, ...FILES, ...(usesApi ? (["podSource", "kubeletEndpoint"] as const) : [])];
}

/** The agent's values replace files and variables; with issues for values that are invalid here. */
export function withAgent(weaker: Layer, agent: RunningAgent): Layer | ConfigIssue {
  const own = ownOf(agent);
  const settings: Setting[] = [];
  for (const [name, { value, source }] of Object.entries(agent.values)) {
    if (!isFieldName(name) || own.includes(name) || source === "default") continue;
    const place = { kind: "agent", at: `running agent (its ${source})` } as const;
    const read = settingIn(name, place, value);
    if ("message" in read) return read;
    settings.push(read);
  }
  return {
    ...weaker,
    settings: [...weaker.settings.filter(({ name }) => own.includes(name)), ...settings],
  };
}

/** In a file null is a reset; here it is the agent's value: none. */
function settingIn(name: FieldName, place: Place, value: unknown): Setting | ConfigIssue {
  if (value !== null) return readEntry(name, place, value);
  if (isOptional(fieldOf(name).type)) return settingOf(name, place, null);
  return valueIssue({ name, place, text: "null", message: "expected a value" });
}

/** One warning per flag that differs from the running agent, and one for what was not adopted. */
export function agentNotes(written: Merged, agent: RunningAgent): readonly string[] {
  const own = ownOf(agent);
  const others = Object.entries(agent.values).flatMap(([name, { value, source }]) =>
    isFieldName(name) ? [{ name, value, isSet: source !== "default" }] : [],
  );
  const left = others.filter(
    ({ name, isSet }) => isSet && own.includes(name) && !OWN.includes(name),
  );
  const differing = others.flatMap(({ name, value }) => {
    if (own.includes(name) || written[name].source !== "flag") return [];
    const { type, flag } = fieldOf(name);
    const theirs = settingIn(name, { kind: "agent", at: "" }, value);
    if ("message" in theirs || theirs.change.kind !== "set") return [];
    const [ours, its] = [written[name].value, theirs.change.value].map((it) => shownText(type, it));
    return ours === its
      ? []
      : [`--${flag} ${ours} differs from the running agent, which has ${its}`];
  });
  if (left.length === 0) return differing;
  const names = left.map(({ name }) => name).join(", ");
  return [
    ...differing,
    `the running agent is in a container, whose files are not this host's; this command uses its own ${names}`,
  ];
}
