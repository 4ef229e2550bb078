// What an operator writes: configuration files, command lines, holds.

import { parse } from "yaml";

import { parseCommandLine } from "../../../src/cli/args.ts";
import { commands } from "../../../src/cli/dispatch.ts";
import { selectedBy } from "../../../src/cli/selection.ts";
import { fieldByFlag, fieldNames } from "../../../src/config/fields.ts";
import { ConfigError } from "../../../src/model/errors.ts";
import { duration, hours, plus } from "../../../src/model/time.ts";
import { judgeHold } from "../../../src/node/hold.ts";
import { crigc } from "../../cli/world.ts";
import { DROP_INS, FILE, kubelets, load, ours } from "../../config/loading.ts";
import { SAMPLES } from "../../config/samples.ts";
import { NOW } from "../../support/build/values.ts";
import { jsonOf, textOf } from "../inputs.ts";
import { holds, refusedOr, same, type Target, textTarget } from "../target.ts";

const samplesYaml = SAMPLES.map(({ name, inFile }) => `${name}: ${JSON.stringify(inFile)}\n`);
const yamlSigns = "[.]. {.}.,. #. *a.\n.  .- .: .&a .!!str .? .|\n.>-\n".split(".");

/** What was accepted is in force, as the parser of YAML understands it. */
function checkConfig(path: string, text: string): void {
  const config = refusedOr(() => load({ files: { [path]: text } }), ConfigError);
  if (config === null) return;
  const document: unknown = parse(text, { uniqueKeys: false });
  holds(typeof document === "object" && document !== null, "a configuration that is no map");
  if ("keep" in document && "kind" in document && document.kind === "CrigcConfiguration")
    same([...config.values.keep], [...new Set([document.keep ?? []].flat())], "keep patterns");
  for (const { from } of Object.values(config.sources))
    holds(
      from.every((place) => place.startsWith(path)),
      `${from.join(", ")} is not ${path}`,
    );
}

const head = { apiVersion: "crigc/v1", kind: "CrigcConfiguration" };
const kubeletWords = 'imageGCHighThresholdPercent: ,evictionHard:\n,85,0s,null,"10%"'.split(",");

const yaml = textTarget(
  "configuration-yaml",
  textOf({
    words: [
      ...yamlSigns,
      ...samplesYaml,
      ...fieldNames.map((name) => `${name}: `),
      ...kubeletWords,
      "keep:\n- a\n",
      "---\n",
    ],
    samples: [
      ours(samplesYaml.join("")),
      ours("keep:\n  - registry.local/**\n  - pause\nevictionHard:\n  nodefs.available: 10%\n"),
      ours("logging:\n  format: json\n  verbosity: 3\n# end\n"),
      kubelets("imageMinimumGCAge: 0s\nevictionHard:\n  imagefs.available: 15%\n"),
      kubelets(
        "evictionSoft: {nodefs.available: 12%}\nevictionSoftGracePeriod: {nodefs.available: 1m}\n",
      ),
    ],
  }),
  (text) => checkConfig(FILE, text),
);

const json = textTarget(
  "configuration-json",
  jsonOf(
    [
      { ...head, ...Object.fromEntries(SAMPLES.map(({ name, inFile }) => [name, inFile])) },
      {
        ...head,
        keep: ["a", "b"],
        evictionHard: { "nodefs.available": "10%" },
        keepPerRepository: 3,
      },
    ],
    fieldNames,
  ),
  (text) => checkConfig(`${DROP_INS}/10.json`, text),
);

const flagWords = [...fieldByFlag.keys()].map((flag) => `--${flag}`);
const commandWords = [
  ...commands.flatMap(({ name, options }) => [
    name,
    ...options.map((option) => `--${option.name}`),
  ]),
  ..."-o json -v -h -- - = --filter =true -q --help".split(" "),
];

const commandLine = textTarget(
  "command-line",
  textOf({
    words: ["\n", ...flagWords, ...commandWords, ...SAMPLES.map(({ text }) => text)],
    samples: [
      "gc\n--all-unused\n--filter\nreference=nginx\n-v3",
      "history\n--since\n36h\n--kind=image\n-n\n5",
      "keep\nadd\nregistry.example/**",
      "plan\n--image-gc-high-threshold=80\n-o\njson",
    ],
  }),
  (text) => {
    const argv = text.split("\n");
    const parsed = refusedOr(() => parseCommandLine(argv, commands), ConfigError);
    if (parsed === null) return;
    const { invocation, flags } = parsed;
    // No word of the line is lost or made up.
    for (const word of [...invocation.operands, ...flags.map((flag) => flag.text)])
      holds(word === "true" || argv.some((it) => it.includes(word)), `${word} was not written`);
    refusedOr(() => selectedBy(invocation), ConfigError);
  },
);

const aHold = {
  apiVersion: "crigc/v1",
  kind: "Hold",
  since: "2026-01-01T00:00:00Z",
  until: "2100-01-01T00:00:00Z",
  reason: "an upgrade",
  by: "root",
  bootId: "boot-1",
  untilUptimeMs: 172_800_000,
};

const hold = textTarget(
  "hold",
  jsonOf([aHold, { ...aHold, bootId: "" }], Object.keys(aHold)),
  (text) => {
    const clocks = { wall: NOW, uptime: duration(hours(1)), bootId: "boot-1" };
    const state = judgeHold(text, "/var/lib/crigc/hold.json", clocks);
    if (state.kind === "held") return;
    // Only what says when it ended has ended.
    const value = JSON.parse(text) as typeof aHold;
    const isOver =
      (value.bootId === "boot-1" && value.untilUptimeMs <= 3_600_000) ||
      Date.parse(value.until) * 1e6 <= Number(plus(NOW, duration(0n)));
    holds(isOver, "a hold ended before its time");
  },
);

const agentStatus = textTarget(
  "agent-status",
  jsonOf(
    [
      {
        kind: "Status",
        values: {
          imageGCHighThresholdPercent: { value: 80, source: "flag" },
          evictionHard: { value: { "imagefs.available": "20%" }, source: "kubelet" },
          keep: { value: ["app/**"], source: "drop-in" },
          keepPerRepository: { value: null, source: "file" },
        },
      },
    ],
    [...fieldNames, "value", "source", "values"],
  ),
  async (text) => {
    const ran = await crigc(["config", "-o", "json"], { open: { askAgent: async () => text } });
    holds(!ran.stderr.includes("internal error"), ran.stderr);
    holds([0, 2].includes(ran.code), `exit ${ran.code}`);
  },
);

export const settingTargets: readonly Target[] = [yaml, json, commandLine, hold, agentStatus];
