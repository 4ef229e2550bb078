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
import { dirname, join } from "node:path";

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

/** A root file system with systemd in it, and an executable outside. */
function machine(): { readonly root: string; readonly from: string; readonly outside: string } {
  const top = scratch();
  const root = join(top, "root");
  put(root, "usr/lib/systemd/systemd", "init", 0o755);
  put(root, "etc/os-release", "ID=debian\n");
  mkdirSync(join(root, "usr/local/bin"), { recursive: true });
  mkdirSync(join(root, "etc/systemd/system/multi-user.target.wants"), { recursive: true });
  mkdirSync(join(root, "var/lib"), { recursive: true });
  return {
    root,
    from: put(top, "crigc-1", "\x7fELF, the first executable", 0o755),
    outside: put(top, "outside/secret"),
  };
}

const optionsFor = (root: string, from: string): InstallOptions => ({
  version: "1.0.0",
  root,
  from,
  binDirectory: "/usr/local/bin",
  init: null,
  shellTexts: { man: "the page", bash: "for bash", zsh: "for zsh", fish: "for fish" },
  baseline: false,
  start: false,
  dryRun: false,
});

const BASH = "usr/local/share/bash-completion/completions/crigc";

const refusalOf = async (action: Promise<unknown>): Promise<string> =>
  action.then(() => "it was not refused", messageOf);

const wordsOf = (steps: readonly Step[]): readonly string[] =>
  steps.map((step) => ("path" in step ? `${step.kind} ${step.path}` : step.kind));

