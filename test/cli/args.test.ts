// A command line is read against the tables, and whatever is wrong with it is said at once.

import { expect, test } from "bun:test";

import { parseCommandLine } from "../../src/cli/args.ts";
import { commands } from "../../src/cli/dispatch.ts";
import { fieldNames, fieldOf } from "../../src/config/fields.ts";
import { ConfigError } from "../../src/model/errors.ts";

/** What a line means, or what is wrong with it. */
function read(line: string): string {
  const words = line.split(" ").filter((word) => word !== "");
  try {
    const { command, invocation, flags } = parseCommandLine(words, commands);
    const { operands, options, output } = invocation;
    const given = flags.map(({ name, written, text }) => `${name} ${written} ${text}`);
    return JSON.stringify([command.name, output, operands, [...options], ...given]);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return thrown.issues.map(({ source, message }) => `! ${source}: ${message}`).join("\n  ");
  }
}

test.each<[string, readonly string[]]>([
  [
    "flags, in every spelling and place, with a value or as a switch",
    [
      "gc --keep-per-repository 5",
      "gc --keep-per-repository=5",
      "--keep-per-repository 5 gc",
      "gc --keep-per-repository=",
      "gc --keep-per-repository -5",
      "gc --keep-per-repository=a=b",
      "gc -v 5",
      "gc -v=5",
      "gc -v5",
      "gc --v=5",
      "gc --dry-run",
      "gc --dry-run=maybe",
      "gc --keep a --keep=b",
      "keep --keep-per-repository 5 list",
    ],
  ],
  [
    "options, operands and formats: repeated, before the command, as a switch, and after --",
    [
      "--reason busy hold 1h",
      "images --filter untagged --filter=larger-than=1Gi",
      "gc --images",
      "gc --images=true",
      "gc --images=false",
      "hold -- -5m",
      "gc -o json",
      "gc -ojson",
      "gc -o=json",
      "gc --output json",
      "gc -o json -o table",
      "images -q -o table",
      "snapshot -o json",
    ],
  ],
  [
    "help and version, whatever else is wrong",
    [
      "--help",
      "gc -h --max-imges",
      "keep list --help",
      "keep --help",
      "--version",
      "--version -o json",
      // Whoever asks for the version of a command that removes does not ask for a removal.
      "gc --version",
      "--version hold",
    ],
  ],
  [
    "invalid usage, with what is expected or meant, and all of it at once",
    [
      "gc --max-image 5",
      "gc -x",
      "gc -config=x",
      "gc --constructor=x",
      "gc --keep-per-repository",
      "gc --keep --dry-run",
      "gc --keep-per-repository -o json",
      "gc --dry-run false",
      "gc -o name",
      "gc -o",
      "gc --images=yes",
      "gc now",
      "gc --all",
      "rmi --prune -f",
      "unhold",
      "hold",
      "hold 1h --reason",
      "hold 1h -o name",
      "keep baseline -o json",
      "images -q -o yaml",
      "print unit",
      "keep",
      "keep lst",
      "hodl 1h",
      "--keep-per-repository 5",
      // The value of an unknown flag is not reported as an unexpected argument.
      "gc --nothing-like-it 5",
      "gc -y --max-imges 3 --keep --dry -o xml",
    ],
  ],
])("the command line has %s", (what, lines) => {
  const found = lines.map((line) => [line, read(line)] as const);
  expect(found.every(([, it]) => it.startsWith("!") === what.startsWith("invalid"))).toBeTrue();
  expect(found.map((it) => it.join("\n  ")).join("\n")).toMatchSnapshot();
});

test("every command accepts every flag", () => {
  for (const field of fieldNames)
    for (const words of ["gc", "hold 1h", "keep list", "keep baseline"])
      expect(read(`${words} --${fieldOf(field).flag}=x`)).toContain(`"${field} `);
});

test.each([
  ["gc -y", "crigc asks no questions; leave it out"],
  ["status -w", "use watch crigc status"],
  ["prune", "use crigc gc"],
  ["images --runtime-endpoint /run/x.sock", "use --container-runtime-endpoint"],
])("crigc %s is rejected with our own command or option: %s", (line, hint) => {
  expect(() => parseCommandLine(line.split(" "), commands)).toThrow(hint);
});
