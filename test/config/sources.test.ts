// Every field can be set by every source, and the stronger source wins.

import { describe, expect, test } from "bun:test";

import { variablesOf } from "../../src/config/field.ts";
import { type FieldName, fieldOf } from "../../src/config/fields.ts";
import { printed } from "../../src/config/values.ts";
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

describe("precedence", () => {
  const file = { [FILE]: ours("maxImages: 1") };
  const dropIn = { [`${DROP_INS}/a.yml`]: ours("maxImages: 2") };
  const variable = { CRIGC_MAX_IMAGES: "3" };
  const flags = (...texts: readonly string[]) => texts.map((text) => ["max-images", text] as const);

  test.each<[string, Sources, unknown]>([
    ["the file over the default", { files: file }, [1, "file", [`${FILE}:3`]]],
    [
      "a drop-in over the file",
      { files: { ...file, ...dropIn } },
      [2, "drop-in", [`${DROP_INS}/a.yml:3`]],
    ],
    [
      "a variable over a drop-in",
      { files: dropIn, env: variable },
      [3, "environment", ["CRIGC_MAX_IMAGES"]],
    ],
    ["a flag over a variable", { env: variable, flags: flags("4") }, [4, "flag", ["--max-images"]]],
    ["the second of two flags", { flags: flags("4", "5") }, [5, "flag", ["--max-images"]]],
    ["off over a number", { files: file, flags: flags("off") }, [null, "flag", ["--max-images"]]],
    ["an empty variable as none", { env: { CRIGC_MAX_IMAGES: "" } }, [null, "default", []]],
    [
      "null in a drop-in as a reset of the file",
      { files: { ...file, [`${DROP_INS}/a.yaml`]: ours("maxImages: null") } },
      [null, "default", []],
    ],
  ])("%s", (_, sources, value) => {
    expect(seen(sources, "maxImages")).toEqual(value);
  });

  test("drop-ins apply in the order of their names, whatever their ending; other names are ignored", () => {
    const files = {
      [`${DROP_INS}/20.json`]:
        '{"apiVersion":"crigc/v1","kind":"CrigcConfiguration","maxImages":20}',
      [`${DROP_INS}/10.conf`]: ours("maxImages: 10"),
      [`${DROP_INS}/30.yaml`]: ours("bootGrace: 1m"),
      [`${DROP_INS}/99.yaml.bak`]: "not ours",
      [`${DROP_INS}/.hidden.yaml`]: "not ours",
    };
    expect(seen({ files }, "maxImages")).toEqual([20, "drop-in", [`${DROP_INS}/20.json:1`]]);
    expect(load({ files }).files).toEqual([
      `${DROP_INS}/10.conf`,
      `${DROP_INS}/20.json`,
      `${DROP_INS}/30.yaml`,
    ]);
  });

  test("crigc's own variable overrides the one shared with crictl", () => {
    const env = {
      CONTAINER_RUNTIME_ENDPOINT: "/run/shared.sock",
      CRIGC_CONTAINER_RUNTIME_ENDPOINT: "/run/own.sock",
    };
    expect(load({ env }).values.containerRuntimeEndpoint).toBe("unix:///run/own.sock");
    expect(
      load({ env: { CONTAINER_RUNTIME_ENDPOINT: "/run/shared.sock" } }).values
        .containerRuntimeEndpoint,
    ).toBe("unix:///run/shared.sock");
  });
});

test("keep patterns of every source add up, each once", () => {
  const sources = {
    files: { [FILE]: ours("keep: [a, b]"), [`${DROP_INS}/a.yaml`]: ours("keep: c") },
    env: { CRIGC_KEEP: "d,e f" },
    flags: [
      ["keep", "a"],
      ["keep", "g"],
    ],
  } as const;
  expect(seen(sources, "keep")).toEqual([
    ["a", "b", "c", "d", "e", "f", "g"],
    "flag",
    [`${FILE}:3`, `${DROP_INS}/a.yaml:3`, "CRIGC_KEEP", "--keep"],
  ]);
});

describe("maps of signals", () => {
  const dropIn = `${DROP_INS}/a.yaml`;

  test("a map in the file replaces the default", () => {
    const files = { [FILE]: ours("evictionHard: {imagefs.available: 20%}") };
    expect(load({ files }).values.evictionHard).toEqual({ "imagefs.available": "20%" });
  });

  test("an empty map in the file leaves no threshold", () => {
    expect(
      load({ files: { [FILE]: ours("evictionHard: {}") } }).limits.pressure.thresholds,
    ).toEqual([]);
  });

  test("a map in a drop-in is merged signal by signal, and null removes one", () => {
    const files = {
      [FILE]: ours("evictionHard: {imagefs.available: 20%, nodefs.available: 10%}"),
      [dropIn]: ours("evictionHard: {imagefs.available: 30%, nodefs.available: null}"),
    };
    expect(seen({ files }, "evictionHard")).toEqual([
      { "imagefs.available": "30%" },
      "drop-in",
      [`${FILE}:3`, `${dropIn}:3`],
    ]);
  });

  test("flags add up with each other and replace other sources; an empty flag clears the map", () => {
    const files = { [FILE]: ours("evictionHard: {imagefs.available: 20%}") };
    const flags = [
      ["eviction-hard", "nodefs.available<1Gi"],
      ["eviction-hard", "nodefs.inodesFree<1k"],
    ] as const;
    expect(load({ files, flags }).values.evictionHard).toEqual({
      "nodefs.available": "1Gi",
      "nodefs.inodesFree": "1k",
    });
    expect(load({ files, flags: [["eviction-hard", ""]] }).values.evictionHard).toEqual({});
  });
});

test.each<[FieldName, string]>([
  ["imageGCHighThresholdPercent", "images.highPercent"],
  ["imageGCLowThresholdPercent", "images.lowPercent"],
  ["imageMinimumGCAge", "images.minimumAge"],
  ["imageMaximumGCAge", "images.maximumAge"],
  ["imageGCInodeHighThresholdPercent", "images.inodeHighPercent"],
  ["imageGCInodeLowThresholdPercent", "images.inodeLowPercent"],
  ["imageStoreBudget", "images.storeBudgetBytes"],
  ["maxImages", "images.maximumImages"],
  ["keepLoaded", "images.keepLoaded"],
  ["keepPreloaded", "images.keepPreloaded"],
  ["keepPerRepository", "images.keepPerRepository"],
  ["imageOrder", "images.order"],
  ["podInfraContainerImage", "images.infraImages"],
  ["whenFutile", "images.whenFutile"],
  ["spaceAccounting", "images.accounting"],
  ["maxRemovalsPerPass", "images.maximumRemovals"],
  ["removalInterval", "images.removalInterval"],
  ["minimumContainerTTLDuration", "containers.minimumAge"],
  ["maximumDeadContainersPerContainer", "containers.maximumPerPodContainer"],
  ["maximumDeadContainers", "containers.maximumContainers"],
  ["maxStopGracePeriod", "containers.stopGraceMax"],
  ["collectForeign", "containers.collectForeign"],
  ["imageDetectionPeriod", "memory.detectionPeriod"],
  ["imageGCPeriod", "memory.imageGcPeriod"],
  ["bootGrace", "memory.bootGrace"],
  ["deadPodTTL", "memory.deadPodTtl"],
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
