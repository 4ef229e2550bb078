// Help reads well at any width, and its texts change only on purpose.

import { expect, test } from "bun:test";

import { parseCommandLine } from "../../../src/cli/args.ts";
import { commands } from "../../../src/cli/dispatch.ts";
import { EXAMPLES } from "../../../src/cli/help/examples.ts";
import { helpOn } from "../../../src/cli/help/help.ts";
import { dashed, fieldNames, fieldOf } from "../../../src/config/fields.ts";
import { ConfigError } from "../../../src/model/errors.ts";
import type { Screen } from "../../../src/report/terminal.ts";
import { plainScreen } from "../../report/build.ts";

const terminal = (width: number): Screen => ({ width, colour: false });

test.each(["", "hold", "keep"])("help on %j prints the same", (topic) => {
  expect(helpOn(topic, commands, terminal(80))).toMatchSnapshot();
});

test("help on a command shows at most five flags and three examples, and names the page with the rest", () => {
  for (const { name } of commands) {
    const text = helpOn(name, commands, terminal(100));
    const [, flags = ""] = text.split("\nFlags:\n");
    expect(flags.split("\n\n")[0]?.match(/^ {2}-/gm)?.length ?? 0).toBeLessThanOrEqual(5);
    expect(text.match(/^ {2}crigc /gm)?.length ?? 0).toBeLessThanOrEqual(3);
    expect(text).toContain("crigc help flags lists them.");
  }
  expect(helpOn("gc", commands, terminal(80)).split("\n").length).toBeLessThan(50);
});

test("every example can be parsed", () => {
  for (const [line] of EXAMPLES)
    expect(line).toStartWith(
      `crigc ${parseCommandLine(line.split(" ").slice(1), commands).command.name}`,
    );
});

test.each(["rm", "report"])(
  "help on %s shows no threshold, which changes nothing there",
  (name) => {
    expect(helpOn(name, commands, terminal(100))).not.toContain("--image-gc-high-threshold");
  },
);

test.each([
  ["plan", "--eviction-hard"],
  ["gc", "--eviction-hard"],
  ["gc", "--dry-run"],
  ["df", "--container-runtime-endpoint"],
  ["keep list", "--keep-dir"],
  ["keep baseline", "--config"],
  ["history", "--state-dir"],
])("help on %s shows %s, which changes what it does", (name, flag) => {
  expect(helpOn(name, commands, terminal(100))).toContain(`\n  ${flag} `);
});

test("help flags shows every flag with its default", () => {
  const text = helpOn("flags", commands, terminal(80));
  for (const name of fieldNames) expect(text).toContain(`  ${dashed(fieldOf(name).flag)}`);
  expect(text).toContain("disk usage to free down to [80]");
});

test.each(["", "flags", ...commands.map(({ name }) => name)])(
  "help on %j fits any width, long names and lists aside, and an ASCII terminal",
  (topic) => {
    for (const width of [40, 100, 300]) {
      const lines = helpOn(topic, commands, terminal(width)).split("\n");
      const wide = lines.filter((line) => Bun.stringWidth(line) > Math.min(width, 100));
      expect(
        wide.filter((line) => line.trim().includes(" ") && !/^ {2}(?:-|crigc )/.test(line)),
      ).toEqual([]);
    }
    // oxlint-disable-next-line no-control-regex -- they are what is looked for
    expect(helpOn(topic, commands, plainScreen)).toMatch(/^[\u0000-\u007f]*$/);
  },
);

test("help on an unknown topic suggests a known one", () => {
  expect(() => helpOn("hodl", commands, plainScreen)).toThrow(ConfigError);
  expect(() => helpOn("hodl", commands, plainScreen)).toThrow("did you mean hold?");
});

test("no option of a command has the name of a flag or of an option of every command", () => {
  const taken = new Set([
    ...fieldNames.flatMap((name) => [fieldOf(name).flag, ...(fieldOf(name).aliases ?? [])]),
    "help",
    "version",
  ]);
  const options = commands.flatMap((command) => command.options.map(({ name }) => name));
  expect(options.filter((name) => taken.has(name))).toEqual([]);
});
