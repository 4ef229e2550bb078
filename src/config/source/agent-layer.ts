/** The layer of a running agent: its effective configuration, as in its status. */
import type { ConfigIssue } from "../../model/errors.ts";
import { type FieldName, fieldOf, isFieldName } from "../fields.ts";
import { shownText } from "../value/printed.ts";
import { isOptional } from "../value/value.ts";
import { readEntry } from "./file-layer.ts";
import type { Merged } from "./merge.ts";
import { type Layer, type Place, type Setting, settingOf, valueIssue } from "./setting.ts";

/** By configuration-file name, as in `Status`. */
export type AgentValues = Readonly<
  Record<string, { readonly value: unknown; readonly source: string }>
>;

/** Settings of a process itself: its log, its files, whether it is a dry run. */
const OWN: readonly FieldName[] = [
  "dryRun",
  "logging.format",
  "logging.verbosity",
  "config",
  "configDir",
  "runDir",
];

/** The agent's values replace files and variables; with issues for values that are invalid here. */
export function withAgent(weaker: Layer, agent: AgentValues): Layer | ConfigIssue {
  const settings: Setting[] = [];
  for (const [name, { value, source }] of Object.entries(agent)) {
    if (!isFieldName(name) || OWN.includes(name) || source === "default") continue;
    const place = { kind: "agent", at: `running agent (its ${source})` } as const;
    const read = settingIn(name, place, value);
    if ("message" in read) return read;
    settings.push(read);
  }
  return {
    ...weaker,
    settings: [...weaker.settings.filter(({ name }) => OWN.includes(name)), ...settings],
  };
}

/** In a file null is a reset; here it is the agent's value: none. */
function settingIn(name: FieldName, place: Place, value: unknown): Setting | ConfigIssue {
  if (value !== null) return readEntry(name, place, value);
  if (isOptional(fieldOf(name).type)) return settingOf(name, place, null);
  return valueIssue({ name, place, text: "null", message: "expected a value" });
}

/** One warning per flag of this command line that differs from the running agent. */
export function agentNotes(written: Merged, agent: AgentValues): readonly string[] {
  return Object.entries(agent).flatMap(([name, { value }]) => {
    if (!isFieldName(name) || OWN.includes(name) || written[name].source !== "flag") return [];
    const { type, flag } = fieldOf(name);
    const theirs = settingIn(name, { kind: "agent", at: "" }, value);
    if ("message" in theirs || theirs.change.kind !== "set") return [];
    const [ours, its] = [written[name].value, theirs.change.value].map((it) => shownText(type, it));
    return ours === its
      ? []
      : [`--${flag} ${ours} differs from the running agent, which has ${its}`];
  });
}
