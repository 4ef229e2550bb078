// The packages: accepted by their distributions' linters, and installed, upgraded, removed and purged in a Debian.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import packaged from "../../../package.json" with { type: "json" };
import { command, inRoot, tryCommand } from "../../support/containerd/command.ts";
import { put, scratch } from "../../support/scratch.ts";
import { commit, released, top } from "./build.ts";

setDefaultTimeout(120_000);

const { version } = packaged;
const older = "0.0.9";
const work = scratch();
let folder: string;
/** The packages of an older version, whose executables do nothing. */
const before = `${work}/older`;

beforeAll(async () => {
  folder = await released();
  const release = `${work}/release`;
  mkdirSync(release);
  for (const processor of ["x64", "arm64"])
    await command("cp", "/bin/true", `${release}/crigc-linux-${processor}`);
  const script = [`${top}/scripts/packages`, "--version", older];
  await command("env", `CRIGC=${folder}/crigc-linux-x64`, ...script, release, before);
});

const debOf = (number: string, architecture = "amd64") => `crigc_${number}_${architecture}.deb`;
const rpmOf = (number: string, architecture = "x86_64") => `crigc-${number}-1.${architecture}.rpm`;

// It takes long, and those of the other processor have the same files.
describe("linters accept", () => {
  test("the deb", async () => {
    const deb = `${folder}/${debOf(version)}`;
    expect(await command("lintian", "--allow-root", "--fail-on", "error,warning", deb)).toBe("");
  });

  test("the rpm", async () => {
    const rc = `${top}/scripts/packages-parts/rpmlintrc`;
    const said = await command("rpmlint", "-r", rc, `${folder}/${rpmOf(version)}`);
    expect(said).toContain("0 errors, 0 warnings");
  });
});

test("each package has the executable of its processor, and otherwise the same files", async () => {
  const tarOf = (file: string, then: string) =>
    command("sh", "-c", `dpkg-deb --fsys-tarfile '${folder}/${file}' | ${then}`);
  const [x64, arm64] = [debOf(version), debOf(version, "arm64")];
  expect(await tarOf(arm64, "tar -t")).toEqual(await tarOf(x64, "tar -t"));
  for (const [file, processor] of [
    [x64, "x64"],
    [arm64, "arm64"],
  ] as const) {
    const inside = await tarOf(file, "tar -xO ./usr/bin/crigc | sha256sum");
    const beside = await command("sha256sum", `${folder}/crigc-linux-${processor}`);
    expect(inside.slice(0, 64)).toBe(beside.slice(0, 64));
  }
  const asked = (file: string) =>
    command("rpm", "-qp", "--qf", "[%{FILENAMES} %{FILEDIGESTS}\n]", `${folder}/${file}`);
  const differing = (await asked(rpmOf(version))).split("\n");
  const others = new Set((await asked(rpmOf(version, "aarch64"))).split("\n"));
  expect(differing.filter((line) => !others.has(line))).toEqual([
    expect.stringContaining("/usr/bin/crigc "),
  ]);
});

const CONFIG = "etc/crigc/crigc.yaml";
const LIST = "etc/crigc/keep.d/site.list";
const LEDGER = "var/lib/crigc/ledger.db";
const WANTS = "etc/systemd/system/multi-user.target.wants/crigc.service";

