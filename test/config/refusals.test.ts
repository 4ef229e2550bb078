// What is refused, and in which words: a snapshot of everything that can be wrong in files, flags and variables.

import { expect, test } from "bun:test";

import { DROP_INS, faultsOf, FILE, kubelets, load, ours, type Sources } from "./loading.ts";

const whole = (text: string): Sources => ({ files: { [FILE]: text } });
const json = (fields: string): string =>
  `{"apiVersion":"crigc/v1","kind":"CrigcConfiguration",${fields}}`;

/** `--FLAG=TEXT --FLAG=TEXT`, or what stands below the head of our file. */
function sourcesOf(written: string): Sources {
  if (!written.startsWith("--")) return whole(ours(written));
  const flags = written.slice(2).split(" --");
  return { flags: flags.map((it) => it.split(/=(.*)/s, 2) as [string, string]) };
}

const refused: Readonly<Record<string, readonly (string | Sources)[]>> = {
  "what the kubelet's validation refuses, named by field and flag (vector 51)": [
    "--image-gc-high-threshold=101",
    "--image-gc-low-threshold=-1",
    "--image-gc-low-threshold=0 --image-gc-high-threshold=0",
    "--image-gc-low-threshold=1 --image-gc-high-threshold=0",
    "--image-maximum-gc-age=-1ns",
    "--image-maximum-gc-age=1ns --minimum-image-ttl-duration=2ns",
    "--minimum-image-ttl-duration=-1ns",
    "--pod-logs-dir=",
    "imageGCHighThresholdPercent: 101\nimageMinimumGCAge: -1ns",
  ],
  "values that contradict each other": [
    {
      files: { [FILE]: ours("imageGCLowThresholdPercent: 90") },
      env: { CRIGC_IMAGE_GC_HIGH_THRESHOLD: "88" },
    },
    "--image-gc-high-threshold=70",
    "--image-maximum-gc-age=2m",
    "--kubelet-client-cert=/c.pem",
    "--kubelet-client-key=/k.pem",
    "--eviction-soft=imagefs.available<10%,memory.available<1Gi",
  ],
  "what contradicts --compat kubelet": [
    "--compat=kubelet --collect-foreign=false",
    "--compat=kubelet --image-store-budget=1Gi",
    { files: { [FILE]: ours("collectForeign: false") }, flags: [["compat", "kubelet"]] },
  ],
  "eviction thresholds that the kubelet refuses (vector 52)": [
    "--eviction-hard=disk.available<10%",
    ...["-150Mi", "-10%", "150%", "10..5%", "", "0", "%", "15GB"].map(
      (amount) => `--eviction-hard=imagefs.available<${amount}`,
    ),
    "--eviction-hard=imagefs.available",
    "--eviction-hard=memory.available<lots",
    "--eviction-soft-grace-period=imagefs.available=-30s",
    "--eviction-soft-grace-period=imagefs.available=30mins",
    "--eviction-minimum-reclaim=imagefs.available=-300Mi",
    "--eviction-minimum-reclaim=imagefs.available=0%",
    "--eviction-minimum-reclaim=imagefs.available=inf%",
    whole(kubelets("evictionHard: {disk.free: 5%}")),
  ],
  "a threshold in bytes without a unit": [
    "--eviction-hard=imagefs.available<15",
    "--eviction-hard=nodefs.available<1000",
    "--eviction-hard=imagefs.available<2.5",
  ],
  "texts of flags": [
    "--image-gc-high-threshold=0x10",
    // Not the default file in its place.
    "--config=off --config-dir=off",
    `--maximum-dead-containers=${"9".repeat(400)}`,
    "--image-gc-period=0",
    "--pressure-period=1ms",
    "--v=11",
    "--pod-source=kubelet",
    "--state-dir=relative",
    `--state-dir=${"x".repeat(10_000)}`,
    "--image-store-budget=-1Gi",
  ],
  "all errors at once": [
    {
      files: { [FILE]: ours("keepPerRepository: 0\nbootGrace: soon") },
      env: { CRIGC_DRY_RUN: "maybe" },
      flags: [["eviction-hard", "nodefs.available<150%"]],
    },
  ],
  "files that are no configuration": [
    "",
    "# only a comment\n",
    "- a\n- b\n",
    "hello",
    "a: 1\n---\nb: 2\n",
    "a: 1\n---",
    "a: 1\n",
    "kind: CrigcConfiguration\n",
    "kind: CrigcConfiguration\napiVersion: crigc/v2\n",
    "kind: Pod\napiVersion: v1\n",
    "kind: KubeletConfiguration\napiVersion: crigc/v1\n",
  ].map(whole),
  "notations, with their lines": [
    "keepPerRepository: 1\nkeep: [a, b\nbootGrace: 1m\n",
    "a: &x {b: 1}",
    "a: &x [*x, *x]",
    "<<: {a: 1}",
    "logging: {<<: {a: 1}}",
    "a: !!set {b}",
    'a: 1\nkeep: ["a\0b"]\n',
  ],
  "lists of keep patterns": ['""', "[a, 3]", "[true]", "[a, [b]]", "[a, {b: c}]", '["", b]']
    .concat("[a, null]", "{a: b}", "3")
    .map((list) => `keep: ${list}`),
  "fields that do not exist, with a similar name if there is one": [
    "imageGCHighTresholdPercent: 85",
    "imageMinGCAge: 2m",
    "evictionhard: {}",
    "mxaImages: 1",
    "logging: {verbositiy: 3}",
    "swapBehavior: x",
    `${"m".repeat(1_000)}: x`,
    "__proto__: 5",
    "constructor: 5",
    "toString: {a: 1}",
    // An entry of a map, or a group's field, that lost its place.
    'imagefs.available: "20%"',
    "keep.patterns: [x]",
  ],
  "groups that are values, and fields of no file": [
    "logging: 5",
    "logging: [a]",
    "config: /a",
    "configDir: /a",
  ],
  "a KubeletConfiguration, for the fields that crigc adopts": [
    whole(kubelets("imageGCHighThresholdPercent: high\nmaxPods: many")),
  ],
};

