// Generates the sections of docs/ that repeat what the tables in the code say; a test holds the pages against them.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Command, CommandOption } from "../src/cli/command.ts";
import { commands } from "../src/cli/commands.ts";
import { exitTable } from "../src/cli/exit.ts";
import { optionUsage, usageOf } from "../src/cli/help/help.ts";
import {
  dashed,
  defaultWords,
  type Field,
  placeholderOf,
  variablesOf,
} from "../src/config/field.ts";
import { fieldGroups, type FieldName, fieldOf } from "../src/config/fields.ts";

const top = join(import.meta.dir, "..");
/** An option of this many commands is described once. */
const SHARED_MIN = 3;

/** Pages by path, and for each the text of its generated sections by name. */
export const generated: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  "docs/configuration.md": { flags },
  "docs/cli.md": { commands: commandSections, "exit codes": exitCodes },
};

/** The page with its generated sections up to date. */
export function regenerated(path: string, page: string): string {
  let text = page;
  for (const [name, section] of Object.entries(generated[path] ?? {})) {
    const start = `<!-- generated: ${name} -->\n`;
    const end = "<!-- end of generated section -->";
    const from = text.indexOf(start);
    const to = text.indexOf(end, from);
    if (from < 0 || to < 0) throw new Error(`${path} has no section "generated: ${name}"`);
    text = `${text.slice(0, from)}${start}\n${section()}\n${text.slice(to)}`;
  }
  return text;
}

function flags(): string {
  return fieldGroups
    .flatMap(([heading, names]) => [`## ${heading}\n`, ...names.map(flagSection)])
    .join("\n");
}

function flagSection(name: FieldName): string {
  const field = fieldOf(name);
  const names = [field.flag, ...(field.aliases ?? [])].map((flag) => code(dashed(flag)));
  return [
    `### ${names.join(", ")}\n`,
    `${capital(field.help)}. ${field.doc}\n`,
    ...facts(name, field).map((fact) => `- ${fact}`),
    "",
  ].join("\n");
}

function facts(name: FieldName, field: Field): readonly string[] {
  const onLine = withoutExamples(field.type.expected);
  const inFile = withoutExamples(field.type.expectedInFile ?? field.type.expected);
  const unit = field.unit === undefined ? "" : ` (${field.unit})`;
  return [
    `Takes: ${field.type.kind === "boolean" ? "" : `${code(placeholderOf(field))}, `}${onLine}${unit}`,
    `Default: ${field.default === undefined ? defaultWords(field) : code(field.default)}`,
    field.outsideFiles === true
      ? "Not in configuration files"
      : `In files: ${code(name)}${inFile === onLine ? "" : `, ${inFile}`}${field.kubelet === true ? "; also taken from a `KubeletConfiguration`" : ""}`,
    ...otherVariables(field).map((variable) => `Also from the environment as ${code(variable)}`),
  ];
}

/** Those that the page's rule does not give. */
const otherVariables = (field: Field): readonly string[] =>
  variablesOf(field).filter((variable) => !variable.startsWith("CRIGC_"));

/** The page says once how durations are written. */
const withoutExamples = (text: string): string =>
  text.replace(", such as 30s, 5m, 1h30m or 7d", "");

function commandSections(): string {
  const shared = [...sharedOptions].map((text) => `- ${text}`).join("\n");
  return ["## Options of several commands\n", `${shared}\n`, ...commands.map(commandSection)].join(
    "\n",
  );
}

function optionText(option: CommandOption): string {
  return `${code(optionUsage(option))}: ${option.help}`;
}

/** Described once, not in each section. */
const sharedOptions: ReadonlySet<string> = new Set(
  [
    ...Map.groupBy(
      commands.flatMap(({ options }) => options.map(optionText)),
      (text) => text,
    ),
  ]
    .filter(([, texts]) => texts.length >= SHARED_MIN)
    .map(([text]) => text),
);

function commandSection(command: Command): string {
  const rows = [
    ...command.operands.map(({ name, help }) => `${code(name)}: ${help}`),
    ...command.options.map(optionText).filter((text) => !sharedOptions.has(text)),
  ];
  return [
    `## ${code(`crigc ${command.name}`)}\n`,
    `    ${usageOf(command)}\n`,
    `${`${capital(command.summary)}. ${command.doc}`.trim()}\n`,
    ...(rows.length === 0 ? [] : [`${rows.map((row) => `- ${row}`).join("\n")}\n`]),
  ].join("\n");
}

function exitCodes(): string {
  return `${Object.entries(exitTable)
    .map(([exit, when]) => `- ${code(exit)}: ${when}`)
    .join("\n")}\n`;
}

const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

function code(text: string): string {
  return `\`${text}\``;
}

if (import.meta.main)
  for (const path of Object.keys(generated)) {
    const file = join(top, path);
    const page = readFileSync(file, "utf8");
    const next = regenerated(path, page);
    if (next === page) continue;
    writeFileSync(file, next);
    console.log(`docs: updated ${path}`);
  }
