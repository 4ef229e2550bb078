// `crigc config` says what is in force and where it was written, and checks a file alone.

import { expect, test } from "bun:test";

import { fieldNames } from "../../../src/config/fields.ts";
import { kubelets, ours } from "../../config/loading.ts";
import { crigc } from "../world.ts";

const FILE = "/etc/crigc/crigc.yaml";
const files = {
  [FILE]: ours(
    "imageGCHighThresholdPercent: 90\nimageMinimumGCAge: 90s\nimageStoreBudget: 21474836480\n",
  ),
  "/etc/crigc/conf.d/10.yaml": ours("keep: [pause]\n"),
};

test("in JSON each value has its source and where it was written, by its name in files", async () => {
  const env = { CRIGC_KEEP_PER_REPOSITORY: "7" };
  const words = ["-o", "json", "-v=3", "--eviction-hard", "nodefs.available<5%"];
  const { code, stdout } = await crigc(["config", ...words], { files, env });
  expect(code).toBe(0);
  const { values, ...head } = JSON.parse(stdout);
  expect(Object.keys(values)).toEqual([...fieldNames]);
  const named = Object.entries(values as Readonly<Record<string, { source: string }>>);
  expect([head, named.filter(([, { source }]) => source !== "default")]).toMatchSnapshot();
  const low = { value: 80, text: "80", source: "default", from: [] };
  expect(values.imageGCLowThresholdPercent).toEqual(low);
});

test("in the table a value, its source and its place are on one line; an empty list is none, and no thresholds are off", async () => {
  const lines: string[] = [];
  for (const given of [files, { [FILE]: ours("keep: []\nevictionHard: {}\n") }]) {
    const { stdout } = await crigc(["config"], { files: given });
    const shown = /^(?:imageGC(?:High|Low)Thr|rootDir|keep|evictionHard)\w* .*$/gm;
    lines.push(...(stdout.match(shown) ?? []));
  }
  expect(lines.join("\n")).toMatchSnapshot();
});

test("patterns that are none are errors with their places, and say nothing to the terminal", async () => {
  const words = ["config", "--keep", "a\u001b[31m", "--pod-infra-container-image", "b c"];
  expect(await crigc(words, { files })).toMatchSnapshot();
});

test.each([
  ["a valid file", ours("keepPerRepository: 3")],
  ["a wrong file, with every line", ours("keepPerRepository: none\nimageGCLowThresholdPercnt: 3")],
  ["the kubelet's file, of which not all is adopted", kubelets("imageGCHighThresholdPercent: 100")],
])(
  "--check says of %s what it is worth, whatever the node's own configuration is",
  async (_, text) => {
    const around = {
      files: { "/new.yaml": text, [FILE]: "broken: [" },
      env: { CRIGC_KEEP_PER_REPOSITORY: "x" },
    };
    expect(await crigc(["config", "--check", "/new.yaml"], around)).toMatchSnapshot();
  },
);
