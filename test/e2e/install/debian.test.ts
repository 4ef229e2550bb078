// Installing into a Debian root file system that is not running, checked by the programs that would read what was installed.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

import { SHELL_FILES } from "../../../src/install/install.ts";
import {
  command,
  type CommandResult,
  inRoot,
  tryCommand,
} from "../../support/containerd/command.ts";
import { program } from "../../support/program.ts";
import { scratch } from "../../support/scratch.ts";
import { changesOf, treeOf } from "../../support/tree.ts";

setDefaultTimeout(120_000);

const cache = resolve(import.meta.dir, "../../../.cache/debian-root");
const top = scratch();
const root = `${top}/debian`;
let before: Readonly<Record<string, string>>;

beforeAll(async () => {
  mkdirSync(root);
  await command("tar", "-xf", `${cache}/root.tar`, "-C", root);
  before = treeOf(root);
});

const crigc = (...words: readonly string[]): Promise<CommandResult> =>
  tryCommand(["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", program, ...words]);

/** What is written to /run is gone afterwards. */
const inside = (...words: readonly string[]) => inRoot(root, words, { ownRun: true });

const UNIT = "/etc/systemd/system/crigc.service";
const verified = () => inside("systemd-analyze", "verify", "--man=no", UNIT);
const valid = { exitCode: 0, stdout: "", stderr: "" };

describe("a Debian that is not running", () => {
  test("gets exactly these files", async () => {
    const result = await crigc("install", `--root=${root}`);
    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    const changes = Object.entries(changesOf(before, treeOf(root)));
    expect(changes.map(([path, what]) => `${path}: ${what.replace(/ [0-9a-f]{16}$/, "")}`)).toEqual(
      [
        "etc/crigc: directory 755 0:0",
        "etc/crigc/conf.d: directory 755 0:0",
        "etc/crigc/crigc.yaml: file 644 0:0",
        "etc/crigc/keep.d: directory 755 0:0",
        "etc/fish: directory 755 0:0",
        "etc/fish/completions: directory 755 0:0",
        "etc/fish/completions/crigc.fish: file 644 0:0",
        "etc/systemd/system/crigc.service: file 644 0:0",
        "etc/systemd/system/multi-user.target.wants/crigc.service: link /etc/systemd/system/crigc.service",
        "usr/local/bin/crigc: file 755 0:0",
        "usr/local/share/bash-completion: directory 755 0:0",
        "usr/local/share/bash-completion/completions: directory 755 0:0",
        "usr/local/share/bash-completion/completions/crigc: file 644 0:0",
        "usr/local/share/man/man8: directory 755 0:0",
        "usr/local/share/man/man8/crigc.8: file 644 0:0",
        "usr/local/share/zsh: directory 755 0:0",
        "usr/local/share/zsh/site-functions: directory 755 0:0",
        "usr/local/share/zsh/site-functions/_crigc: file 644 0:0",
        "var/lib/crigc: directory 700 0:0",
      ],
    );
  });

  test("has the texts that the executable prints, and runs it with the installed configuration", async () => {
    expect(readFileSync(`${root}${SHELL_FILES.man}`, "utf8")).toBe(
      (await crigc("help", "manual")).stdout,
    );
    for (const shell of ["bash", "zsh", "fish"] as const)
      expect(readFileSync(`${root}${SHELL_FILES[shell]}`, "utf8")).toBe(
        (await crigc("completion", shell)).stdout,
      );
    const { exitCode, stdout, stderr } = await inside("crigc", "config", "-o", "json");
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(JSON.parse(stdout).files).toEqual(["/etc/crigc/crigc.yaml"]);
  });

  test("has the service enabled, with a unit that systemd accepts and rates with an exposure of at most 2.0", async () => {
    expect((await inside("systemctl", "is-enabled", "crigc.service")).stdout.trim()).toBe(
      "enabled",
    );
    expect(await verified()).toEqual(valid);
    const limit = ["--offline=true", "--threshold=20"];
    const rated = await inside("systemd-analyze", "security", ...limit, UNIT);
    expect(rated.stdout).toContain("Overall exposure level for crigc.service");
    expect(rated.exitCode).toBe(0);
  });

  /** Empty directories, which other programs may use, stay. */
  const filesLeft = () =>
    Object.entries(changesOf(before, treeOf(root))).flatMap(([path, what]) =>
      what.startsWith("directory") ? [] : [path],
    );

  test("keeps keep rules and state on uninstall, and has no file of crigc after --purge", async () => {
    writeFileSync(`${root}/etc/crigc/keep.d/ours.list`, "nginx\n");
    writeFileSync(`${root}/var/lib/crigc/ledger.json`, "memory");
    const dry = await crigc("uninstall", `--root=${root}`, "--dry-run");
    expect(dry.stdout).toContain("would remove /usr/local/share/man/man8/crigc.8\n");
    expect(await crigc("uninstall", `--root=${root}`)).toMatchObject({ exitCode: 0, stderr: "" });
    expect(filesLeft()).toEqual(["etc/crigc/keep.d/ours.list", "var/lib/crigc/ledger.json"]);
    const purged = await crigc("uninstall", `--root=${root}`, "--purge");
    expect(purged).toMatchObject({ exitCode: 0, stderr: "" });
    expect(filesLeft()).toEqual([]);
  });
});

