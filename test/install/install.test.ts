// Installing into a tree, upgrading, and taking everything out again.

import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { deployFiles } from "../../src/install/deploy.ts";
import { install, type InstallOptions, uninstall } from "../../src/install/install.ts";
import { HostError, messageOf } from "../../src/model/errors.ts";
import { put, scratch } from "../support/scratch.ts";
import { changesOf, treeOf } from "../support/tree.ts";

const shellTexts = { man: "the page", bash: "for bash", zsh: "for zsh", fish: "for fish" };

/** A root file system with systemd in it, and an executable outside. */
function machine() {
  const top = scratch();
  const root = join(top, "root");
  put(root, "usr/lib/systemd/systemd", "init", 0o755);
  for (const path of ["usr/local/bin", "etc/systemd/system/multi-user.target.wants", "var/lib"])
    mkdirSync(join(root, path), { recursive: true });
  const usual = { root, from: put(top, "crigc-1", "first", 0o755), shellTexts, start: false };
  const saying = async (work: (say: (change: string) => void) => Promise<void> | void) => {
    const said: string[] = [];
    await work((change) => said.push(change));
    return said;
  };
  return {
    top,
    root,
    path: (path: string): string => join(root, path),
    read: (path: string): string => readFileSync(join(root, path), "utf8"),
    has: (path: string): boolean => existsSync(join(root, path)),
    edit: (path: string, text: string, mode?: number): string => put(root, path, text, mode),
    tree: () => treeOf(root),
    install: (changes: Partial<InstallOptions> = {}) =>
      saying((say) => install({ ...usual, dryRun: false, ...changes }, say)),
    /** Another version of the executable. */
    upgrade: () =>
      saying((say) =>
        install({ ...usual, from: put(top, "crigc-2", "second", 0o755), dryRun: false }, say),
      ),
    uninstall: (purge: boolean, dryRun = false) =>
      saying((say) => uninstall({ root, shellTexts, purge, dryRun }, say)),
  };
}

const UNIT = "etc/systemd/system/crigc.service";
const WANTS = "etc/systemd/system/multi-user.target.wants/crigc.service";
const CONFIG = "etc/crigc/crigc.yaml";

