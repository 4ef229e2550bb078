// Generates the sections of pages that repeat what the tables in the code or package.json say; a test holds the pages against them.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import packaged from "../package.json" with { type: "json" };
import type { Command, Operand } from "../src/cli/command.ts";
import { commands } from "../src/cli/dispatch.ts";
import { exitTable } from "../src/cli/exit.ts";
import { flagUsage, operandUsage, optionUsage } from "../src/cli/help/help.ts";
import {
  dashed,
  defaultWords,
  fieldGroups,
  type FieldName,
  fieldNames,
  fieldOf,
  variablesOf,
} from "../src/config/fields.ts";
import { defaultOf } from "../src/config/settings.ts";
import { printed } from "../src/config/types.ts";

const top = join(import.meta.dir, "..");

/** Pages by path, and for each the text of its generated sections by name. */
export const generated: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  "docs/configuration.md": { flags },
  "SECURITY.md": { project: () => `- The project: <${packaged.homepage}>\n` },
  "docs/cli.md": { commands: commandEntries, "exit codes": exitCodes },
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
    .map(([heading, names]) => `## ${heading}\n\n${names.map(flagEntry).join("\n")}\n`)
    .join("\n");
}

function flagEntry(name: FieldName): string {
  const field = fieldOf(name);
  const names = [code(flagUsage(field)), ...(field.aliases ?? []).map((it) => code(dashed(it)))];
  const places = [
    ...(field.outsideFiles === true ? [] : [code(name)]),
    ...variablesOf(field)
      .filter((variable) => !variable.startsWith("CRIGC_"))
      .map(code),
  ];
  const shown = [names.join(", "), `[${defaultWords(field)}]`, places.join(", ")];
  const kubelet = field.kubelet === true ? " (K)" : "";
  const range = /\d+ to \d{1,9}$/.exec(field.type.expected)?.[0];
  const limits = range === undefined || field.help.includes(range) ? "" : ` ${capital(range)}.`;
  const about = `${capital(field.help)}. ${field.doc}${limits}`;
  return `- ${shown.filter((it) => it !== "").join(" ")}${kubelet}: ${about}`;
}

/** One line each, without `-o`, which the page describes for all; help has the rest. */
function commandEntries(): string {
  return `${commands.map(commandEntry).join("\n")}\n`;
}

function commandEntry({ name, operands, options, summary }: Command): string {
  const own = options.filter((option) => option.name !== "output");
  const usage = [name, ...operands.map(optionalUsage), ...own.map((it) => `[${optionUsage(it)}]`)];
  return `- ${code(usage.join(" "))}: ${summary}`;
}

function exitCodes(): string {
  return `${Object.entries(exitTable)
    .map(([exit, when]) => `- ${code(exit)}: ${when}`)
    .join("\n")}\n`;
}

const optionalUsage = (it: Operand): string =>
  it.required ? operandUsage(it) : `[${operandUsage(it)}]`;

const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

function code(text: string): string {
  return `\`${text}\``;
}

/** In `deploy/crigc.yaml` they come first. */
const OFTEN_CHANGED: readonly FieldName[] = [
  "imageGCHighThresholdPercent",
  "imageGCLowThresholdPercent",
  "imageMaximumGCAge",
  "imageStoreBudget",
  "keep",
  "metricsBindAddress",
];

const CONFIG_OPENING = `# crigc configuration. Each setting below is commented out and shows its default: remove the "#" and change the value.
# "crigc config" shows the effective values and their sources; "crigc config --check FILE" validates a file.
# Run "systemctl restart crigc" after a change. Files in conf.d are merged over this one in the order of their names.

apiVersion: crigc/v1
kind: CrigcConfiguration
`;

/** `deploy/crigc.yaml`. Every setting is commented out, so that an old file does not freeze a default. */
export function configurationFile(): string {
  const rest = fieldNames.filter(
    (name) => fieldOf(name).outsideFiles !== true && !OFTEN_CHANGED.includes(name),
  );
  // Names with a dot share a map.
  const groups = Map.groupBy([...OFTEN_CHANGED, ...rest], (name) => name.split(".")[0] ?? name);
  return [CONFIG_OPENING, ...Array.from(groups, configurationEntry)].join("\n");
}

function configurationEntry([outer, names]: readonly [string, readonly FieldName[]]): string {
  const about = names
    .map((name) => `${capital(fieldOf(name).help)}. ${fieldOf(name).doc}`)
    .map((text) => Bun.wrapAnsi(text, 110).replaceAll(/^/gm, "# "));
  const values = names.map((name) => {
    const { type } = fieldOf(name);
    const unset = type.kind === "endpoint" || type.kind === "path" ? "" : "off";
    const value = JSON.stringify(printed(type, defaultOf(name)) ?? unset)
      .replaceAll('":"', '": "')
      .replaceAll(',"', ', "');
    return name === outer ? value : `${name.slice(outer.length + 1)}: ${value}`;
  });
  const value = names[0] === outer ? values[0] : `{ ${values.join(", ")} }`;
  return `${about.join("\n")}\n#${outer}: ${value}\n`;
}

if (import.meta.main) {
  writeFileSync(join(top, "deploy/crigc.yaml"), configurationFile());
  for (const path of Object.keys(generated)) {
    const file = join(top, path);
    const page = readFileSync(file, "utf8");
    const next = regenerated(path, page);
    if (next === page) continue;
    writeFileSync(file, next);
    console.log(`docs: updated ${path}`);
  }
}
