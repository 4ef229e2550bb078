// A command line is read against the tables, and whatever is wrong with it is said at once.

import { describe, expect, test } from "bun:test";

import { parseCommandLine, type Parsed } from "../../src/cli/args.ts";
import { commands } from "../../src/cli/commands.ts";
import { fieldNames, fieldOf } from "../../src/config/fields.ts";
import { ConfigError } from "../../src/model/errors.ts";

const parse = (line: string): Parsed =>
  parseCommandLine(
    line.split(" ").filter((word) => word !== ""),
    commands,
  );

function run(line: string): Extract<Parsed, { kind: "run" }> {
  const parsed = parse(line);
  if (parsed.kind !== "run") throw new Error(`${line} is ${parsed.kind}`);
  return parsed;
}

const flagsOf = (line: string): readonly string[] =>
  run(line).flags.map(({ name, written, text }) => `${name} ${written} ${text}`);

function faultsOf(line: string): readonly string[] {
  try {
    parse(line);
    return [];
  } catch (thrown) {
    if (thrown instanceof ConfigError)
      return thrown.issues.map(({ source, message }) => `${source}: ${message}`);
    throw thrown;
  }
}

describe("flags", () => {
  test.each([
    ["gc --max-images 5", "maxImages --max-images 5"],
    ["gc --max-images=5", "maxImages --max-images 5"],
    ["--max-images 5 gc", "maxImages --max-images 5"],
    ["gc --max-images=", "maxImages --max-images "],
    ["gc --max-images -5", "maxImages --max-images -5"],
    ["gc --max-images=a=b", "maxImages --max-images a=b"],
    ["gc -v 5", "logging.verbosity -v 5"],
    ["gc -v=5", "logging.verbosity -v 5"],
    ["gc -v5", "logging.verbosity -v 5"],
    ["gc --v=5", "logging.verbosity --v 5"],
    ["gc --dry-run", "dryRun --dry-run true"],
    ["gc --dry-run=maybe", "dryRun --dry-run maybe"],
  ])("%s sets %s", (line, words) => {
    expect(flagsOf(line)).toEqual([words]);
  });

  test.each(["images -q -o table", "snapshot -o json"])("%s is no error", (line) => {
    expect(faultsOf(line)).toEqual([]);
  });

  test("repeated flags are kept in order, and every command accepts every flag", () => {
    expect(flagsOf("gc --keep a --keep=b")).toEqual(["keep --keep a", "keep --keep b"]);
    for (const field of fieldNames)
      for (const words of ["gc", "hold 1h", "keep list", "keep baseline"]) {
        const { flag } = fieldOf(field);
        expect(run(`${words} --${flag}=x`).flags.map(({ name }) => name)).toEqual([field]);
      }
  });
});

test("invalid usage is named, with what is expected or meant, and all of it at once", () => {
  const lines = [
    "gc --max-image 5",
    "gc -x",
    "gc -config=x",
    "gc --constructor=x",
    "gc --max-images",
    "gc --keep --dry-run",
    "gc --dry-run false",
    "gc -o yaml",
    "gc -o",
    "gc --images=yes",
    "gc now",
    "hold",
    "hold 1h --reason",
    "hold 1h -o json",
    "hold 1h -o josn -o table",
    "images -q -o yaml",
    "install --init tar",
    "keep",
    "keep lst",
    "hodl 1h",
    "--max-images 5",
    // The value of an unknown flag is not reported as an unexpected argument.
    "gc --nothing-like-it 5",
    "gc -y --max-imges 3 --keep --dry -o xml",
  ];
  const said = lines.map((line) => [line, ...faultsOf(line)].join("\n  "));
  expect(said.join("\n")).toMatchSnapshot();
});

describe("commands", () => {
  test("an option before the command belongs to it, also between its two words", () => {
    const { command, invocation } = run("--reason busy hold 1h");
    expect(command.name).toBe("hold");
    expect(invocation.operands).toEqual(["1h"]);
    expect(invocation.options).toEqual(new Map([["reason", ["busy"]]]));
    expect(run("keep --max-images 5 list").command.name).toBe("keep list");
  });

  test("a repeated option keeps every value, a switch has none, and everything after -- is an argument", () => {
    const { options, operands } = run(
      "keep baseline a.tar --from b.tar --from=c.tar d.tar",
    ).invocation;
    expect(options.get("from")).toEqual(["b.tar", "c.tar"]);
    expect(operands).toEqual(["a.tar", "d.tar"]);
    expect(run("gc --images").invocation.options).toEqual(new Map([["images", []]]));
    expect(run("gc --images=true").invocation.options).toEqual(new Map([["images", []]]));
    expect(run("gc --images=false").invocation.options).toEqual(new Map());
    expect(run("hold -- -5m").invocation.operands).toEqual(["-5m"]);
  });

  test.each([
    ["gc", "table"],
    ["gc -o json", "json"],
    ["gc -ojson", "json"],
    ["gc -o=json", "json"],
    ["gc --output json", "json"],
    ["gc -o json -o table", "table"],
  ])("%s prints %s", (line, output) => {
    expect(run(line).invocation.output).toBe(output as "table" | "json");
  });
});

test.each([
  ["", { kind: "nothing" }],
  ["--help", { kind: "help", topic: "" }],
  ["gc -h --max-imges", { kind: "help", topic: "gc" }],
  ["keep list --help", { kind: "help", topic: "keep list" }],
  ["keep --help", { kind: "help", topic: "keep" }],
  ["--version", { kind: "version", output: "table" }],
  ["--version -o json", { kind: "version", output: "json" }],
  // Whoever asks for the version of a command that removes does not ask for a removal.
  ["gc --version", { kind: "version", output: "table" }],
  ["--version hold", { kind: "version", output: "table" }],
] as const)("%j is %j, whatever else is wrong", (line, parsed) => {
  expect(parse(line)).toEqual(parsed);
});