test("the cloud-config passes cloud-init's schema", async () => {
  const { stdout } = await crigc("print", "cloud-config");
  writeFileSync(`${root}/root/user-data`, stdout);
  const checked = await inside("cloud-init", "schema", "--config-file", "/root/user-data");
  expect(checked.stdout + checked.stderr).toContain("Valid cloud-config");
  expect(checked.exitCode).toBe(0);
});

test("OpenRC starts and stops the agent at low priority, and install --start names the next step", async () => {
  await command(
    "sh",
    "-ec",
    `tar -C '${cache}/openrc' -cf - . | tar -C '${root}' -xf - --keep-directory-symlink
     : >'${root}/etc/insserv.conf'
     printf '#!/sbin/openrc-run\\nstart() { :; }\\n' >'${root}/etc/init.d/localmount'
     chmod 755 '${root}/etc/init.d/localmount'`,
  );
  await command("rm", `${root}/usr/lib/systemd/systemd`);
  const installed = await crigc("install", `--root=${root}`);
  expect(installed).toMatchObject({ exitCode: 0 });
  // What a boot would have made before services start, and then the service.
  const script = `
    mount -t proc proc /proc
    mount -t proc proc "$0/proc"
    mount -t tmpfs tmpfs "$0/run"
    mount --rbind /dev "$0/dev"
    for name in starting started stopping inactive wasinactive failed hotplugged daemons options exclusive scheduled init.d tmp; do mkdir -p "$0/run/openrc/$name"; done
    : >"$0/run/openrc/softlevel"
    service() { chroot "$0" /sbin/rc-service crigc "$@" 2>/dev/null; }
    agent() { pgrep -f "^/usr/local/bin/crigc run"; }
    service start
    for try in 1 2 3 4 5 6 7 8 9 10; do [ -S "$0/run/crigc/crigc.sock" ] && break; sleep 0.5; done
    first=$(agent)
    echo "nice $(ps -o ni= -p "$first" | tr -d " ")"
    echo "io $(ionice -p "$first")"
    service status
    service stop
    agent || echo gone
    chroot "$0" /usr/local/bin/crigc install --start 2>/dev/null
    service stop`;
  const own = ["unshare", "--mount", "--pid", "--fork", "--kill-child"];
  const { stdout } = await tryCommand([...own, "bash", "-c", script, root]);
  for (const line of [
    "nice 10",
    "io best-effort: prio 7",
    "status: started",
    "gone",
    "next: crigc status",
  ])
    expect(stdout).toContain(line);
});
