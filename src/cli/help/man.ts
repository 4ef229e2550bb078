/** The manual page as roff, generated from the tables. */
import { dashed, defaultWords, type Field, variablesOf } from "../../config/field.ts";
import { fieldGroups, fieldOf } from "../../config/fields.ts";
import { homepage } from "../../install/layout.ts";
import { capitalised } from "../../model/values.ts";
import type { Build, Command } from "../command.ts";
import { exitTable } from "../exit.ts";
import { flagUsage, optionUsage, usageOf } from "./help.ts";

export function manualPage(commands: readonly Command[], build: Build): string {
  return [
    `.TH CRIGC 8 "" "crigc ${escaped(build.version)}" "System administration"`,
    // A hyphenated variable or field cannot be copied.
    ".nh",
    ".SH NAME",
    "crigc \\- garbage-collects unused images, dead containers, dead sandboxes and orphaned pod logs on one node",
    ".SH SYNOPSIS",
    ".B crigc",
    ".I COMMAND",
    "[\\fIFLAG\\fR...]",
    ".SH DESCRIPTION",
    paragraph(DESCRIPTION),
    ".SH COMMANDS",
    ...commands.flatMap(commandEntry),
    ".SH FLAGS",
    paragraph(FLAGS),
    ...fieldGroups.flatMap(([heading, names]) => [
      `.SS ${escaped(heading)}`,
      ...names.flatMap((name) => flagEntry(name, fieldOf(name))),
    ]),
    ".SH EXIT STATUS",
    ...exitEntries(),
    ".SH FILES",
    ...FILES.flatMap(([path, text]) => tagged(`\\fI${escaped(path)}\\fR`, text)),
    ".SH SEE ALSO",
    `crictl(1), systemd(1), ${escaped(homepage)}`,
    "",
  ].join("\n");
}

const DESCRIPTION =
  "crigc does the work of the kubelet's garbage collectors on one node, with the kubelet's flags, over the container runtime interface (CRI): on nodes without a kubelet, nodes whose kubelet cannot be tuned, and nodes that may never pull an image again. If in doubt, it removes nothing.";

const FLAGS =
  "Every command accepts every flag and uses those that apply to it. Flags override environment variables, which override drop-ins, which override the configuration file. Durations are written as 30s, 5m or 1h30m.";

const FILES: readonly (readonly [string, string])[] = [
  ["/etc/crigc/crigc.yaml", "The configuration file."],
  ["/etc/crigc/conf.d", "Drop-ins, merged over it in the order of their names."],
  ["/etc/crigc/keep.d", "Keep lists: images that are never removed."],
  ["/var/lib/crigc", "Ledger, history and hold."],
  ["/run/crigc", "The control socket of the agent."],
];

function commandEntry(command: Command): readonly string[] {
  return [
    ".TP",
    `\\fB${escaped(usageOf(command))}\\fR`,
    sentence(`${command.summary}. ${command.doc}`),
    ...command.options.flatMap((option) => [
      ".RS",
      ...tagged(`\\fB${escaped(optionUsage(option))}\\fR`, option.help),
      ".RE",
    ]),
  ];
}

function flagEntry(name: string, field: Field): readonly string[] {
  const also = (field.aliases ?? []).map((alias) => `, \\fB${escaped(dashed(alias))}\\fR`).join("");
  const places = [
    `Default: ${defaultWords(field)}.`,
    `Environment: ${variablesOf(field).join(", ")}.`,
    ...(field.outsideFiles === true ? [] : [`Field: ${name}.`]),
  ];
  return tagged(
    `\\fB${escaped(flagUsage(field))}\\fR${also}`,
    [`${sentence(field.help)}.`, field.doc, ...places].join(" "),
  );
}

const exitEntries = (): readonly string[] =>
  Object.entries(exitTable).flatMap(([code, when]) => tagged(`\\fB${code}\\fR`, `${when}.`));

const tagged = (tag: string, text: string): readonly string[] => [".TP", tag, paragraph(text)];

const paragraph = (text: string): string => guarded(escaped(text.replaceAll("`", "")));

const sentence = (text: string): string => paragraph(capitalised(text));

/** Lines that start with a dot or a quote are requests in roff. */
const guarded = (text: string): string => text.replace(/^([.'])/, "\\&$1");

const escaped = (text: string): string =>
  text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll("…", "...");