describe("install", () => {
  test("creates exactly the executable, manual page, completions, enabled unit, configuration, keep directory and state directory", async () => {
    const { root, from } = machine();
    const before = treeOf(root);
    await install(optionsFor(root, from), silent);
    const changes = changesOf(before, treeOf(root));
    expect(
      Object.entries(changes).map(
        ([path, what]) => `${path}: ${what.split(" ").slice(0, 2).join(" ")}`,
      ),
    ).toEqual([
      "etc/crigc: directory 755",
      "etc/crigc/conf.d: directory 755",
      "etc/crigc/crigc.yaml: file 644",
      "etc/crigc/keep.d: directory 755",
      "etc/fish: directory 755",
      "etc/fish/completions: directory 755",
      "etc/fish/completions/crigc.fish: file 644",
      "etc/systemd/system/crigc.service: file 644",
      "etc/systemd/system/multi-user.target.wants/crigc.service: link /etc/systemd/system/crigc.service",
      "usr/local/bin/crigc: file 755",
      "usr/local/share: directory 755",
      "usr/local/share/bash-completion: directory 755",
      "usr/local/share/bash-completion/completions: directory 755",
      "usr/local/share/bash-completion/completions/crigc: file 644",
      "usr/local/share/man: directory 755",
      "usr/local/share/man/man8: directory 755",
      "usr/local/share/man/man8/crigc.8: file 644",
      "usr/local/share/zsh: directory 755",
      "usr/local/share/zsh/site-functions: directory 755",
      "usr/local/share/zsh/site-functions/_crigc: file 644",
      "var/lib/crigc: directory 700",
      "var/lib/crigc/install.json: file 600",
    ]);
    expect(readFileSync(join(root, "etc/systemd/system/crigc.service"), "utf8")).toContain(
      "ExecStart=/usr/local/bin/crigc run\n",
    );
  });

  test("changes nothing when run again", async () => {
    const { root, from } = machine();
    await install(optionsFor(root, from), silent);
    const before = treeOf(root);
    expect(await install(optionsFor(root, from), silent)).toEqual([]);
    expect(treeOf(root)).toEqual(before);
  });

  test("as a dry run lists the steps and does none of them", async () => {
    const { root, from } = machine();
    const before = treeOf(root);
    const planned = await install({ ...optionsFor(root, from), dryRun: true }, silent);
    expect(treeOf(root)).toEqual(before);
    expect(await install(optionsFor(root, from), silent)).toEqual(planned);
    expect(wordsOf(planned)).toContain("executable /usr/local/bin/crigc");
  });

  test("as an upgrade replaces the executable and keeps configuration, keep rules and ledger", async () => {
    const { root, from } = machine();
    await install(optionsFor(root, from), silent);
    const theirs = [
      put(
        root,
        "etc/crigc/crigc.yaml",
        "apiVersion: crigc/v1\nkind: CrigcConfiguration\nmaxImages: 5\n",
      ),
      put(root, "etc/crigc/conf.d/10-ours.yaml", "x"),
      put(root, "etc/crigc/keep.d/base.list", "nginx"),
      put(root, "var/lib/crigc/ledger.db", "memory"),
    ];
    const before = theirs.map((path) => readFileSync(path, "utf8"));
    const next = put(dirname(root), "crigc-2", "\x7fELF, the second executable", 0o755);
    const steps = await install({ ...optionsFor(root, next), version: "2.0.0" }, silent);
    expect(wordsOf(steps)).toEqual([
      "executable /usr/local/bin/crigc",
      "text /var/lib/crigc/install.json",
    ]);
    expect(theirs.map((path) => readFileSync(path, "utf8"))).toEqual(before);
    expect(readFileSync(join(root, "usr/local/bin/crigc"), "utf8")).toBe(
      "\x7fELF, the second executable",
    );
  });

  test("saves a hand-edited unit when replacing it", async () => {
    const { root, from } = machine();
    await install(optionsFor(root, from), silent);
    put(root, "etc/systemd/system/crigc.service", "[Service]\nExecStart=/bin/edited\n");
    const steps = await install(optionsFor(root, from), silent);
    expect(wordsOf(steps)).toEqual([
      "move /etc/systemd/system/crigc.service",
      "text /etc/systemd/system/crigc.service",
    ]);
    expect(readFileSync(join(root, "var/lib/crigc/replaced-crigc.service"), "utf8")).toContain(
      "edited",
    );
  });

  test("never overwrites a saved copy by the one of a second upgrade", async () => {
    const { root, from } = machine();
    await install(optionsFor(root, from), silent);
    for (const edit of ["first", "second", "second", "third"]) {
      put(root, "etc/systemd/system/crigc.service", `[Service]\n# ${edit}\n`);
      await install(optionsFor(root, from), silent);
    }
    const copies = readdirSync(join(root, "var/lib/crigc")).filter((it) => it.startsWith("rep"));
    const texts = copies.map((name) => readFileSync(join(root, "var/lib/crigc", name), "utf8"));
    expect(texts.toSorted()).toEqual(
      ["first", "second", "third"].map((edit) => `[Service]\n# ${edit}\n`),
    );
  });

  test("saves a hand-edited unit on another filesystem too", async () => {
    const { root, from } = machine();
    expect(Bun.spawnSync(["mount", "-t", "tmpfs", "none", join(root, "var/lib")]).exitCode).toBe(0);
    using _ = { [Symbol.dispose]: () => void Bun.spawnSync(["umount", join(root, "var/lib")]) };
    put(root, "etc/systemd/system/crigc.service", "by hand", 0o640);
    await install(optionsFor(root, from), silent);
    const copy = join(root, "var/lib/crigc/replaced-crigc.service");
    expect(readFileSync(copy, "utf8")).toBe("by hand");
    expect(statSync(copy).mode & 0o777).toBe(0o640);
  });

  test("saves an executable that it did not install, and no earlier one of its own", async () => {
    const { root, from } = machine();
    const executable = put(root, "usr/local/bin/crigc", "a script of the site", 0o755);
    await install(optionsFor(root, from), silent);
    const copy = join(root, "var/lib/crigc/replaced-bin-crigc");
    expect(readFileSync(copy, "utf8")).toBe("a script of the site");
    expect(statSync(copy).mode & 0o777).toBe(0o755);
    rmSync(copy);
    const next = put(dirname(root), "crigc-2", "\x7fELF, the second executable", 0o755);
    await install(optionsFor(root, next), silent);
    expect(existsSync(copy)).toBe(false);
    expect(readFileSync(executable, "utf8")).toContain("second");
  });

  test("with another --bin-dir moves executable, manual page and completions, and updates the unit", async () => {
    const { root, from } = machine();
    await install(optionsFor(root, from), silent);
    await install({ ...optionsFor(root, from), binDirectory: "/opt/bin" }, silent);
    const after = treeOf(root);
    expect(
      Object.keys(after).filter(
        (path) => /crigc(\.8|\.fish)?$/.test(path) && !path.startsWith("etc/cr"),
      ),
    ).toEqual([
      "etc/fish/completions/crigc.fish",
      "opt/bin/crigc",
      "opt/share/bash-completion/completions/crigc",
      "opt/share/man/man8/crigc.8",
      "opt/share/zsh/site-functions/_crigc",
      "var/lib/crigc",
    ]);
    expect(after["opt/bin/crigc"]).toStartWith("file 755");
    expect(readFileSync(join(root, "etc/systemd/system/crigc.service"), "utf8")).toContain(
      "ExecStart=/opt/bin/crigc run",
    );
  });

  test("without --bin-dir and --init keeps those of an earlier installation", async () => {
    const { root, from } = machine();
    const options = { ...optionsFor(root, from), binDirectory: null };
    await install({ ...options, binDirectory: "/opt/bin", init: "none" }, silent);
    expect(await install(options, silent)).toEqual([]);
    await uninstall({ root, purge: false, dryRun: false }, silent);
    await install(options, silent);
    const after = treeOf(root);
    expect(after["usr/local/bin/crigc"]).toBeDefined();
    expect(after["etc/systemd/system/crigc.service"]).toBeDefined();
  });

  test("with another --bin-dir removes the directories that it made for the former one", async () => {
    const { root, from } = machine();
    const before = treeOf(root);
    await install({ ...optionsFor(root, from), binDirectory: "/opt/crigc/bin" }, silent);
    await install(optionsFor(root, from), silent);
    expect(existsSync(join(root, "opt"))).toBe(false);
    await uninstall({ root, purge: true, dryRun: false }, silent);
    expect(changesOf(before, treeOf(root))).toEqual({});
  });

  test.each([
    ["/usr/bin", "usr/share/man/man8/crigc.8"],
    ["/bin", "usr/share/man/man8/crigc.8"],
    ["/usr/local/sbin", "usr/local/share/man/man8/crigc.8"],
    ["/opt/crigc", "opt/crigc/share/man/man8/crigc.8"],
  ])("with the executable in %s puts the manual page at %s", async (binDirectory, page) => {
    const { root, from } = machine();
    await install({ ...optionsFor(root, from), binDirectory }, silent);
    expect(readFileSync(join(root, page), "utf8")).toBe("the page");
  });

  test("saves a completion that another program installed", async () => {
    const { root, from } = machine();
    put(root, "etc/fish/completions/crigc.fish", "by hand");
    await install(optionsFor(root, from), silent);
    expect(readFileSync(join(root, "etc/fish/completions/crigc.fish"), "utf8")).toBe("for fish");
    expect(readFileSync(join(root, "var/lib/crigc/replaced-crigc.fish"), "utf8")).toBe("by hand");
  });

  test("keeps --baseline in force on an upgrade without it", async () => {
    const { root, from } = machine();
    await install({ ...optionsFor(root, from), baseline: true }, silent);
    expect(await install(optionsFor(root, from), silent)).toEqual([]);
    expect(
      readFileSync(join(root, "etc/systemd/system/crigc.service.d/10-baseline.conf"), "utf8"),
    ).toContain("ExecStartPre=/usr/local/bin/crigc keep baseline --once\n");
  });

  test("keeps out a baseline that the operator removed, on an upgrade", async () => {
    const { root, from } = machine();
    await install({ ...optionsFor(root, from), baseline: true }, silent);
    const dropIn = join(root, "etc/systemd/system/crigc.service.d/10-baseline.conf");
    rmSync(dropIn);
    await install(optionsFor(root, from), silent);
    expect(existsSync(dropIn)).toBe(false);
  });

  test.each(["openrc", "none"] as const)(
    "with --init %s removes the unit of an earlier installation, and uninstall restores the tree",
    async (init) => {
      const { root, from } = machine();
      const before = treeOf(root);
      await install({ ...optionsFor(root, from), baseline: true }, silent);
      await install({ ...optionsFor(root, from), init }, silent);
      const units = Object.keys(treeOf(root)).filter((path) => /systemd.*crigc\./.test(path));
      expect(units).toEqual([]);
      await uninstall({ root, purge: true, dryRun: false }, silent);
      expect(changesOf(before, treeOf(root))).toEqual({});
    },
  );

  test("with another --init saves a hand-edited unit of an earlier installation", async () => {
    const { root, from } = machine();
    await install(optionsFor(root, from), silent);
    put(root, "etc/systemd/system/crigc.service", "edited");
    await install({ ...optionsFor(root, from), init: "none" }, silent);
    expect(existsSync(join(root, "etc/systemd/system/crigc.service"))).toBe(false);
    expect(readFileSync(join(root, "var/lib/crigc/replaced-crigc.service"), "utf8")).toBe("edited");
  });

  test("on OpenRC writes the script and links it into the default runlevel", async () => {
    const { root, from } = machine();
    rmSync(join(root, "usr/lib/systemd"), { recursive: true });
    put(root, "sbin/openrc-run", "", 0o755);
    await install(optionsFor(root, from), silent);
    const after = treeOf(root);
    expect(after["etc/init.d/crigc"]).toStartWith("file 755");
    expect(after["etc/runlevels/default/crigc"]).toBe("link /etc/init.d/crigc");
    expect(after["etc/systemd/system/crigc.service"]).toBeUndefined();
  });

  test("saves all hand-edited files of the same name", async () => {
    const { root, from } = machine();
    const options = { ...optionsFor(root, from), init: "openrc", baseline: true } as const;
    await install(options, silent);
    const edited = ["etc/init.d/crigc", "etc/conf.d/crigc", BASH];
    for (const path of edited) put(root, path, `edited ${path}`);
    await install(options, silent);
    const kept = ["init.d-crigc", "conf.d-crigc", "completions-crigc"].map((name) =>
      readFileSync(join(root, "var/lib/crigc", `replaced-${name}`), "utf8"),
    );
    expect(kept).toEqual(edited.map((path) => `edited ${path}`));
  });

  test("fails and changes nothing if no init system is found", async () => {
    const { root, from } = machine();
    rmSync(join(root, "usr/lib/systemd"), { recursive: true });
    const before = treeOf(root);
    expect(await refusalOf(install(optionsFor(root, from), silent))).toContain("--init");
    expect(treeOf(root)).toEqual(before);
  });

  test("a tree without a system, which is packed or laid over another one later, gets the systemd unit, twice the same", async () => {
    const { outside } = machine();
    const root = join(dirname(outside), "overlay");
    mkdirSync(join(root, "usr/lib/systemd/system"), { recursive: true });
    await install(optionsFor(root, "/bin/true"), silent);
    const after = treeOf(root);
    for (const path of ["usr/local/bin/crigc", "etc/crigc/crigc.yaml", "etc/crigc/keep.d"])
      expect(after[path]).toBeDefined();
    expect(after["etc/systemd/system/crigc.service"]).toBeDefined();
    expect(await install(optionsFor(root, "/bin/true"), silent)).toEqual([]);
  });

  test("refuses an executable whose loader is missing in the tree before anything is written", async () => {
    const { root } = machine();
    const before = treeOf(root);
    expect(await refusalOf(install(optionsFor(root, "/bin/true"), silent))).toContain(
      "it needs /lib",
    );
    expect(treeOf(root)).toEqual(before);
  });

  test.each([
    ["is not there", (top: string) => join(top, "crigc-linux-arm64"), "it does not exist"],
    ["is a directory", (top: string) => top, "it is a directory"],
    [
      "is an archive",
      (top: string) => put(top, "crigc.tar.gz", "\x1f\x8b not unpacked"),
      "it is not a Linux executable",
    ],
    ["is empty", (top: string) => put(top, "crigc-linux-x64"), "it is not a Linux executable"],
  ])("refuses an executable that %s before anything is written", async (_, from, words) => {
    const { root } = machine();
    const before = treeOf(root);
    const refusal = install(optionsFor(root, from(dirname(root))), silent);
    expect(await refusal.catch((thrown: unknown) => thrown)).toBeInstanceOf(HostError);
    expect(await refusalOf(refusal)).toContain(words);
    expect(treeOf(root)).toEqual(before);
  });

  test("refuses a missing tree and does not create it", async () => {
    const { root, from } = machine();
    const absent = `${root}-misspelt`;
    const options = { ...optionsFor(absent, from), init: "none" } as const;
    expect(await refusalOf(install(options, silent))).toContain("directory not found");
    expect(existsSync(absent)).toBe(false);
  });

  test("fails for a masked service and changes nothing", async () => {
    const { root, from } = machine();
    symlinkSync("/dev/null", join(root, "etc/systemd/system/crigc.service"));
    const before = treeOf(root);
    expect(await refusalOf(install(optionsFor(root, from), silent))).toContain("masked");
    expect(treeOf(root)).toEqual(before);
  });

  test("ignores an invalid manifest and saves the existing files", async () => {
    const { root, from } = machine();
    put(root, "var/lib/crigc/install.json", '{"directories":["/etc"],"files":{"../x":1}}');
    await install(optionsFor(root, from), silent);
    expect(await install(optionsFor(root, from), silent)).toEqual([]);
  });
});

