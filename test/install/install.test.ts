// Installing into a tree, upgrading, and taking everything out again.

import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

import {
  install,
  type InstallOptions,
  type InstallRequest,
  plannedInstall,
  plannedRemoval,
  uninstall,
} from "../../src/install/install.ts";
import { installed, parseManifest } from "../../src/install/layout.ts";
import type { Step } from "../../src/install/tree-plan.ts";
import { HostError, messageOf } from "../../src/model/errors.ts";
import { RootedTree } from "../../src/node/rooted-tree.ts";
import { put, scratch } from "../support/scratch.ts";
import { changesOf, treeOf } from "../support/tree.ts";

const silent = (): void => undefined;

const shellTexts = { man: "the page", bash: "for bash", zsh: "for zsh", fish: "for fish" };

/** A root file system with systemd in it, and an executable outside. */
function machine() {
  const top = scratch();
  const root = join(top, "root");
  put(root, "usr/lib/systemd/systemd", "init", 0o755);
  put(root, "etc/os-release", "ID=debian\n");
  for (const path of ["usr/local/bin", "etc/systemd/system/multi-user.target.wants", "var/lib"])
    mkdirSync(join(root, path), { recursive: true });
  const from = put(top, "crigc-1", "\x7fELF, the first executable", 0o755);
  const usual = {
    version: "1.0.0",
    root,
    from,
    binDirectory: "/usr/local/bin",
    init: null,
    shellTexts,
    baseline: false,
    start: false,
    dryRun: false,
  };
  return {
    top,
    root,
    path: (path: string): string => join(root, path),
    read: (path: string): string => readFileSync(join(root, path), "utf8"),
    has: (path: string): boolean => existsSync(join(root, path)),
    edit: (path: string, text: string, mode?: number): string => put(root, path, text, mode),
    tree: () => treeOf(root),
    install: (changes: Partial<InstallOptions> = {}) => install({ ...usual, ...changes }, silent),
    /** Another version of the executable. */
    upgrade: () =>
      install({ ...usual, from: put(top, "crigc-2", "\x7fELF, the second", 0o755) }, silent),
    uninstall: (purge: boolean) => uninstall({ root, dryRun: false, purge }, silent),
  };
}

const UNIT = "etc/systemd/system/crigc.service";
const BASH = "usr/local/share/bash-completion/completions/crigc";

const wordsOf = (steps: readonly Step[]): readonly string[] =>
  steps.map((step) => ("path" in step ? `${step.kind} ${step.path}` : step.kind));

