// Boots a node in an emulator and tests crigc there, as root: scripts/dev boot-node [--keep-logs DIR]
//
// A Debian with systemd, containerd and crigc (installed by "install --root", configured by a cloud-init seed) boots in
// software emulation, fills its image disk, is rebooted and cleaned up. Prints each check. CRIGC_PROGRAM uses another
// build than dist/crigc.

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { writeImageArchive } from "../../../test/support/containerd/archive.ts";
import { command } from "../../../test/support/containerd/command.ts";

const top = resolve(import.meta.dir, "../../..");
const cache = join(top, ".cache/boot");
const program = process.env["CRIGC_PROGRAM"] ?? join(top, "dist/crigc");
const mebibyte = 1024 * 1024;
/** Two boots take some four minutes on two cores; a node that hangs must not hang its caller. */
const deadline = Date.now() + 14 * 60_000;
/** A kernel that hangs in the emulator before it starts systemd, that is before anything of crigc, is started again. */
const kernelSecondsMax = 150;
const kernelStartsMax = 3;
/** A node that shuts down for longer loses its power. */
const shutdownSecondsMax = 240;

/** Short periods and ages, so that minutes show what takes hours elsewhere. */
const baselineDropIn = `[Service]
ExecStartPre=/usr/local/bin/crigc keep baseline --once
ReadWritePaths=/etc/crigc/keep.d
`;

/** Short times, so that a boot shows a pass of each kind. */
const settings = {
  imageGCPeriod: "10s",
  imageDetectionPeriod: "5s",
  imageMinimumGCAge: "20s",
  containerGCPeriod: "5s",
  bootGrace: "15s",
  deadPodTTL: "20s",
};

const checkUnit = `[Unit]
Description=Checks of the collector
After=crigc.service containerd.service

[Service]
ExecStart=/opt/boot-check
`;

/** Stands for an image that the builder of the node image has put into the runtime. */
const bakedUnit = `[Unit]
Description=An image that is there from the start
ConditionPathExists=/opt/archives/kept.tar
Requires=containerd.service
After=containerd.service
Before=crigc.service

[Service]
Type=oneshot
ExecStart=/usr/bin/ctr --namespace k8s.io images import /opt/archives/kept.tar
ExecStart=/usr/bin/rm /opt/archives/kept.tar
`;

/** What a node without a network has a use for: the others take a quarter of a boot, and some fail. */
const cloudModules = `datasource_list: [NoCloud, None]
cloud_init_modules: [write-files]
cloud_config_modules: [runcmd]
cloud_final_modules: [scripts-user]
`;

const { values } = parseArgs({ options: { "keep-logs": { type: "string" } } });
const work = mkdtempSync(join(tmpdir(), "crigc-boot-"));
try {
  process.exitCode = await main();
} finally {
  if (values["keep-logs"] !== undefined) keepLogs(resolve(values["keep-logs"]));
  rmSync(work, { recursive: true, force: true });
}

