/** The files of the agent's service, systemd unit or OpenRC script, from templates; and the settings given to `crigc print …`. */

import { dashed, variablesOf } from "../config/field.ts";
import { fieldNames, fieldOf } from "../config/fields.ts";
import type { Settings } from "../config/settings.ts";
import { type Printed, printed, printedText } from "../config/values.ts";
import { assert } from "../model/errors.ts";
import { shellQuoted } from "../model/values.ts";
import { homepage, type Init, installed } from "./layout.ts";
import script from "./templates/openrc-script.txt" with { type: "text" };
import unit from "./templates/systemd-unit.txt" with { type: "text" };
import { type Step, textFile, type Wanted } from "./tree-plan.ts";

/** Fills `{{name}}`. A line of nothing but a name takes any number of lines; `{{name?}}` starts a line only for `true`. */
export function filled(
  template: string,
  values: Readonly<Record<string, string | boolean>>,
): string {
  const valueOf = (name: string): string | boolean => {
    const value = values[name];
    assert(value !== undefined, `the template has {{${name}}}, which has no value`);
    return value;
  };
  return template
    .replaceAll(/^\{\{(\w+)\?\}\}(.*\n)/gm, (_, name: string, line: string) =>
      valueOf(name) === true ? line : "",
    )
    .replaceAll(/^\{\{(\w+)\}\}\n|\{\{(\w+)\}\}/gm, (_, lines?: string, word?: string) =>
      String(valueOf(lines ?? word ?? "")),
    );
}

/**
 * What the engine must be told before it starts, so that an idle agent uses little CPU time.
 * - Garbage is collected on a timer every 10 s. Bun's default, each second, took a third of an idle agent's CPU time.
 * - No collection after each pass: on a node of 10,000 images that would double the CPU time.
 */
export const ENGINE_ENVIRONMENT: readonly (readonly [name: string, value: string])[] = [
  ["BUN_GC_TIMER_INTERVAL", "10000"],
  ["BUN_IDLE_GC_SECONDS", "0"],
];

export interface ServiceOptions {
  readonly executable: string;
  /** Arguments of `run`. */
  readonly flags?: readonly string[];
  /** For systemd: directories beside the usual ones. */
  readonly writable?: readonly string[];
}

/**
 * Admins change it with drop-ins (`systemctl edit crigc`), which upgrades keep.
 *
 * Best effort, not idle: on a busy disk the idle class would starve our own ledger just when the disk is full. Memory
 * measured at the peak: 71 MB with 100 images; docs/benchmarks.md has larger nodes.
 *
 * Omitted on purpose: MemoryDenyWriteExecute (the JIT and calls into libc need such memory),
 * ProcSubset=pid (hides the boot ID), PrivateNetwork and IPAddressDeny (metrics, a kubelet's API, pre-stop requests),
 * ProtectHome=yes and PrivateUsers (an image store may be anywhere, and must be measurable).
 * ReadWritePaths has /var/log, because a subdirectory that is absent at the start would stay read-only.
 */
export const systemdUnit = ({ executable, flags = [], writable = [] }: ServiceOptions): string =>
  filled(unit, {
    homepage,
    start: [executable, "run", ...flags.map(unitWord)].join(" "),
    engine: ENGINE_ENVIRONMENT.map(([name, value]) => `Environment=${name}=${value}\n`).join(""),
    writable: writable.map((path) => `ReadWritePaths=${unitWord(`-${path}`)}\n`).join(""),
  });

/** Escapes % and $. */
const unitWord = (word: string): string =>
  /^[\w@:,./=<*+-]+$/.test(word)
    ? word
    : `"${word.replace(/["\\]/g, "\\$&").replaceAll("%", "%%").replaceAll("$", "$$$$")}"`;

/** supervise-daemon restarts the agent when it exits; its log goes to the system log. */
export const openrcScript = ({ executable, flags = [] }: ServiceOptions): string =>
  filled(script, {
    executable,
    arguments: ["run", ...flags.map(scriptWord)].join(" "),
    engine: ENGINE_ENVIRONMENT.map(([name, value]) => `export ${name}=${value}\n`).join(""),
  });

