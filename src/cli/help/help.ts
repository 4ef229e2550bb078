/** Help, generated from the tables: the overview, one command, all flags, and the manual page as roff. */

import {
  dashed,
  defaultWords,
  type Field,
  fieldGroups,
  type FieldName,
  fieldOf,
  placeholderOf,
  variablesOf,
} from "../../config/fields.ts";
import { quoted, suggestion } from "../../config/words.ts";
import { homepage } from "../../install/deploy.ts";
import { usageError } from "../../model/errors.ts";
import { capitalised } from "../../model/values.ts";
import { paint, type Screen, wrapped } from "../../report/terminal.ts";
import type { Build, Command, CommandOption, Operand } from "../command.ts";
import { exitTable } from "../exit.ts";
import { EXAMPLES } from "./examples.ts";

const WIDTH_DEFAULT = 80;
/** Longer lines are hard to read, even on a wide terminal. */
const WIDTH_MAX = 100;
const TEXT_COLUMN = 32;

/** `topic` is a command, the first word of several, `flags`, or "" for everything. */
export function helpOn(topic: string, commands: readonly Command[], on: Screen): string {
  const screen = { ...on, width: Math.min(on.width ?? WIDTH_DEFAULT, WIDTH_MAX) };
  return `${linesOn(topic, commands, screen).join("\n")}\n`;
}

function linesOn(topic: string, commands: readonly Command[], screen: Screen) {
  if (topic === "") return overview(commands, screen);
  if (topic === "flags")
    return [...wrapped(ABOUT_FLAGS, screen), ...flagSections(flagEntry, screen)];
  const command = commands.find(({ name }) => name === topic);
  if (command !== undefined)
    return [
      ...commandHelp(command, screen),
      "",
      ...wrapped("Other flags are accepted too; crigc help flags lists them.", screen),
    ];
  const family = commands.filter(({ name }) => name.startsWith(`${topic} `));
  if (family.length > 0)
    return [`Usage: crigc ${topic} COMMAND [FLAG...]`, "", ...commandList(family, screen)];
  const known = ["flags", ...commands.map(({ name }) => name)];
  const next = suggestion(topic, known) || "; use a command, flags or manual";
  throw usageError("crigc help", topic, `unknown help topic ${quoted(topic)}${next}`);
}

const ABOUT_FLAGS =
  "Every command accepts every flag and uses those that apply to it. Each flag has an environment variable (CRIGC_KEEP_PER_REPOSITORY for --keep-per-repository) and a field in configuration files (crigc config lists them). Flags override variables, which override drop-ins, which override the configuration file. Defaults are in brackets.";

const overview = (commands: readonly Command[], screen: Screen): readonly string[] => [
  "Usage: crigc COMMAND [FLAG...]",
  "",
  ...wrapped(
    "Garbage-collects unused images, dead containers, dead sandboxes and orphaned pod logs on this node.",
    screen,
  ),
  "",
  ...commandList(commands, screen),
  "",
  ...wrapped("Start with crigc doctor and crigc plan, which change nothing.", screen),
  ...wrapped("crigc COMMAND --help explains a command; crigc help flags lists all flags.", screen),
];

function commandList(commands: readonly Command[], screen: Screen): readonly string[] {
  const column = Math.max(...commands.map(({ name }) => name.length)) + 4;
  return commands.flatMap(({ name, summary }) => entryLines([name, summary], column, screen));
}

function commandHelp(command: Command, screen: Screen): readonly string[] {
  const { name, summary, doc, operands, options } = command;
  return [
    ...wrapped(`Usage: ${usageOf(command)}`, screen),
    "",
    ...wrapped(`${capitalised(summary)}. ${doc}`.trim(), screen),
    ...section(
      "Arguments",
      operands.map((it) => [it.name, it.help]),
      screen,
    ),
    ...section(
      "Options",
      options.map((it) => [optionUsage(it), it.help]),
      screen,
    ),
    ...section("Flags", mainFlags(command).map(flagEntry), screen),
    ...section(
      "Examples",
      EXAMPLES.filter(([line]) => line.startsWith(`crigc ${name}`)),
      screen,
    ),
  ];
}

/** By first words of commands, the most important first. */
const MAIN_FLAGS: Readonly<Record<string, readonly FieldName[]>> = {
  "run gc plan explain": [
    "imageGCHighThresholdPercent",
    "imageMaximumGCAge",
    "evictionHard",
    "keep",
  ],
  "rm images df report snapshot keep doctor": ["containerRuntimeEndpoint", "keepDir", "config"],
  "status history hold release config": ["config", "stateDir", "runDir"],
};

function mainFlags({ name, changes }: Command): readonly FieldName[] {
  const [first = ""] = name.split(" ");
  const own = Object.entries(MAIN_FLAGS).find(([names]) => names.split(" ").includes(first));
  return [...(changes ? ["dryRun" as const] : []), ...(own?.[1] ?? [])];
}

/** `crigc explain REF [-o table|json] [FLAG...]`. */
function usageOf({ name, operands, options }: Command): string {
  const optional = (word: string, isRequired = false): string => (isRequired ? word : `[${word}]`);
  return [
    "crigc",
    name,
    ...operands.map((it) => optional(operandUsage(it), it.required)),
    ...options.map(({ name: long, short = long, ...it }) =>
      optional(optionUsage({ ...it, name: short }), it.required),
    ),
    "[FLAG...]",
  ].join(" ");
}