async function main(): Promise<number> {
  const started = performance.now();
  await makeRootDisk();
  await makeImageDisk();
  await makeSeed();
  console.log(`disks created after ${secondsSince(started)} s; the node boots twice`);
  let passed = 0;
  let failed = 0;
  for (const name of ["first", "second"]) {
    const lines = await boot(name);
    for (const line of lines) console.log(line);
    passed += lines.filter((line) => line.startsWith("ok ")).length;
    failed += lines.filter((line) => line.startsWith("FAILED ")).length;
    const fault = faultOf(name);
    if (fault === undefined) continue;
    failed += 1;
    console.log(`FAILED ${fault}; end of its console:`);
    console.log(textOf(`console-${name}.log`).split("\n").slice(-40).join("\n"));
    break;
  }
  console.log(`took ${secondsSince(started)} s`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

async function makeRootDisk(): Promise<void> {
  const disk = join(work, "root.img");
  await command("cp", "--sparse=always", join(cache, "root.img"), disk);
  const tree = join(work, "root");
  mkdirSync(tree);
  await command("mount", "-o", "loop", disk, tree);
  try {
    await furnish(tree);
  } finally {
    await command("umount", tree);
  }
}

async function furnish(tree: string): Promise<void> {
  await command(program, "install", `--root=${tree}`);
  const dropIns = join(tree, "etc/systemd/system/crigc.service.d");
  mkdirSync(dropIns);
  writeFileSync(join(dropIns, "10-baseline.conf"), baselineDropIn);
  const put = (path: string, text: string): void => writeFileSync(join(tree, path), text);
  put(
    "etc/fstab",
    "/dev/vda / ext4 defaults 0 1\nLABEL=images /var/lib/containerd ext4 defaults 0 2\n",
  );
  put("etc/hostname", "crigc-node\n");
  put("etc/cloud/cloud.cfg.d/90-boot-check.cfg", cloudModules);
  for (const [name, unit] of [
    ["boot-check", checkUnit],
    ["baked", bakedUnit],
  ] as const) {
    const file = `/etc/systemd/system/${name}.service`;
    put(file, unit);
    symlinkSync(file, join(tree, `etc/systemd/system/multi-user.target.wants/${name}.service`));
  }
  cpSync(join(import.meta.dir, "guest"), join(tree, "opt/boot-check"));
  makeArchives(join(tree, "opt/archives"));
}

/** Random layers are stored twice, packed and unpacked: each of these takes 24 MiB of the image disk. */
function makeArchives(directory: string): void {
  mkdirSync(directory);
  const make = (name: string, sizeMib: number): void => {
    writeImageArchive(join(directory, `${name}.tar`), [
      {
        names: [`docker.io/library/${name}:1`],
        layers: [{ seed: name, sizeBytes: sizeMib * mebibyte }],
        withBusybox: false,
      },
    ]);
  };
  make("kept", 4);
  for (let number = 10; number < 18; number += 1) make(`unused-${number}`, 12);
}

async function makeImageDisk(): Promise<void> {
  const file = join(work, "images.img");
  writeFileSync(file, "");
  truncateSync(file, 384 * mebibyte);
  await command("mkfs.ext4", "-q", "-F", "-L", "images", file);
}

/** A NoCloud seed is a disk of that label with two files. */
async function makeSeed(): Promise<void> {
  const indented = Object.entries(settings).map(([name, value]) => `      ${name}: ${value}\n`);
  const userData = (await command(program, "print", "cloud-config"))
    .replace("/opt/crigc/crigc", "/usr/local/bin/crigc")
    .replace(/(kind: CrigcConfiguration\n)/, `$1${indented.join("")}`);
  writeFileSync(join(work, "user-data"), userData);
  writeFileSync(join(work, "meta-data"), "instance-id: crigc-boot\nlocal-hostname: crigc-node\n");
  const files = ["user-data", "meta-data"].map((name) => join(work, name));
  await command(
    "genisoimage",
    "-quiet",
    "-output",
    join(work, "seed.iso"),
    "-volid",
    "cidata",
    "-joliet",
    "-rock",
    ...files,
  );
}

/** What went wrong beside the checks; the second boot uninstalls crigc. */
function faultOf(name: string): string | undefined {
  if (!checksOf(name).includes(endOf(name))) return `the ${name} boot completed its checks`;
  const stopped = /Stopped .*crigc\.service/u.test(textOf(`console-${name}.log`));
  return stopped || name === "second" ? undefined : "crigc stopped when the node shut down";
}

/** What the checks said until the node was shut down, was rebooted or ran out of time. */
async function boot(name: string): Promise<readonly string[]> {
  for (let start = 1; start < kernelStartsMax; start += 1) {
    if (await emulatorEnded(name, kernelSecondsMax)) return checksOf(name);
    console.log(`the kernel of the ${name} boot hung before systemd; it is started again`);
  }
  await emulatorEnded(name, Infinity);
  return checksOf(name);
}

/** False if the kernel did not get to systemd in its time; the emulator is then stopped. */
async function emulatorEnded(name: string, kernelSeconds: number): Promise<boolean> {
  const emulator = startEmulator(name);
  const started = performance.now();
  let endedAt: number | undefined;
  for (;;) {
    if (await Promise.race([emulator.exited.then(() => true), Bun.sleep(1000)])) return true;
    const now = performance.now();
    if (checksOf(name).includes(endOf(name))) endedAt ??= now;
    const offLate = endedAt !== undefined && now - endedAt > shutdownSecondsMax * 1000;
    const kernelLate =
      now - started > kernelSeconds * 1000 &&
      !textOf(`console-${name}.log`).includes("systemd[1]: ");
    if (!offLate && !kernelLate) continue;
    if (offLate) console.log(`the ${name} boot did not shut down; its power is cut`);
    emulator.kill("SIGKILL");
    await emulator.exited;
    return !kernelLate;
  }
}

function endOf(name: string): string {
  return `end of the ${name} boot`;
}

function checksOf(name: string): readonly string[] {
  return textOf(`checks-${name}.log`).replaceAll("\r", "").trimEnd().split("\n");
}

function startEmulator(name: string): Bun.Subprocess {
  const disk = (file: string): readonly string[] => [
    "-drive",
    `file=${join(work, file)},if=virtio,format=raw,cache=unsafe`,
  ];
  return Bun.spawn(
    [
      "qemu-system-x86_64",
      // No KVM is asked for, so that every machine does the same.
      "-accel",
      "tcg,thread=multi",
      "-cpu",
      "max",
      "-smp",
      "2",
      "-m",
      "1536",
      // A reboot ends the emulator: the second boot begins with a new one.
      "-no-reboot",
      "-kernel",
      join(cache, "vmlinuz"),
      "-initrd",
      join(cache, "initrd"),
      "-append",
      "root=/dev/vda rw console=ttyS0 systemd.show_status=true net.ifnames=0 panic=10",
      ...disk("root.img"),
      ...disk("images.img"),
      ...disk("seed.iso"),
      // No disc drive and no screen, whose drivers would be loaded.
      "-nodefaults",
      "-display",
      "none",
      "-serial",
      `file:${join(work, `console-${name}.log`)}`,
      "-device",
      "virtio-serial",
      "-device",
      "virtserialport,chardev=checks,name=checks",
      "-chardev",
      `file,id=checks,path=${join(work, `checks-${name}.log`)}`,
    ],
    {
      stdio: ["ignore", "ignore", "inherit"],
      timeout: Math.max(deadline - Date.now(), 1000),
      killSignal: "SIGKILL",
    },
  );
}

function textOf(name: string): string {
  const path = join(work, name);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

function keepLogs(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const ofBoots = ["first", "second"].flatMap((name) => [
    `console-${name}.log`,
    `checks-${name}.log`,
  ]);
  for (const name of [...ofBoots, "user-data"]) writeFileSync(join(directory, name), textOf(name));
}

function secondsSince(started: number): string {
  return ((performance.now() - started) / 1000).toFixed(0);
}
