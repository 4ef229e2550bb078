// What the executable writes for programs: documents with exact figures.
import { expect, test } from "bun:test";

import { commands } from "../../../src/cli/dispatch.ts";
import { imageIdOf, type NodeDescription } from "../../support/fake-runtime/describe.ts";
import { removable, startNode } from "./node.ts";

const node: NodeDescription = {
  images: [
    { id: imageIdOf("huge"), repoTags: ["r.example/huge:1"], sizeBytes: 2n ** 60n, layers: [] },
    { id: imageIdOf("used"), repoTags: ["r.example/used:1"], sizeBytes: 1_000_000 },
    { id: imageIdOf("nameless"), sizeBytes: 5_000 },
  ],
  sandboxes: [{ id: "pod" }, { id: "old-pod", uid: "uid-pod", state: "not-ready" }],
  containers: [
    { id: "web", sandboxId: "pod", image: "r.example/used:1" },
    { id: "old", sandboxId: "pod", image: "r.example/used:1", state: "exited", name: "job" },
  ],
};
const flags = removable;

/** In this order on one node: what looks, then what removes, then what tells of it. */
const documents: readonly (readonly [kind: string, words: string])[] = [
  ["Plan", "plan --all-unused -o json"],
  ["GcReport", "gc --dry-run --all-unused -o json"],
  ["Explanation", "explain r.example/huge -o json"],
  ["Explanation", "explain web -o json"],
  ["Explanation", "explain old-pod -o json"],
  ["ImageList", "images -o json"],
  ["DiskUsage", "df -o json"],
  ["Snapshot", "snapshot"],
  ["KeepRules", "keep test r.example/* -o json"],
  ["GcReport", "gc --all-unused -o json"],
  ["GcReport", `rm ${imageIdOf("used")} -o json`],
  ["History", "history -o json"],
  ["KeepRules", "keep list -o json"],
  ["Doctor", "doctor -o json"],
  ["Config", "config -o json"],
  ["Version", "version -o json"],
  ["Hold", "hold 1h -o json"],
  ["Hold", "release -o json"],
  ["Installation", "install --dry-run --root . -o json"],
  ["Installation", "uninstall --dry-run --root . -o json"],
];

test("every command with JSON output is tested here", () => {
  const looked = documents.map(([, words]) => words).concat("status -o json");
  const silent = commands
    .filter(({ formats }) => formats.includes("json"))
    .map(({ name }) => name)
    .filter((name) => !looked.some((words) => words === name || words.startsWith(`${name} `)));
  expect(silent).toEqual([]);
});

test("every document writes figures, times and durations in the same way", async () => {
  await using it = await startNode({ node, flags });
  await it.crigc("gc", "--images", "--keep=**");
  for (const [kind, words] of documents) {
    const { stdout } = await it.crigc(...words.split(" "));
    expect(JSON.parse(stdout)).toMatchObject({ apiVersion: "crigc/v1", kind });
    expect({ words, faults: faultsOf(stdout, kind) }).toEqual({ words, faults: [] });
  }
});

/** What breaks the rules of documents; numbers are looked at in the text, because parsing would round them. */
function faultsOf(text: string, kind: string): readonly string[] {
  const faults: string[] = [];
  const RFC3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
  for (const [, key = "", value = ""] of text.matchAll(
    /"(\w+)":\s*("(?:[^"\\]|\\.)*"|[^\s,{}[\]]+)/g,
  )) {
    const bad = (what: string): number => faults.push(`${key} is ${value}: ${what}`);
    if (key.endsWith("Bytes") && !/^(?:null|-?\d+)$/.test(value)) bad("bytes are whole numbers");
    if (key.endsWith("Ms") && !/^(?:null|-?\d+)$/.test(value)) bad("durations are whole numbers");
    if (
      /(?:At|^now|^since|^until|^at)$/.test(key) &&
      value !== "null" &&
      !RFC3339_UTC.test(value.slice(1, -1))
    )
      bad("times are RFC 3339 in UTC");
    if (/^"\d{4}-\d\d-\d\dT.*[^Z]"$/.test(value)) bad("times are in UTC");
    if (
      /(?:size|[sF]ree|capacity|available|duration|took|age)$/.test(key) &&
      !key.startsWith("inodes") &&
      /^\d/.test(value)
    )
      bad("a figure has its unit in its name");
  }
  // Clocks are recorded whole there, so that a plan of it is the plan of the node.
  if (kind !== "Snapshot" && /"\w+Ns":/.test(text)) faults.push("durations are in milliseconds");
  return faults;
}