/** `REF...`, `bash|zsh|fish`. */
export const operandUsage = ({ name, choices, repeated }: Operand): string =>
  `${choices?.join("|") ?? name}${repeated === true ? "..." : ""}`;

export const optionUsage = ({ name, placeholder }: CommandOption): string =>
  placeholder === null ? dashed(name) : `${dashed(name)} ${placeholder}`;

/** `--pod-source auto|kubelet-dir|cri|none`, `--keep-per-repository N`, `--dry-run`. */
export const flagUsage = (field: Field): string =>
  dashed(field.flag) + (field.type.kind === "boolean" ? "" : ` ${placeholderOf(field)}`);

const flagSections = (entryOf: (name: FieldName) => Entry, screen: Screen): readonly string[] =>
  fieldGroups.flatMap(([heading, names]) => section(heading, names.map(entryOf), screen));

function flagEntry(name: FieldName): Entry {
  const field = fieldOf(name);
  const also = (field.aliases ?? []).map((alias) => `; also ${dashed(alias)}`).join("");
  const words = defaultWords(field);
  // Omits what is obvious.
  const inBrackets = words === "none" || words === "false" ? "" : ` [${words}]`;
  return [flagUsage(field), `${field.help}${also}${inBrackets}`];
}

type Entry = readonly [left: string, text: string];

function section(title: string, entries: readonly Entry[], screen: Screen): readonly string[] {
  if (entries.length === 0) return [];
  const lines = entries.flatMap((it) => entryLines(it, TEXT_COLUMN, screen));
  return ["", paint(screen, "bold", `${title}:`), ...lines];
}

/** The text next to the name, or below it if the name is too long. */
function entryLines([left, text]: Entry, column: number, screen: Screen): readonly string[] {
  const lines = wrapped(text, screen, " ".repeat(column));
  const name = `  ${left}`;
  const [first = "", ...rest] = lines;
  if (name.length + 2 > column) return [name, ...lines];
  return [name.padEnd(column) + first.trimStart(), ...rest];
}

const MANUAL: Screen = { width: 72, colour: false };

/** Help on everything, laid out as on a terminal. */
export function manualPage(commands: readonly Command[], { version }: Build): string {
  const entries = (all: readonly Entry[]): readonly string[] =>
    all.flatMap((it) => entryLines(it, TEXT_COLUMN, MANUAL));
  const parts: readonly (readonly [title: string, lines: readonly string[]])[] = [
    ["SH SYNOPSIS", ["crigc COMMAND [FLAG...]"]],
    ["SH DESCRIPTION", wrapped(DESCRIPTION, MANUAL)],
    ["SH COMMANDS", []],
    ...commands.map((it) => [`SS ${it.name}`, commandHelp(it, MANUAL)] as const),
    ["SH FLAGS", [...wrapped(ABOUT_FLAGS, MANUAL), ...flagSections(wholeFlagEntry, MANUAL)]],
    ["SH ENVIRONMENT", entries(ENVIRONMENT)],
    ["SH EXIT STATUS", entries(Object.entries(exitTable))],
    ["SH FILES", entries(FILES)],
    ["SH SEE ALSO", [`crictl(1), systemd(1), ${homepage}`]],
  ];
  return [
    `.TH CRIGC 8 "" "crigc ${escaped(version)}" "System administration"`,
    ".SH NAME",
    "crigc \\- garbage-collects unused images, dead containers, dead sandboxes and orphaned pod logs on one node",
    ...parts.flatMap(([title, lines]) => [`.${title}`, ".nf", ...lines.map(escaped)]),
    "",
  ].join("\n");
}

const DESCRIPTION =
  "crigc does the work of the kubelet's garbage collectors on one node, with the kubelet's flags, over the container runtime interface (CRI): on nodes without a kubelet, nodes whose kubelet cannot be tuned, and nodes that may never pull an image again. If in doubt, it removes nothing.";

const ENVIRONMENT: readonly Entry[] = [
  ["CRIGC_...", "Each flag's variable, as listed above."],
  ["CONTAINER_RUNTIME_ENDPOINT, IMAGE_SERVICE_ENDPOINT", "The endpoints, as for crictl."],
  ["NO_COLOR", "If not empty, tables have no colours."],
  ["NODE_NAME", "The node's name in reports, such as in a pod."],
];

const FILES: readonly Entry[] = [
  ["/etc/crigc/crigc.yaml", "The configuration file."],
  ["/etc/crigc/conf.d", "Drop-ins, merged over it in the order of their names."],
  ["/etc/crigc/keep.d", "Keep lists: images that are never removed."],
  ["/var/lib/crigc", "Ledger, history and hold."],
  ["/run/crigc", "The control socket of the agent."],
];

function wholeFlagEntry(name: FieldName): Entry {
  const field = fieldOf(name);
  const [usage, text] = flagEntry(name);
  const inFiles = field.outsideFiles === true ? "" : ` Field: ${name}.`;
  return [usage, `${text}. ${field.doc} Environment: ${variablesOf(field).join(", ")}.${inFiles}`];
}

/** Escapes what roff would take for a request: a dot or a quote at the start of a line. Hyphens become minus signs. */
const escaped = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^([.'])/, "\\&$1");
