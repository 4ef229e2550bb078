/** The effective configuration of a running agent, from its status, as a source between a command's files and its flags. */
import * as v from "valibot";

import { KUBELET_IMPLIES } from "./config.ts";
import { type FieldName, fieldNames, fieldOf, isFieldName, type Values } from "./fields.ts";
import { type AgentValue, type Settings, shown } from "./settings.ts";
import { parseValue, printed, shownText } from "./values.ts";

const Answer = v.object({
  values: v.record(v.string(), v.object({ value: v.unknown(), source: v.string() })),
  runtime: v.optional(v.nullable(v.object({ endpoint: v.optional(v.string()) })), null),
  rootDirectoryId: v.optional(v.nullable(v.string()), null),
  bootId: v.optional(v.string()),
  uptimeMs: v.optional(v.number()),
  pressure: v.optional(v.array(v.object({ signal: v.string(), due: v.boolean() })), []),
});

/** What a command takes from the agent's `Status`; agents of other versions leave fields out. */
export type AgentAnswer = v.InferOutput<typeof Answer>;

/** The settings that apply to a command while an agent runs. */
export interface RunningAgent extends Pick<AgentAnswer, "values" | "pressure"> {
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
const FILES = fieldNames.filter((name) => fieldOf(name).type.pathOf === "file");

/** What a command does not adopt. Without its credentials, a container's kubelet endpoint is of no use either. */
export function ownNames({ isContained }: RunningAgent): readonly FieldName[] {
  if (!isContained) return OWN;
  return [...OWN, ...FILES, "kubeletEndpoint"];
}

/** What the agent's operator set, and a command adopts; not what only follows from its `compat`. */
export function valuesSet(agent: RunningAgent): readonly AgentValue[] {
  const own = ownNames(agent);
  const isKubelets = agent.values["compat"]?.value === "kubelet";
  return knownValues(agent).filter(
    ({ name, value, source }) =>
      source !== "default" && !own.includes(name) && !(isKubelets && isImplied(name, value)),
  );
}

/** A command may have another `compat`, with which these have their own defaults. */
function isImplied(name: FieldName, value: unknown): boolean {
  const implied: Partial<Values> = KUBELET_IMPLIES;
  const one = implied[name];
  return one !== undefined && printed(fieldOf(name).type, one) === value;
}

const knownValues = ({ values }: RunningAgent): readonly AgentValue[] =>
  Object.entries(values).flatMap(([name, it]) => (isFieldName(name) ? [{ ...it, name }] : []));

/** One warning per flag that differs from the running agent, and one for what was not adopted. */
export function agentNotes(settings: Settings, agent: RunningAgent): string[] {
  const own = ownNames(agent);
  const differing = knownValues(agent).flatMap(({ name, value }) => {
    if (own.includes(name) || settings.sources[name].kind !== "flag") return [];
    const { type, flag } = fieldOf(name);
    const theirs = parseValue(type, value);
    if (theirs.kind === "fault") return [];
    const [ours, its] = [shown(settings, name), shownText(type, theirs.value)];
    return ours === its
      ? []
      : [`--${flag} ${ours} differs from the running agent, which has ${its}`];
  });
  const left = knownValues(agent)
    .filter(({ name, source }) => source !== "default" && own.includes(name) && !OWN.includes(name))
    .map(({ name }) => name);
  if (left.length === 0) return differing;
  return [
    ...differing,
    `the running agent is in a container, whose files are not this host's; this command uses its own ${left.join(", ")}`,
  ];
}
