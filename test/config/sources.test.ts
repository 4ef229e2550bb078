// Every field can be set by every source, and the stronger source wins.

import { describe, expect, test } from "bun:test";

import { type FieldName, fieldOf, variablesOf } from "../../src/config/fields.ts";
import { printed } from "../../src/config/types.ts";
import { DROP_INS, FILE, load, ours, type Sources } from "./loading.ts";
import { COMPANIONS, type Sample, SAMPLES } from "./samples.ts";

/** The sample, with the one that it needs beside it. */
const together = (sample: Sample): readonly Sample[] => {
  const companion = COMPANIONS[sample.name];
  return companion === undefined
    ? [sample]
    : [sample, ...SAMPLES.filter(({ name }) => name === companion)];
};

const asFile = (samples: readonly Sample[]): string =>
  ours(
    samples
      .map(({ name, inFile }) => {
        const [outer, inner] = name.split(".");
        const value = JSON.stringify(inFile);
        return inner === undefined ? `${outer}: ${value}\n` : `${outer}: {${inner}: ${value}}\n`;
      })
      .join(""),
  );

const asFlags = (samples: readonly Sample[]): readonly (readonly [string, string])[] =>
  samples.map(({ name, text }) => [fieldOf(name).flag, text]);

const asVariables = (samples: readonly Sample[]): Readonly<Record<string, string>> =>
  Object.fromEntries(samples.map(({ name, text }) => [variablesOf(fieldOf(name))[0] ?? "", text]));

const seen = (sources: Sources, name: FieldName): unknown => {
  const config = load(sources);
  const { kind, from } = config.sources[name];
  return [printed(fieldOf(name).type, config.values[name]), kind, from];
};

describe.each(SAMPLES.map((sample) => [sample.name, sample] as const))("%s", (name, sample) => {
  const isSignals = fieldOf(name).type.kind === "statements";
  const samples = together(sample);
  const variables = variablesOf(fieldOf(name));
  const dropIn = `${DROP_INS}/10.yaml`;

  test.each<[string, Sources, unknown, readonly string[]]>([
    ["flag", { flags: asFlags(samples) }, sample.printed, [`--${fieldOf(name).flag}`]],
    ...variables.map((variable): [string, Sources, unknown, readonly string[]] => [
      "environment",
      { env: { ...asVariables(samples.slice(1)), [variable]: sample.text } },
      sample.printed,
      [variable],
    ]),
    ["file", { files: { [FILE]: asFile(samples) } }, sample.printed, [`${FILE}:3`]],
    [
      "drop-in",
      { files: { [dropIn]: asFile(samples) } },
      // Signals are laid over those of the default.
      isSignals ? expect.objectContaining(Object(sample.printed)) : sample.printed,
      [expect.stringContaining(dropIn)],
    ],
  ])("is set by its %s", (kind, sources, value, from) => {
    expect(seen(sources, name)).toEqual([value, kind, from]);
  });
});

const file = (body: string) => ({ [FILE]: ours(body) });
const dropIn = (body: string) => ({ [`${DROP_INS}/a.yaml`]: ours(body) });
const flags = (name: string, ...texts: readonly string[]) =>
  texts.map((text) => [name, text] as const);
const variable = { CRIGC_KEEP_PER_REPOSITORY: "3" };
const socket = "CONTAINER_RUNTIME_ENDPOINT";
const images = "evictionHard: {imagefs.available: 20%, nodefs.available: 10%}";
const others = "evictionHard: {imagefs.available: 30%, nodefs.available: 0%}";