describe("links in the tree", () => {
  test("resolve inside the tree if absolute", async () => {
    const { root, from } = machine();
    rmSync(join(root, "usr/local/bin"), { recursive: true });
    mkdirSync(join(root, "data/bin"), { recursive: true });
    symlinkSync("/data/bin", join(root, "usr/local/bin"));
    await install(optionsFor(root, from), silent);
    expect(treeOf(root)["data/bin/crigc"]).toStartWith("file 755");
  });

  test("are refused in place of the file itself", async () => {
    const { root, from, outside } = machine();
    symlinkSync(outside, join(root, "usr/local/bin/crigc"));
    expect(await refusalOf(install(optionsFor(root, from), silent))).toContain("a symbolic link");
    expect(readFileSync(outside, "utf8")).toBe("");
  });
});

describe("uninstall", () => {
  test("with --purge restores the tree", async () => {
    const { root, from } = machine();
    const before = treeOf(root);
    await install(
      { ...optionsFor(root, from), baseline: true, binDirectory: "/opt/crigc/bin" },
      silent,
    );
    put(root, "etc/crigc/keep.d/mine.list", "nginx");
    put(root, "var/lib/crigc/ledger.db", "memory");
    await uninstall({ root, purge: true, dryRun: false }, silent);
    expect(changesOf(before, treeOf(root))).toEqual({});
  });

  test("without --purge keeps configuration and ledger, which a later --purge removes", async () => {
    const { root, from } = machine();
    const before = treeOf(root);
    await install(optionsFor(root, from), silent);
    put(root, "var/lib/crigc/ledger.db", "memory");
    await uninstall({ root, purge: false, dryRun: false }, silent);
    expect(Object.keys(changesOf(before, treeOf(root)))).toEqual([
      "etc/crigc",
      "etc/crigc/conf.d",
      "etc/crigc/crigc.yaml",
      "etc/crigc/keep.d",
      "var/lib/crigc",
      "var/lib/crigc/install.json",
      "var/lib/crigc/ledger.db",
    ]);
    await uninstall({ root, purge: true, dryRun: false }, silent);
    expect(changesOf(before, treeOf(root))).toEqual({});
  });

  test("without --purge keeps a copy of each changed file", async () => {
    const { root, from } = machine();
    await install(optionsFor(root, from), silent);
    put(root, "etc/systemd/system/crigc.service", "[Service]\n# edited\n");
    put(root, "usr/local/bin/crigc", "another program", 0o755);
    const steps = await uninstall({ root, purge: false, dryRun: false }, silent);
    expect(wordsOf(steps ?? [])).toContain("move /etc/systemd/system/crigc.service");
    const kept = (name: string): string => readFileSync(join(root, "var/lib/crigc", name), "utf8");
    expect(kept("replaced-crigc.service")).toContain("edited");
    expect(kept("replaced-bin-crigc")).toBe("another program");
    expect(treeOf(root)["etc/systemd/system/crigc.service"]).toBeUndefined();
    expect(treeOf(root)["usr/local/bin/crigc"]).toBeUndefined();
  });

  test("keeps directories that others use meanwhile", async () => {
    const { root, from } = machine();
    await install({ ...optionsFor(root, from), binDirectory: "/opt/bin" }, silent);
    put(root, "opt/bin/other", "theirs");
    await uninstall({ root, purge: true, dryRun: false }, silent);
    expect(treeOf(root)["opt/bin/other"]).toStartWith("file");
  });

  test("as a dry run lists the steps and does none of them", async () => {
    const { root, from } = machine();
    await install(optionsFor(root, from), silent);
    const before = treeOf(root);
    const steps = await uninstall({ root, purge: true, dryRun: true }, silent);
    expect(treeOf(root)).toEqual(before);
    expect(wordsOf(steps ?? [])).toContain("remove-tree /var/lib/crigc");
  });

  test("does nothing if nothing was installed", async () => {
    const { root } = machine();
    expect(await uninstall({ root, purge: true, dryRun: false }, silent)).toBeNull();
  });

  test("ignores paths in a manifest that install never creates", async () => {
    const { root, from } = machine();
    await install(optionsFor(root, from), silent);
    put(root, "etc/shadow", "secret");
    const path = join(root, "var/lib/crigc/install.json");
    const manifest = JSON.parse(readFileSync(path, "utf8")) as {
      files: Record<string, string>;
      links: string[];
    };
    manifest.files["/etc/shadow"] = "0".repeat(64);
    writeFileSync(path, JSON.stringify(manifest));
    chmodSync(path, 0o600);
    await uninstall({ root, purge: true, dryRun: false }, silent);
    expect(treeOf(root)["etc/shadow"]).toStartWith("file");
  });
});