describe("install", () => {
  test("as a dry run lists the steps and does none of them", async () => {
    const it = machine();
    const before = it.tree();
    const planned = await it.install({ dryRun: true });
    expect(it.tree()).toEqual(before);
    expect(await it.install()).toEqual(planned);
    expect(wordsOf(planned)).toContain("executable /usr/local/bin/crigc");
  });

  test("as an upgrade replaces the executable and keeps configuration, keep rules and ledger", async () => {
    const it = machine();
    await it.install();
    const theirs = [
      "etc/crigc/crigc.yaml",
      "etc/crigc/conf.d/10-ours.yaml",
      "etc/crigc/keep.d/base.list",
      "var/lib/crigc/ledger.db",
    ];
    for (const path of theirs) it.edit(path, `our ${path}`);
    expect(wordsOf(await it.upgrade())).toEqual([
      "executable /usr/local/bin/crigc",
      "text /var/lib/crigc/install.json",
    ]);
    expect(theirs.map(it.read)).toEqual(theirs.map((path) => `our ${path}`));
    expect(it.read("usr/local/bin/crigc")).toBe("\x7fELF, the second");
  });

  test("saves each hand-edited file that it replaces, and never overwrites an earlier copy", async () => {
    const it = machine();
    const options = { init: "openrc", baseline: true } as const;
    await it.install(options);
    const ours = ["etc/init.d/crigc", "etc/conf.d/crigc", BASH];
    const texts = ["first", "second", "second", "third"];
    for (const text of texts) {
      for (const path of ours) it.edit(path, `${text} ${path}`);
      await it.install(options);
    }
    const names = readdirSync(it.path("var/lib/crigc")).filter((name) => name.startsWith("rep"));
    expect(names).toContain("replaced-completions-crigc");
    expect(names.map((name) => it.read(`var/lib/crigc/${name}`)).toSorted()).toEqual(
      [...new Set(texts)].flatMap((text) => ours.map((path) => `${text} ${path}`)).toSorted(),
    );
  });

  test("saves a hand-edited unit on another filesystem too", async () => {
    const it = machine();
    expect(Bun.spawnSync(["mount", "-t", "tmpfs", "none", it.path("var/lib")]).exitCode).toBe(0);
    using _ = { [Symbol.dispose]: () => void Bun.spawnSync(["umount", it.path("var/lib")]) };
    it.edit(UNIT, "by hand", 0o640);
    await it.install();
    const copy = it.path("var/lib/crigc/replaced-crigc.service");
    expect(readFileSync(copy, "utf8")).toBe("by hand");
    expect(statSync(copy).mode & 0o777).toBe(0o640);
  });

  test("saves an executable that it did not install, and no earlier one of its own", async () => {
    const it = machine();
    it.edit("usr/local/bin/crigc", "a script of the site", 0o755);
    await it.install();
    const copy = it.path("var/lib/crigc/replaced-bin-crigc");
    expect(readFileSync(copy, "utf8")).toBe("a script of the site");
    expect(statSync(copy).mode & 0o777).toBe(0o755);
    rmSync(copy);
    await it.upgrade();
    expect(existsSync(copy)).toBe(false);
    expect(it.read("usr/local/bin/crigc")).toContain("second");
  });

  test("without --bin-dir and --init keeps those of an earlier installation", async () => {
    const it = machine();
    await it.install({ binDirectory: "/opt/bin", init: "none" });
    expect(await it.install({ binDirectory: null })).toEqual([]);
    await it.uninstall(false);
    await it.install({ binDirectory: null });
    expect([it.has("usr/local/bin/crigc"), it.has(UNIT)]).toEqual([true, true]);
  });

  test("with another --bin-dir removes the directories that it made for the former one", async () => {
    const it = machine();
    const before = it.tree();
    await it.install({ binDirectory: "/opt/crigc/bin" });
    await it.install();
    expect(it.has("opt")).toBe(false);
    expect(it.read(UNIT)).toContain("=/usr/local/bin/crigc run");
    await it.uninstall(true);
    expect(changesOf(before, it.tree())).toEqual({});
  });

  test("keeps --baseline in force on an upgrade without it, unless the operator removed its file", async () => {
    const it = machine();
    const dropIn = "etc/systemd/system/crigc.service.d/10-baseline.conf";
    await it.install({ baseline: true });
    expect(await it.install()).toEqual([]);
    expect(it.read(dropIn)).toContain("ExecStartPre=/usr/local/bin/crigc keep baseline --once\n");
    rmSync(it.path(dropIn));
    await it.install();
    expect(it.has(dropIn)).toBe(false);
  });

  test.each(["openrc", "none"] as const)(
    "with --init %s removes the unit of an earlier installation, saves it if it was edited, and uninstall restores the tree",
    async (init) => {
      const it = machine();
      const before = it.tree();
      await it.install({ baseline: true });
      it.edit(UNIT, "edited");
      await it.install({ init });
      expect(it.read("var/lib/crigc/replaced-crigc.service")).toBe("edited");
      if (init === "openrc")
        expect(it.tree()).toMatchObject({
          "etc/init.d/crigc": expect.stringMatching(/^file 755/),
          "etc/runlevels/default/crigc": "link /etc/init.d/crigc",
        });
      const units = Object.keys(it.tree()).filter((path) => /systemd.*crigc\./.test(path));
      expect(units).toEqual([]);
      await it.uninstall(true);
      expect(changesOf(before, it.tree())).toEqual({});
    },
  );

  test("a tree without a system, which is packed or laid over another one later, gets the systemd unit, twice the same", async () => {
    const it = machine();
    const root = join(it.top, "overlay");
    mkdirSync(join(root, "usr/lib/systemd/system"), { recursive: true });
    await it.install({ root, from: "/bin/true" });
    const after = treeOf(root);
    for (const path of ["usr/local/bin/crigc", "etc/crigc/crigc.yaml", "etc/crigc/keep.d", UNIT])
      expect(after[path]).toBeDefined();
    expect(await it.install({ root, from: "/bin/true" })).toEqual([]);
  });

  const link = (target: string, path: string): void => symlinkSync(target, path);
  const spoilers: Readonly<
    Record<string, (it: ReturnType<typeof machine>) => Partial<InstallOptions> | void>
  > = {
    "an executable whose loader is missing": () => ({ from: "/bin/true" }),
    "an executable that is not there": ({ top }) => ({ from: join(top, "crigc-linux-arm64") }),
    "a tree without an init system": ({ path }) =>
      rmSync(path("usr/lib/systemd"), { recursive: true }),
    "a masked service": ({ path }) => link("/dev/null", path(UNIT)),
    "a link in place of a file": ({ top, path }) =>
      link(put(top, "secret"), path("usr/local/bin/crigc")),
  };

  test.each(Object.keys(spoilers))("refuses %s before anything is written", async (what) => {
    const it = machine();
    const options = spoilers[what]?.(it) ?? {};
    const before = treeOf(it.top);
    const refusal = await it.install(options).catch((thrown: unknown) => thrown);
    expect(refusal).toBeInstanceOf(HostError);
    // The loader is that of the machine.
    const message = messageOf(refusal)
      .replaceAll(it.top, "TOP")
      .replace(/needs \S+,/, "needs LOADER,");
    expect(message).toMatchSnapshot();
    expect(treeOf(it.top)).toEqual(before);
  });

  test("ignores an invalid manifest and saves the existing files", async () => {
    const it = machine();
    it.edit("var/lib/crigc/install.json", '{"directories":["/etc"],"files":{"../x":1}}');
    await it.install();
    expect(await it.install()).toEqual([]);
  });
});

