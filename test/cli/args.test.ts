// A command line is read against the tables, and whatever is wrong with it is said at once.

import { describe, expect, test } from "bun:test";

import { parseCommandLine, type Parsed } from "../../src/cli/args.ts";
import { commands } from "../../src/cli/commands.ts";
import { fieldNames, fieldOf } from "../../src/config/fields.ts";
import { ConfigError } from "../../src/model/errors.ts";
import { exampleCommands } from "./world.ts";

const parse = (line: string): Parsed =>
  parseCommandLine(
    line.split(" ").filter((word) => word !== ""),
    exampleCommands,
  );

function run(line: string): Extract<Parsed, { kind: "run" }> {
  const parsed = parse(line);
  if (parsed.kind !== "run") throw new Error(`${line} is ${parsed.kind}`);
  return parsed;
}

const flagsOf = (line: string): readonly (readonly [string, string, string])[] =>
  run(line).flags.map(({ name, written, text }) => [name, written, text]);

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

test("-q is refused beside another format than -o table", () => {
  expect(() => parseCommandLine(["images", "-q", "-o", "yaml"], commands)).toThrow(
    "-q: it prints IDs only and contradicts -o yaml; use one of them",
  );
  expect(parseCommandLine(["images", "-q", "-o", "table"], commands).kind).toBe("run");
});

test("-o json is accepted by commands that always print JSON", () => {
  expect(parseCommandLine(["snapshot", "-o", "json"], commands)).toMatchObject({ kind: "run" });
});

describe("flags", () => {
  test.each([
    ["gc --max-images 5", "5"],
    ["gc --max-images=5", "5"],
    ["--max-images 5 gc", "5"],
    ["gc --max-images=", ""],
    ["gc --max-images -5", "-5"],
    ["gc --max-images=a=b", "a=b"],
  ])("%s gives %j", (line, text) => {
    expect(flagsOf(line)).toEqual([["maxImages", "--max-images", text]]);
  });

  test.each([
    ["gc -v 5", "logging.verbosity -v 5"],
    ["gc -v=5", "logging.verbosity -v 5"],
    ["gc -v5", "logging.verbosity -v 5"],
    ["gc --v=5", "logging.verbosity --v 5"],
    ["gc --dry-run", "dryRun --dry-run true"],
    ["gc --dry-run=maybe", "dryRun --dry-run maybe"],
    ["gc --image-minimum-gc-age 1m", "imageMinimumGCAge --image-minimum-gc-age 1m"],
  ])("%s sets %s", (line, words) => {
    expect(flagsOf(line).map((it) => it.join(" "))).toEqual([words]);
  });

  test("a switch does not consume the next word", () => {
    expect(faultsOf("gc --dry-run false")).toEqual(['crigc gc: unexpected argument "false"']);
  });

  test("repeated flags are kept in order", () => {
    expect(flagsOf("gc --keep a --keep=b").map(([, , text]) => text)).toEqual(["a", "b"]);
  });

  test.each(exampleCommands.map(({ name }) => [name] as const))(
    "every flag is accepted by %s",
    (name) => {
      for (const field of fieldNames) {
        const word = name === "hold" ? "hold 1h" : name;
        expect(flagsOf(`${word} --${fieldOf(field).flag}=x`).map(([it]) => it)).toEqual([field]);
      }
    },
  );
});

describe("invalid usage", () => {
  test.each([
    ["gc --max-image 5", "crigc: unknown flag --max-image; did you mean --max-images?"],
    ["gc -x", "crigc: unknown flag -x; crigc help flags lists all flags"],
    ["gc -config=x", "crigc: unknown flag -config; did you mean --config?"],
    ["gc --constructor=x", "crigc: unknown flag --constructor; crigc help flags lists all flags"],
    ["gc --max-images", "--max-images: missing value; expected N"],
    ["gc --keep --dry-run", "--keep: missing value; expected GLOB"],
    ["gc -o yaml", "-o: crigc gc has no output format yaml; use table or json"],
    ["gc -o", "-o: missing value; expected table or json"],
    ["gc --images=yes", '--images: invalid value "yes": use true or false'],
    ["gc now", 'crigc gc: unexpected argument "now"'],
    ["hold", "crigc hold: missing DURATION: how long, such as 2h"],
    ["hold 1h --reason", "--reason: missing value; expected TEXT"],
    ["hold 1h -o json", "-o: crigc hold prints text only; leave -o out"],
    ["keep baseline --format tar", '--format: invalid value "tar": use oci, docker'],
    ["keep", "crigc keep: missing subcommand: list, baseline"],
    ["keep lst", 'crigc keep: unknown subcommand "lst"; did you mean "list"?'],
    ["hodl 1h", 'crigc: unknown command "hodl"; did you mean "hold"?'],
    ["--max-images 5", "crigc: missing command; crigc help lists them"],
  ])("%s: %s", (line, fault) => {
    expect(faultsOf(line)).toEqual([fault]);
  });

  test("all errors are reported at once", () => {
    expect(faultsOf("gc -y --max-imges 3 --keep --dry -o xml")).toHaveLength(4);
  });

  test("the value of an unknown flag is not reported as an unexpected argument", () => {
    expect(faultsOf("gc --nothing-like-it 5")).toEqual([
      "crigc: unknown flag --nothing-like-it; crigc help flags lists all flags",
    ]);
  });
});

describe("commands", () => {
  test("an option before the command belongs to the command", () => {
    const { command, invocation } = run("--reason busy hold 1h");
    expect(command.name).toBe("hold");
    expect(invocation.operands).toEqual(["1h"]);
    expect(invocation.options).toEqual(new Map([["reason", ["busy"]]]));
  });

  test("a command may have two words", () => {
    expect(run("keep list").command.name).toBe("keep list");
    expect(run("keep --max-images 5 list").command.name).toBe("keep list");
  });

  test("a repeated option keeps every value, a switch has none", () => {
    const { options, operands } = run(
      "keep baseline a.tar --from b.tar --from=c.tar d.tar",
    ).invocation;
    expect(options.get("from")).toEqual(["b.tar", "c.tar"]);
    expect(operands).toEqual(["a.tar", "d.tar"]);
    expect(run("gc --images").invocation.options).toEqual(new Map([["images", []]]));
    expect(run("gc --images=true").invocation.options).toEqual(new Map([["images", []]]));
    expect(run("gc --images=false").invocation.options).toEqual(new Map());
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

  test("everything after -- is an argument", () => {
    expect(run("hold -- -5m").invocation.operands).toEqual(["-5m"]);
  });
});

describe("help and version", () => {
  test.each([
    ["--help", ""],
    ["-h", ""],
    ["gc --help", "gc"],
    ["gc -h --max-imges", "gc"],
    ["keep list --help", "keep list"],
    ["keep --help", "keep"],
    ["hold -h", "hold"],
  ])("%s shows help on %j, whatever else is wrong", (line, topic) => {
    expect(parse(line)).toEqual({ kind: "help", topic });
  });

  test.each([
    ["--version", "table"],
    ["--version -o json", "json"],
    // Who asks for the version of a command that removes does not ask for a removal.
    ["gc --version", "table"],
    ["--version gc", "table"],
    ["hold --version", "table"],
  ] as const)("%s shows the version", (line, output) => {
    expect(parse(line)).toEqual({ kind: "version", output });
  });

  test("an empty command line names no command", () => {
    expect(parse("")).toEqual({ kind: "nothing" });
  });
});