/** A Debian in which systemd seems to run: its commands are recorded. */
async function debian(name: string) {
  const root = `${work}/${name}`;
  mkdirSync(root);
  await command("tar", "-xf", `${top}/.cache/debian-root/root.tar`, "-C", root);
  mkdirSync(`${root}/run/systemd/system`, { recursive: true });
  await command("mv", `${root}/usr/bin/systemctl`, `${root}/usr/bin/systemctl.real`);
  put(
    root,
    "usr/bin/systemctl",
    `#!/bin/sh
echo "$*" >> /calls
# In a chroot it changes links only; what is running is asked of nobody.
case "$*" in *enable*) SYSTEMD_OFFLINE=1 exec /usr/bin/systemctl.real "$@" ;; esac
`,
    0o755,
  );
  const inside = (...words: readonly string[]) => inRoot(root, words);
  return {
    root,
    inside,
    /** Commands to systemd about the service since the last question. */
    calls: () => {
      const file = `${root}/calls`;
      const text = existsSync(file) ? readFileSync(file, "utf8") : "";
      rmSync(file, { force: true });
      return text.split("\n").filter((line) => line !== "");
    },
    has: (path: string) => lstatSync(`${root}/${path}`, { throwIfNoEntry: false }) !== undefined,
    text: (path: string) => readFileSync(`${root}/${path}`, "utf8"),
    /** What an operator and an agent leave behind. */
    use: () => {
      const configuration = "apiVersion: crigc/v1\nkind: CrigcConfiguration\nmaxImages: 7\n";
      writeFileSync(`${root}/${CONFIG}`, configuration);
      writeFileSync(`${root}/${LIST}`, "registry.lan/**\n");
      put(root, LEDGER);
    },
    leftovers: async () => {
      const found = await command(
        "sh",
        "-c",
        `cd '${root}' && find * -path proc -prune -o -name '*crigc*' -print`,
      );
      return found
        .split("\n")
        .filter((path) => path !== "" && !/^var\/lib\/(dpkg|rpm)\//.test(path))
        .toSorted();
    },
  };
}

const done = { exitCode: 0 };

describe.each([
  ["deb", debOf, { install: "-i", upgrade: "-i", remove: "-r", verify: "--verify" }],
  ["rpm", rpmOf, { install: "-i", upgrade: "-U", remove: "-e", verify: "-V" }],
] as const)("the %s", (format, fileOf, words) => {
  let it: Awaited<ReturnType<typeof debian>>;
  const tool = (...argv: readonly string[]) =>
    format === "deb"
      ? it.inside("dpkg", ...argv)
      : // The tree is a Debian: what the package needs is there, but not in RPM's database.
        tryCommand(["rpm", "--root", it.root, "--force-debian", "--nodeps", ...argv]);
  /** Where the tool finds the package: dpkg runs inside of the tree. */
  const placeOf = (place: string, number: string) =>
    `${format === "deb" ? "" : place}/${fileOf(number)}`;

  beforeAll(async () => {
    it = await debian(format);
    if (format === "deb")
      for (const file of [`${before}/${debOf(older)}`, `${folder}/${debOf(version)}`])
        await command("cp", "--reflink=auto", file, it.root);
  });

  test("is installed with its directories, neither enabled nor started", async () => {
    expect(await tool(words.install, placeOf(before, older))).toMatchObject(done);
    expect(it.calls()).toEqual(["--system daemon-reload"]);
    expect(it.has(WANTS)).toBe(false);
    for (const name of ["keep.d", "conf.d"]) expect(it.has(`etc/crigc/${name}`)).toBe(true);
    const verified = await it.inside("systemd-analyze", "verify", "--man=no", "crigc.service");
    expect(verified).toMatchObject(done);
  });

  test("is upgraded with the operator's configuration and rules, and a running agent restarted", async () => {
    if (format === "deb")
      expect(await it.inside("systemctl", "enable", "crigc")).toMatchObject(done);
    it.use();
    it.calls();
    expect(await tool(words.upgrade, placeOf(folder, version))).toMatchObject(done);
    expect(it.calls().at(-1)).toBe("try-restart crigc.service");
    expect(it.text(CONFIG)).toContain("maxImages: 7");
    expect(it.text(LIST)).toBe("registry.lan/**\n");
    expect(it.has(WANTS)).toBe(format === "deb");
    const { stdout } = await it.inside("crigc", "version");
    expect(stdout).toContain(`crigc ${version} (${commit.slice(0, 12)})`);
    expect(await it.inside("crigc", "keep", "check")).toMatchObject(done);
    const changed = (await tool(words.verify, "crigc")).stdout;
    expect(changed).toMatch(/^\S+ +c \/etc\/crigc\/crigc.yaml\n$/);
  });

  test("is removed but for a changed configuration, rules, ledger and history", async () => {
    expect(await tool(words.remove, "crigc")).toMatchObject(done);
    expect(it.calls()).toContain("stop crigc.service");
    for (const path of ["usr/bin/crigc", "usr/lib/systemd/system/crigc.service"])
      expect(it.has(path)).toBe(false);
    const config = format === "deb" ? CONFIG : `${CONFIG}.rpmsave`;
    for (const path of [config, LIST, LEDGER]) expect(it.has(path)).toBe(true);
    if (format === "rpm")
      expect(await it.leftovers()).toEqual(["etc/crigc", config, "var/lib/crigc"]);
  });

  // Only dpkg can remove a package and purge it later.
  if (format === "deb") {
    test("is purged but for keep rules", async () => {
      expect(await tool("-P", "crigc")).toMatchObject(done);
      for (const path of [CONFIG, LEDGER, WANTS]) expect(it.has(path)).toBe(false);
      expect(it.text(LIST)).toBe("registry.lan/**\n");
      rmSync(`${it.root}/${LIST}`);
      expect(await tool("-i", placeOf(before, older))).toMatchObject(done);
      expect(await tool("-P", "crigc")).toMatchObject(done);
      expect(await it.leftovers()).toEqual([debOf(older), debOf(version)].toSorted());
    });
  }
});

test("the rpm needs glibc 2.17 and a shell", async () => {
  const needs = await command("rpm", "-qp", "--requires", `${folder}/${rpmOf(version)}`);
  expect(needs.split("\n").filter((line) => line !== "" && !line.startsWith("rpmlib("))).toEqual([
    ...Array.from({ length: 4 }, () => "/bin/sh"),
    "libc.so.6(GLIBC_2.17)(64bit)",
  ]);
});

describe("the image for systemd-sysext", () => {
  const imageOf = (architecture: string) => `${folder}/crigc-${version}-${architecture}.sysext.raw`;

  test.each(["x86-64", "arm64"])(
    "of %s is an extension, by systemd-dissect",
    async (architecture) => {
      // It compares the name of the image with that of the extension.
      const image = `${work}/${architecture}/crigc.raw`;
      mkdirSync(`${work}/${architecture}`);
      await command("cp", "--reflink=auto", imageOf(architecture), image);
      const said = await command("systemd-dissect", "--no-pager", image);
      expect(said).toContain("✓ extension for system");
      expect(said).toContain(`ARCHITECTURE=${architecture}`);
    },
  );

  test("brings a service, a manual page and the keep directory to a system whose /usr is read-only", async () => {
    const root = `${work}/immutable`;
    mkdirSync(root);
    await command("tar", "-xf", `${top}/.cache/debian-root/root.tar`, "-C", root);
    const said = await tryCommand([
      "unshare",
      "--mount",
      "sh",
      "-ec",
      `mkdir "$0/mnt/crigc"
       mount -o loop,ro "$1" "$0/mnt/crigc"
       mount -t overlay overlay -o ro,lowerdir="$0/mnt/crigc/usr:$0/usr" "$0/usr"
       mount -t proc proc "$0/proc"
       chroot "$0" sh -ec '
         systemd-tmpfiles --create crigc.conf
         systemd-analyze verify --man=no crigc.service
         ls -d /etc/crigc/* /usr/share/man/man8/crigc.8.gz
         crigc keep check >&2
         crigc version'`,
      root,
      imageOf("x86-64"),
    ]);
    expect(said).toMatchObject({
      exitCode: 0,
      stdout: `/etc/crigc/conf.d\n/etc/crigc/keep.d\n/usr/share/man/man8/crigc.8.gz\ncrigc ${version} (${commit.slice(0, 12)})\n${packaged.homepage}\n`,
    });
  });
});