describe("install", () => {
  test("writes executable, unit, configuration, keep directory, manual page and completions, and enables the unit", async () => {
    const it = machine();
    const before = it.tree();
    await it.install();
    const added = Object.entries(changesOf(before, it.tree())).filter(
      ([, what]) => !what.startsWith("directory 755"),
    );
    expect(Object.fromEntries(added)).toMatchObject({
      "usr/local/bin/crigc": expect.stringContaining("file 755"),
      [UNIT]: expect.stringContaining("file 644"),
      [WANTS]: `link /${UNIT}`,
      [CONFIG]: expect.stringContaining("file 644"),
      "usr/local/share/man/man8/crigc.8": expect.stringContaining("file 644"),
      "usr/local/share/bash-completion/completions/crigc": expect.stringContaining("file 644"),
      "usr/local/share/zsh/site-functions/_crigc": expect.stringContaining("file 644"),
      "etc/fish/completions/crigc.fish": expect.stringContaining("file 644"),
      "var/lib/crigc": expect.stringContaining("directory 700"),
    });
    expect(added).toHaveLength(9);
    expect(statSync(it.path("etc/crigc/keep.d")).isDirectory()).toBe(true);
    expect(it.read(UNIT)).toBe(deployFiles["systemd-unit"]);
  });

  test("as a dry run names every change and makes none", async () => {
    const it = machine();
    const before = it.tree();
    const planned = await it.install({ dryRun: true });
    expect(it.tree()).toEqual(before);
    expect((await it.install()).map((change) => `would ${change}`)).toEqual(planned);
  });

  test("a second time changes nothing", async () => {
    const it = machine();
    await it.install();
    const before = it.tree();
    expect(await it.install()).toEqual(["already installed; nothing to do"]);
    expect(it.tree()).toEqual(before);
  });

  test("as an upgrade replaces executable and unit, and keeps configuration, drop-ins, keep rules and ledger", async () => {
    const it = machine();
    await it.install();
    it.edit(UNIT, "of an earlier version");
    const theirs = [
      CONFIG,
      "etc/crigc/conf.d/10-ours.yaml",
      "etc/crigc/keep.d/base.list",
      "etc/systemd/system/crigc.service.d/10-ours.conf",
      "var/lib/crigc/ledger.json",
    ];
    for (const path of theirs) it.edit(path, `our ${path}`);
    expect(await it.upgrade()).toEqual([
      "copy the executable to /usr/local/bin/crigc",
      `write /${UNIT}`,
    ]);
    expect(theirs.map(it.read)).toEqual(theirs.map((path) => `our ${path}`));
    expect(it.read("usr/local/bin/crigc")).toBe("second");
    expect(it.read(UNIT)).toBe(deployFiles["systemd-unit"]);
  });

  test("with OpenRC alone writes its script and puts it into the default runlevel", async () => {
    const it = machine();
    rmSync(it.path("usr/lib/systemd"), { recursive: true });
    it.edit("sbin/openrc-run", "init", 0o755);
    await it.install();
    expect(it.tree()).toMatchObject({
      "etc/init.d/crigc": expect.stringMatching(/^file 755/),
      "etc/runlevels/default/crigc": "link /etc/init.d/crigc",
    });
    expect(it.has(UNIT)).toBe(false);
  });

  test("into an empty directory, which is laid over a system later, writes the systemd unit below readable directories", async () => {
    const it = machine();
    const root = join(it.top, "overlay");
    mkdirSync(root);
    await it.install({ root });
    const after = treeOf(root);
    for (const path of ["usr/local/bin/crigc", CONFIG, UNIT, WANTS])
      expect(after[path]).toBeDefined();
    expect(after["var/lib"]).toStartWith("directory 755");
  });

  test("with --start where no init system runs is refused", async () => {
    const it = machine();
    expect(await it.install({ start: true }).then(String, messageOf)).toContain(
      "neither systemd nor OpenRC runs there",
    );
  });

  const spoilers: Readonly<Record<string, (it: ReturnType<typeof machine>) => void>> = {
    "unmask the service": ({ path }) => symlinkSync("/dev/null", path(UNIT)),
    "a link, directory or special file is there": ({ top, path }) =>
      symlinkSync(put(top, "secret"), path("usr/local/bin/crigc")),
  };
  test.each(Object.keys(spoilers))("is refused before anything is written if %s", async (what) => {
    const it = machine();
    spoilers[what]?.(it);
    const before = treeOf(it.top);
    const refusal = await it.install().catch((thrown: unknown) => thrown);
    expect(refusal).toBeInstanceOf(HostError);
    expect(messageOf(refusal)).toContain(what);
    expect(treeOf(it.top)).toEqual(before);
  });
});

describe("uninstall", () => {
  test("restores the tree, and finds nothing the second time", async () => {
    const it = machine();
    await it.install();
    await it.uninstall(false);
    const left = Object.entries(it.tree()).filter(([, what]) => !what.startsWith("directory"));
    expect(left.map(([path]) => path)).toEqual(["usr/lib/systemd/systemd"]);
    expect(it.has("etc/crigc")).toBe(false);
    expect(await it.uninstall(false)).toEqual(["crigc is not installed; nothing to do"]);
  });

  test("without --purge keeps edited files, keep rules and state", async () => {
    const it = machine();
    await it.install();
    const theirs = [UNIT, CONFIG, "etc/crigc/keep.d/ours.list", "var/lib/crigc/ledger.json"];
    for (const path of theirs) it.edit(path, `our ${path}`);
    expect(await it.uninstall(false)).toContain(
      `keep /${UNIT}, which was edited or is of another version`,
    );
    expect(theirs.map(it.read)).toEqual(theirs.map((path) => `our ${path}`));
    expect([it.has(WANTS), it.has("usr/local/bin/crigc")]).toEqual([false, false]);
  });

  test("with --purge removes configuration, keep rules and state", async () => {
    const it = machine();
    await it.install();
    it.edit(CONFIG, "ours");
    it.edit("var/lib/crigc/ledger.json", "ours");
    await it.uninstall(true);
    expect([it.has("etc/crigc"), it.has("var/lib/crigc")]).toEqual([false, false]);
  });

  test("as a dry run changes nothing", async () => {
    const it = machine();
    await it.install();
    const before = it.tree();
    expect(await it.uninstall(true, true)).toContain("would remove /usr/local/bin/crigc");
    expect(it.tree()).toEqual(before);
  });
});