/** What several sources say of one field. */
const combined: readonly (readonly [FieldName, Sources])[] = [
  ["keepPerRepository", { files: file("keepPerRepository: 1") }],
  [
    "keepPerRepository",
    { files: { ...file("keepPerRepository: 1"), ...dropIn("keepPerRepository: 2") } },
  ],
  [
    "keepPerRepository",
    { files: { ...file("keepPerRepository: 1"), ...dropIn("keepPerRepository: null") } },
  ],
  ["keepPerRepository", { files: dropIn("keepPerRepository: 2"), env: variable }],
  ["keepPerRepository", { env: variable, flags: flags("keep-per-repository", "4") }],
  ["keepPerRepository", { flags: flags("keep-per-repository", "4", "5") }],
  [
    "keepPerRepository",
    { files: file("keepPerRepository: 1"), flags: flags("keep-per-repository", "off") },
  ],
  ["keepPerRepository", { env: { CRIGC_KEEP_PER_REPOSITORY: "" } }],
  ["containerRuntimeEndpoint", { env: { [socket]: "/shared.sock" } }],
  ["containerRuntimeEndpoint", { env: { [socket]: "/a.sock", [`CRIGC_${socket}`]: "/own.sock" } }],
  [
    "keep",
    {
      files: { ...file("keep: [a, b]"), ...dropIn("keep: c") },
      env: { CRIGC_KEEP: "d,e f" },
      flags: flags("keep", "a", "g"),
    },
  ],
  ["evictionHard", { files: file("evictionHard: {imagefs.available: 20%}") }],
  ["evictionHard", { files: file("evictionHard: {}") }],
  ["evictionHard", { files: { ...file(images), ...dropIn(others) } }],
  [
    "evictionHard",
    {
      files: file(images),
      flags: flags("eviction-hard", "nodefs.available<1Gi", "nodefs.inodesFree<1k"),
    },
  ],
  ["evictionHard", { files: file(images), flags: flags("eviction-hard", "") }],
];

test("the stronger source wins; patterns add up, and maps in drop-ins are merged", () => {
  const found = combined.map(([name, sources]) =>
    [JSON.stringify(sources), `${name}: ${JSON.stringify(seen(sources, name))}`].join("\n  "),
  );
  expect(found.join("\n")).toMatchSnapshot();
  expect(load({ files: file("evictionHard: {}") }).limits.pressure.thresholds).toEqual([]);
});

test("drop-ins apply in the order of their names, with any of the endings; other names are ignored", () => {
  const files = {
    [`${DROP_INS}/20.json`]:
      '{"apiVersion":"crigc/v1","kind":"CrigcConfiguration","keepPerRepository":20}',
    [`${DROP_INS}/10.conf`]: ours("keepPerRepository: 10"),
    [`${DROP_INS}/30.yaml`]: ours("bootGrace: 1m"),
    [`${DROP_INS}/99.yaml.bak`]: "not ours",
    [`${DROP_INS}/.hidden.yaml`]: "not ours",
  };
  expect(seen({ files }, "keepPerRepository")).toEqual([20, "drop-in", [`${DROP_INS}/20.json:1`]]);
  expect(load({ files }).files.map((path) => path.slice(DROP_INS.length + 1))).toEqual([
    "10.conf",
    "20.json",
    "30.yaml",
  ]);
});

test.each<[FieldName, string]>([
  ["imageGCHighThresholdPercent", "images.highPercent"],
  ["imageGCLowThresholdPercent", "images.lowPercent"],
  ["imageMinimumGCAge", "images.minimumAge"],
  ["imageMaximumGCAge", "images.maximumAge"],
  ["imageStoreBudget", "images.storeBudgetBytes"],
  ["keepLoaded", "images.keepLoaded"],
  ["keepPerRepository", "images.keepPerRepository"],
  ["podInfraContainerImage", "images.infraImages"],
  ["minimumContainerTTLDuration", "containers.minimumAge"],
  ["maximumDeadContainersPerContainer", "containers.maximumPerPodContainer"],
  ["maximumDeadContainers", "containers.maximumContainers"],
  ["collectForeign", "containers.collectForeign"],
  ["imageGCPeriod", "ledger.imageGcPeriod"],
  ["bootGrace", "ledger.bootGrace"],
  ["deadPodTTL", "ledger.deadPodTtl"],
  ["evictionPressureTransitionPeriod", "pressure.transitionPeriod"],
])("%s reaches policy as %s", (name, place) => {
  const { values, limits } = load({
    flags: asFlags(SAMPLES.filter((it) => it.name === name).flatMap(together)),
  });
  const reached = Object.entries(limits).flatMap(([group, members]) =>
    Object.entries(members).map(([key, value]) => [`${group}.${key}`, value] as const),
  );
  expect(new Map<string, unknown>(reached).get(place)).toEqual(values[name]);
  expect(values[name]).not.toEqual(load({}).values[name]);
});
