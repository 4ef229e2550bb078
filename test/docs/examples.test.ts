// The commands that README and docs show are ones that the program takes, and their links lead somewhere.
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { parseCommandLine } from "../../src/cli/args.ts";
import { commands } from "../../src/cli/dispatch.ts";
import { loadConfig } from "../../src/config/load.ts";
import { messageOf } from "../../src/model/errors.ts";
import { crigc } from "../cli/world.ts";

const root = join(import.meta.dir, "../..");
const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];
const textOf = (page: string): string => readFileSync(join(root, page), "utf8");

const SUM = "c".repeat(64);

/** The words behind `crigc` of a line of shell, up to a comment or a pipe. */
function wordsOf(line: string): readonly string[] | null {
  const written = line
    .replace(/"\$\(sha256sum [^)]*\)"/, SUM)
    .replace("@sha256:…", `@sha256:${SUM}`);
  const match = /^(?:\$ )?crigc (.*?)(?:\s+[#|&>].*)?$/.exec(written);
  if (match === null) return null;
  return Array.from(
    (match[1] ?? "").matchAll(/"([^"]*)"|\S+/g),
    ([word, quoted]) => quoted ?? word,
  );
}

const shown = pages.flatMap((page) =>
  Array.from(textOf(page).matchAll(/^```sh\n(.*?)^```/gms), ([, block = ""]) => block)
    .flatMap((block) => block.split("\n"))
    .flatMap((line) => {
      const argv = wordsOf(line);
      return argv === null ? [] : [{ page, line, argv }];
    }),
);

/** What the program would say of such a command line, before it does anything; "" if it takes it. */
function refusalOf(argv: readonly string[]): string {
  try {
    const parsed = parseCommandLine(argv, commands);
    const reader = { file: () => null, names: () => null };
    loadConfig({ flags: parsed.flags, env: {}, reader });
    return "";
  } catch (thrown) {
    return messageOf(thrown);
  }
}

describe("commands that are shown", () => {
  test("are found in every page", () => {
    expect(shown.length).toBeGreaterThan(20);
    expect(refusalOf(["gc", "--image-gc-high-threshold", "75"])).toContain("must be below");
  });

  test.each(shown.map((it) => [it.page, it.line, it.argv] as const))("%s: %s", (_, __, argv) => {
    expect(refusalOf(argv)).toBe("");
  });

  test.each(
    shown.filter(({ argv }) => argv[0] === "print").map(({ line, argv }) => [line, argv] as const),
  )("%s prints something", async (_, argv) => {
    const { code, stdout, stderr } = await crigc(argv);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.length).toBeGreaterThan(100);
  });
});

const configurations = pages.flatMap((page) =>
  Array.from(
    textOf(page).matchAll(/^```yaml\n(.*?)^```/gms),
    ([, text = ""]) => [page, text] as const,
  ).filter(([, text]) => /^kind: (?:Crigc|Kubelet)Configuration$/m.test(text)),
);

describe.each(configurations)("the configuration in %s", (_, text) => {
  const file = (path: string): string | null => (path === "/shown.yaml" ? text : null);
  const flags = [{ name: "config", written: "--config", text: "/shown.yaml" }] as const;

  test("is valid", () => {
    const config = loadConfig({ flags, env: {}, reader: { file, names: () => null } });
    expect(config.files).toEqual(["/shown.yaml"]);
  });

  test("keeps the kubelet's memory threshold, because a map replaces its defaults", () => {
    const { kind, evictionHard } = Bun.YAML.parse(text) as {
      readonly kind: string;
      readonly evictionHard?: Readonly<Record<string, string>>;
    };
    if (kind === "KubeletConfiguration" && evictionHard !== undefined)
      expect(Object.keys(evictionHard)).toContain("memory.available");
  });
});

test("the configurations that are shown are found", () => {
  expect(configurations.map(([page]) => page)).toEqual(
    expect.arrayContaining(["docs/configuration.md", "docs/kubernetes.md"]),
  );
});

describe.each(pages.map((page) => [page] as const))("%s", (page) => {
  test("names only commands that exist", () => {
    const known = new Set(["help", ...commands.map(({ name }) => name.split(" ")[0] ?? "")]);
    const named = Array.from(textOf(page).matchAll(/`crigc ([a-z]+)/g), ([, word = ""]) => word);
    expect(named.filter((word) => !known.has(word))).toEqual([]);
  });

  test("names only files and folders that exist", () => {
    const paths = Array.from(
      textOf(page).matchAll(/`((?:src|test|scripts|deploy)\/[\w./-]*)[` ]/g),
      ([, path = ""]) => path,
    );
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test("has no broken link", () => {
    const links = Array.from(textOf(page).matchAll(/\]\(([^)]+)\)/g), ([, target = ""]) => target);
    const dead = links
      .filter((target) => !/^https?:/.test(target))
      .filter((target) => !leadsSomewhere(page, target));
    expect(dead).toEqual([]);
  });
});

test("the README's table lists every command", () => {
  const use = textOf("README.md").split("\n## Use\n")[1]?.split("\n## ")[0] ?? "";
  const rows = use.split("\n").filter((line) => line.startsWith("| `"));
  const named = new Set(rows.flatMap((row) => (row.split("|")[1] ?? "").match(/[a-z]+/g) ?? []));
  const words = commands.flatMap(({ name }) =>
    name.startsWith("print ") ? ["print"] : name.split(" "),
  );
  expect(words.filter((word) => !named.has(word))).toEqual([]);
});

function leadsSomewhere(page: string, target: string): boolean {
  const [path = "", heading] = target.split("#");
  const file = path === "" ? page : join(dirname(page), path);
  if (!existsSync(join(root, file))) return false;
  return heading === undefined || headingsOf(textOf(file)).includes(heading);
}

/** As web pages of repositories name them: small letters, and - for blanks. */
const headingsOf = (text: string): readonly string[] =>
  Array.from(text.matchAll(/^#+ (.*)$/gm), ([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
