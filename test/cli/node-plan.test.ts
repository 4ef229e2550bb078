import { expect, test } from "bun:test";

import { aLedger, anImage, aSnapshot } from "../support/build/values.ts";
import { crigc } from "./world.ts";

const recorded = async () => ({
  snapshot: aSnapshot({
    images: [anImage("a"), anImage("b")],
    keep: {
      rules: [{ pattern: "registry.example/a", source: "/etc/crigc/keep.d/site.list:1" }],
      problems: [],
      directoriesRead: [],
    },
  }),
  ledger: aLedger(),
});

test("a plan from a recorded node keeps by the rules of that node, and by those of the command line", async () => {
  const flags = ["--snapshot", "node.json", "--all-unused", "-o", "json"];
  const keptByRule = async (...more: readonly string[]): Promise<readonly string[]> => {
    const { stdout } = await crigc(["plan", ...flags, ...more], { open: { recorded } });
    const { kept } = JSON.parse(stdout).images;
    return kept
      .filter((it: { reason: { code: string } }) => it.reason.code === "keep-rule")
      .map((it: { name: string }) => it.name)
      .toSorted();
  };
  expect(await keptByRule()).toEqual(["registry.example/a:v1"]);
  expect(await keptByRule("--keep", "registry.example/b")).toEqual([
    "registry.example/a:v1",
    "registry.example/b:v1",
  ]);
});