const shown = (written: string | Sources): string => {
  const sources = typeof written === "string" ? sourcesOf(written) : written;
  const { files = {}, flags = [], env = {} } = sources;
  const text = [
    ...Object.values(files),
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...flags.map(([name, value]) => `--${name}=${value}`),
  ].join("\n");
  return [text.slice(0, 200), ...faultsOf(sources).map((it) => `! ${it}`)].join("\n");
};

test.each(Object.entries(refused))("refused: %s", (_, all) => {
  for (const written of all) {
    const text = shown(written);
    expect(text).toContain("\n! ");
    expect(text.length).toBeLessThan(1_200);
  }
  expect(all.map(shown).join("\n\n")).toMatchSnapshot();
});

test.each([
  ["JSON on one line", json('"keep":["a"],"keepPerRepository":2,"keep":[]'), "keep"],
  [
    "JSON within a map",
    json('"evictionHard":{"imagefs.available":"5%","imagefs.available":"50%"}'),
    "evictionHard.imagefs.available",
  ],
  ["an escaped JSON name", json('"keep":["a"],"k\\u0065ep":[]'), "keep"],
  ["a YAML key in quotes", ours("keep: [a]\n'keep': []\n"), "keep"],
  ["a group", ours("logging: {verbosity: 1}\nlogging: {format: json}\n"), "logging"],
  [
    "a KubeletConfiguration",
    kubelets("imageGCHighThresholdPercent: 90\nimageGCHighThresholdPercent: 80\n"),
    "imageGCHighThresholdPercent",
  ],
])("a value that is written twice is refused in %s", (_, text, name) => {
  for (const path of [FILE, `${DROP_INS}/10-site.yaml`])
    expect(faultsOf({ files: { [path]: text } })[0]).toContain(`${name} is set twice`);
});

// What looks like the above and is not refused.
test.each([
  "--image-maximum-gc-age=2m1ns",
  "--minimum-image-ttl-duration=1ns",
  "--compat=kubelet --boot-grace=1m",
  "--compat=kubelet --collect-foreign=true",
  "--compat=kubelet --image-store-budget=off",
  "--compat=kubelet --keep-loaded=true",
  "--compat=kubelet --keep-per-repository=3",
  "--eviction-hard=imagefs.available<1073741824",
  "--eviction-hard=imagefs.inodesFree<1000",
  "--eviction-hard=imagefs.available<15Gi",
  "--eviction-hard=imagefs.available<0%",
  "keep: []",
  "keep: 'x & y'",
  "keep: ['**/app', \"*\"]",
  "keep: x*y",
  "keep: b?",
  "keep: it! # &b",
])("%j is accepted", (written) => {
  expect(faultsOf(sourcesOf(written))).toEqual([]);
});

test("an unknown variable gives a warning with a suggestion", () => {
  expect(load({ env: { CRIGC_KEEP_PER_REPOSITOR: "5" } }).warnings).toEqual([
    "unknown environment variable CRIGC_KEEP_PER_REPOSITOR; did you mean CRIGC_KEEP_PER_REPOSITORY?",
  ]);
});

test("compat kubelet collects foreign containers", () => {
  const { limits, sources } = load(sourcesOf("--compat=kubelet"));
  expect(limits.containers.collectForeign).toBe(true);
  expect(sources.collectForeign).toEqual({ kind: "flag", from: ["--compat"] });
});