describe("the running system", () => {
  const wanted: InstallRequest = {
    version: "1.0.0",
    init: "systemd",
    executable: { path: "/usr/local/bin/crigc", from: "/proc/self/exe", sha256: "a".repeat(64) },
    shellTexts: optionsFor("", "").shellTexts,
    baseline: false,
    live: true,
    stops: false,
    start: false,
  };
  const commandsIn = (steps: readonly Step[]): readonly string[] =>
    steps.flatMap((step) => (step.kind === "command" ? [step.words.join(" ")] : []));
  const RESTART = [
    "systemctl daemon-reload",
    "systemctl try-restart --no-block crigc.service",
  ] as const;

  /** What an installation on a new machine, or after a first one, runs. */
  async function planned(changes: Partial<InstallRequest>, { after }: { readonly after: boolean }) {
    const { root, from } = machine();
    const tree = new RootedTree(root);
    if (after) await install(optionsFor(root, from), silent);
    const before = parseManifest((await tree.readText(installed.manifest)) ?? "");
    const sha256 = before?.files["/usr/local/bin/crigc"] ?? wanted.executable.sha256;
    const request = { ...wanted, executable: { ...wanted.executable, sha256 }, ...changes };
    return { steps: await plannedInstall(tree, request, before), tree, before };
  }

  test.each<[string, Partial<InstallRequest>, boolean, readonly string[]]>([
    ["reloads units after a first installation, and starts nothing", {}, false, RESTART],
    [
      "starts the agent with --start",
      { start: true },
      false,
      [...RESTART, "systemctl start --no-block crigc.service"],
    ],
    [
      "starts the agent with --start on OpenRC",
      { start: true, init: "openrc" },
      false,
      ["rc-service --ifstarted crigc restart", "rc-service crigc start"],
    ],
    ["is not touched if the tree is another one", { live: false, start: true }, false, []],
    ["is not touched if nothing changed", {}, true, []],
    [
      "restarts a running agent when its executable has changed",
      { executable: wanted.executable },
      true,
      RESTART,
    ],
    [
      "is not reloaded for a new manual page",
      { shellTexts: { ...wanted.shellTexts, man: "another page" } },
      true,
      [],
    ],
    [
      "stops the service of another init system before it is removed",
      { init: "none", live: false, stops: true },
      true,
      ["systemctl stop crigc.service", "systemctl daemon-reload"],
    ],
  ])("%s", async (_, changes, after, commands) => {
    expect(commandsIn((await planned(changes, { after })).steps)).toEqual(commands);
  });

  test("stops the agent before anything is removed, and reloads units afterwards", async () => {
    const { tree, before } = await planned({}, { after: true });
    if (before === null) throw new Error("the manifest is missing");
    const steps = await plannedRemoval(tree, { purge: true, live: true }, before);
    const all = wordsOf(steps);
    expect([all[0], all.at(-1)]).toEqual(["command", "command"]);
    expect(commandsIn(steps)).toEqual(["systemctl stop crigc.service", "systemctl daemon-reload"]);
  });
});
