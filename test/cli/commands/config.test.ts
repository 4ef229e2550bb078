// `crigc config` says what is in force and where it was written, and checks a file alone.

import { describe, expect, test } from "bun:test";

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

describe("as JSON", () => {
  test("each value has its source and where it was written, by its name in files", async () => {
    const env = { CRIGC_MAX_IMAGES: "7" };
    const { code, stdout } = await crigc(
      ["config", "-o", "json", "-v=4", "--eviction-hard", "nodefs.available<5%"],
      { files, env },
    );
    expect(code).toBe(0);
    const document = JSON.parse(stdout);
    expect([document.apiVersion, document.kind]).toEqual(["crigc/v1", "Config"]);
    expect(document.files).toEqual([FILE, "/etc/crigc/conf.d/10.yaml"]);
    expect(Object.keys(document.values)).toEqual([...fieldNames]);
    const values = Object.entries(document.values as Readonly<Record<string, { source: string }>>);
    expect(values.filter(([, { source }]) => source !== "default")).toMatchSnapshot();
    const low = { value: 80, source: "default", from: [] };
    expect(document.values.imageGCLowThresholdPercent).toEqual(low);
  });
});

describe("as a table", () => {
  test("a value, its source and its place are on one line; an empty list is none, and no thresholds are off", async () => {
    const { stdout } = await crigc(["config", "--keep", "a"], { files });
    const line = (name: string): string =>
      stdout.split("\n").find((it) => it.startsWith(`${name} `)) ?? "";
    expect(line("imageGCHighThresholdPercent")).toMatch(new RegExp(` 90 +file ${FILE}:3$`));
    expect(line("imageGCLowThresholdPercent")).toMatch(/ 80 +default$/);
    expect(line("rootDir")).toMatch(/ \/var\/lib\/kubelet if it exists, else \/ +default$/);
    expect(line("keep")).toMatch(/ pause, a +flag /);
    const text = ours("keep: []\nevictionHard: {}\n");
    const empty = (await crigc(["config"], { files: { [FILE]: text } })).stdout;
    expect(empty).toMatch(/^keep +none +file[^]*^evictionHard +off +file/m);
  });
});

test("patterns that are none are errors with their places, and say nothing to the terminal", async () => {
  const words = ["config", "--keep", "a\u001b[31m", "--pod-infra-container-image", "b c"];
  expect(await crigc(words, { files })).toMatchSnapshot();
});

describe("--check", () => {
  test("a valid file is valid whatever the node's own configuration says", async () => {
    const around = {
      files: { "/new.yaml": ours("maxImages: 3"), [FILE]: "broken: [" },
      env: { CRIGC_MAX_IMAGES: "x" },
    };
    expect(await crigc(["config", "--check", "/new.yaml"], around)).toEqual({
      code: 0,
      stdout: "/new.yaml is valid\n",
      stderr: "",
    });
  });

  test("a wrong file is refused with every line", async () => {
    const around = {
      files: { "/new.yaml": ours("maxImages: none\nimageGCLowThresholdPercnt: 3") },
    };
    expect(await crigc(["config", "--check", "/new.yaml"], around)).toEqual({
      code: 2,
      stdout: "",
      stderr:
        'crigc: /new.yaml:3: maxImages: "none" is not a whole number of 1 or more, or off (flag --max-images)\n' +
        'crigc: /new.yaml:4: unknown field "imageGCLowThresholdPercnt"; did you mean imageGCLowThresholdPercent?\n',
    });
  });

  test("the kubelet's file is valid, with a warning about values that are not adopted", async () => {
    const around = { files: { "/kubelet.yaml": kubelets("imageGCHighThresholdPercent: 100") } };
    const { code, stderr } = await crigc(["config", "--check", "/kubelet.yaml"], around);
    expect(code).toBe(0);
    expect(stderr).toContain("crigc does not adopt imageGCHighThresholdPercent: set");
  });
});