test("absolute links in the tree resolve inside it", async () => {
  const it = machine();
  rmSync(it.path("usr/local/bin"), { recursive: true });
  mkdirSync(it.path("data/bin"), { recursive: true });
  symlinkSync("/data/bin", it.path("usr/local/bin"));
  await it.install();
  expect(it.tree()["data/bin/crigc"]).toStartWith("file 755");
});

describe("uninstall", () => {
  test("without --purge keeps a copy of each changed file", async () => {
    const it = machine();
    await it.install();
    it.edit(UNIT, "[Service]\n# edited\n");
    it.edit("usr/local/bin/crigc", "another program", 0o755);
    expect(wordsOf((await it.uninstall(false)) ?? [])).toContain(`move /${UNIT}`);
    expect(it.read("var/lib/crigc/replaced-crigc.service")).toContain("edited");
    expect(it.read("var/lib/crigc/replaced-bin-crigc")).toBe("another program");
    expect([it.has(UNIT), it.has("usr/local/bin/crigc")]).toEqual([false, false]);
  });

  test("keeps directories that others use by then", async () => {
    const it = machine();
    await it.install({ binDirectory: "/opt/bin" });
    it.edit("opt/bin/other", "theirs");
    await it.uninstall(true);
    expect(it.has("opt/bin/other")).toBe(true);
  });

  test("ignores paths in a manifest that install never creates", async () => {
    const it = machine();
    await it.install();
    it.edit("etc/shadow", "secret");
    const path = it.path("var/lib/crigc/install.json");
    const manifest = JSON.parse(readFileSync(path, "utf8")) as { files: Record<string, string> };
    manifest.files["/etc/shadow"] = "0".repeat(64);
    writeFileSync(path, JSON.stringify(manifest));
    chmodSync(path, 0o600);
    await it.uninstall(true);
    expect(it.has("etc/shadow")).toBe(true);
  });
});

describe("the running system", () => {
  const wanted: InstallRequest = {
    version: "1.0.0",
    init: "systemd",
    executable: { path: "/usr/local/bin/crigc", from: "/proc/self/exe", sha256: "a".repeat(64) },
    shellTexts,
    baseline: false,
    live: true,
    stops: false,
    start: false,
  };
  const commandsIn = (steps: readonly Step[]): readonly string[] =>
    steps.flatMap((step) => (step.kind === "command" ? [step.words.join(" ")] : []));
  /** What an installation on a new machine, or after a first one, runs. */
  async function planned(changes: Partial<InstallRequest>, { after }: { readonly after: boolean }) {
    const it = machine();
    const tree = new RootedTree(it.root);
    if (after) await it.install();
    const before = parseManifest((await tree.readText(installed.manifest)) ?? "");
    const sha256 = before?.files["/usr/local/bin/crigc"] ?? wanted.executable.sha256;
    const request = { ...wanted, executable: { ...wanted.executable, sha256 }, ...changes };
    return { steps: await plannedInstall(tree, request, before), tree, before };
  }

  test("is reloaded, restarted, started or left alone, as the installation asks for", async () => {
    const page = { shellTexts: { ...wanted.shellTexts, man: "another page" } };
    const [FIRST, AGAIN] = [{ after: false }, { after: true }];
    const cases: readonly (readonly [string, Partial<InstallRequest>, typeof FIRST])[] = [
      ["a first installation, which starts nothing", {}, FIRST],
      ["--start", { start: true }, FIRST],
      ["--start on OpenRC", { start: true, init: "openrc" }, FIRST],
      ["another tree", { live: false, start: true }, FIRST],
      ["nothing new", {}, AGAIN],
      ["a new executable", { executable: wanted.executable }, AGAIN],
      ["a new manual page", page, AGAIN],
      ["another init system", { init: "none", live: false, stops: true }, AGAIN],
    ];
    const said: string[] = [];
    for (const [what, changes, after] of cases)
      said.push([what, ...commandsIn((await planned(changes, after)).steps)].join("\n  "));
    expect(said.join("\n")).toMatchSnapshot();
  });

  test("stops the agent, if it has a unit, before anything is removed, and reloads units afterwards", async () => {
    const { tree, before } = await planned({}, { after: true });
    if (before === null) throw new Error("the manifest is missing");
    const steps = await plannedRemoval(tree, { purge: true, live: true }, before);
    const all = wordsOf(steps);
    expect([all[0], all.at(-1)]).toEqual(["command", "command"]);
    expect(commandsIn(steps)).toEqual([
      "systemctl stop crigc.servic[e]",
      "systemctl daemon-reload",
    ]);
  });
});