/** Escaped for double quotes that are evaluated twice. */
const scriptWord = (word: string): string =>
  /^[\w@:,./=+-]+$/.test(word) ? word : shellQuoted(word).replace(/["$`\\]/g, "\\$&");

/** A failing step prevents the start and is retried, so nothing is collected before the list is written. */
const baselineDropIn = (executable: string): string => `# Written by "crigc install --baseline".
[Service]
ReadWritePaths=/etc/crigc/keep.d
ExecStartPre=${executable} keep baseline --once
`;

/** Variable of the service: the first start keeps the images present. */
const BASELINE_VARIABLE = `# Written by "crigc install --baseline".
crigc_baseline=yes
`;

export function serviceFiles(init: Init, executable: string, baseline: boolean): readonly Wanted[] {
  const { systemdBaseline, openrcSettings } = installed;
  switch (init) {
    case "systemd":
      return [
        textFile(installed.systemdUnit, systemdUnit({ executable })),
        ...(baseline ? [textFile(systemdBaseline, baselineDropIn(executable))] : []),
        { kind: "link", path: installed.systemdLink, target: installed.systemdUnit },
      ];
    case "openrc":
      return [
        textFile(installed.openrcScript, openrcScript({ executable }), 0o755),
        ...(baseline ? [textFile(openrcSettings, BASELINE_VARIABLE)] : []),
        { kind: "link", path: installed.openrcLink, target: installed.openrcScript },
      ];
    case "none":
      return [];
  }
}

/** Commands for the running init system. Starting does not wait: the agent is ready once the runtime answers. */
const COMMANDS = {
  systemd: {
    // A pattern, because it matches loaded units only: to stop a unit that is gone already is an error.
    beforeRemoval: ["systemctl stop crigc.servic[e]"],
    afterRemoval: ["systemctl daemon-reload"],
    afterChange: ["systemctl daemon-reload", "systemctl try-restart --no-block crigc.service"],
    start: ["systemctl start --no-block crigc.service"],
  },
  openrc: {
    beforeRemoval: ["rc-service --ifexists crigc stop"],
    afterRemoval: [],
    afterChange: ["rc-service --ifstarted crigc restart"],
    start: ["rc-service crigc start"],
  },
  none: { beforeRemoval: [], afterRemoval: [], afterChange: [], start: [] },
} as const;

export const serviceCommands = (
  init: Init,
  when: keyof (typeof COMMANDS)["systemd"],
): readonly Step[] =>
  COMMANDS[init][when].map((line) => ({ kind: "command", words: line.split(" ") }));

export interface GivenSetting {
  /** `imageGCHighThresholdPercent`. */
  readonly name: string;
  readonly value: Printed;
  /** `--image-gc-high-threshold=70`; for a list, one per item. */
  readonly flags: readonly string[];
  /** `CRIGC_IMAGE_GC_HIGH_THRESHOLD`. */
  readonly variable: string;
  /** In the syntax of flags and variables; for a list, one per item. */
  readonly texts: readonly string[];
}

/** Settings of this command line and of the files that it names, not of this machine. */
export function givenSettings({ values, sources }: Settings): readonly GivenSetting[] {
  return fieldNames
    .filter((name) => GIVEN.includes(sources[name].kind) && fieldOf(name).outsideFiles !== true)
    .map((name) => {
      const field = fieldOf(name);
      const value = printed(field.type, values[name]);
      const texts = Array.isArray(value) ? value : [printedText(field.type, values[name])];
      const flags = texts.map((text) => `${dashed(field.flag)}=${text}`);
      return { name, value, flags, variable: variablesOf(field)[0] ?? "", texts };
    });
}

const GIVEN: readonly string[] = ["flag", "file", "drop-in"];

/** A whole configuration file, with values in JSON, which is valid YAML. */
export function settingsDocument(settings: readonly GivenSetting[]): string {
  const groups = new Map<string, string[]>();
  for (const { name, value } of settings) {
    const [outer = "", inner] = name.split(".");
    const text = JSON.stringify(value ?? "off");
    if (inner === undefined) groups.set(outer, [`${outer}: ${text}`]);
    else groups.set(outer, [...(groups.get(outer) ?? [`${outer}:`]), `  ${inner}: ${text}`]);
  }
  return [
    "apiVersion: crigc/v1",
    "kind: CrigcConfiguration",
    ...[...groups.values()].flat(),
    "",
  ].join("\n");
}
