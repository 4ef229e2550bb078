// Takes a test node out of the machine: processes, mounts, loop devices, control groups, sockets, files.
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";

import { unmount } from "./disk.ts";
import {
  cgroupsOf,
  endProcesses,
  entriesOf,
  isAlive,
  startTicksOf,
  unlessGone,
} from "./processes.ts";
import { until } from "./until.ts";

/** Only directories that start so, and that hold the owner's file, are ever torn down. */
const prefix = `${realpathSync(process.env["CRIGC_TEST_DIR"] ?? tmpdir())}/crigc-node-`;
const ownerFile = "owner.json";

/** A directory for one node, marked as this process's. */
export function makeNodeDirectory(): string {
  const directory = mkdtempSync(prefix);
  const owner = { pid: process.pid, startTicks: startTicksOf(process.pid) };
  writeFileSync(`${directory}/${ownerFile}`, JSON.stringify(owner));
  return directory;
}

/** Whatever state the node is in, half made or half gone; twice does no harm. */
export async function tearDown(directory: string): Promise<void> {
  if (!directory.startsWith(prefix) || !existsSync(`${directory}/${ownerFile}`)) return;
  const shimSockets = shimSocketsOf(directory);
  await endProcesses(directory);
  for (const path of mountsBelow(directory)) await unmount(path);
  const left = mountsBelow(directory);
  // Removing files through a mount that would not go could remove what is not ours.
  if (left.length > 0) throw new Error(`could not unmount ${left.join(", ")}: unmount by hand`);
  await removeCgroups(directory);
  for (const socket of shimSockets) rmSync(socket, { force: true });
  rmSync(directory, { recursive: true, force: true });
}

/** What test processes that were killed have left behind. Nodes whose owner lives are left alone. */
export async function tearDownAbandoned(): Promise<void> {
  for (const directory of nodeDirectories()) {
    const owner = readOwner(directory);
    if (owner !== undefined && !isAlive(owner.pid, owner.startTicks)) await tearDown(directory);
  }
}

/** Every node of this machine, of whatever owner. */
export function nodeDirectories(): readonly string[] {
  const parent = prefix.slice(0, prefix.lastIndexOf("/"));
  return readdirSync(parent)
    .map((name) => `${parent}/${name}`)
    .filter((path) => path.startsWith(prefix));
}

/** Mount points at or below `directory`, the newest first. */
export function mountsBelow(directory: string): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .map((path) =>
      path.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8))),
    )
    .filter((path) => path === directory || path.startsWith(`${directory}/`))
    .toReversed();
}

/** The kernel may hold one for a moment after its last process. */
async function removeCgroups(directory: string): Promise<void> {
  await until(`the control groups of ${directory} are gone`, 5_000, () => {
    // Tried again until none is left.
    for (const cgroup of cgroupsOf(directory)) unlessGone(() => rmdirSync(cgroup), undefined);
    return cgroupsOf(directory).length === 0;
  });
}

/**
 * Shims listen below /run/containerd/s whatever the state directory is, and remove their socket only when they
 * are asked to end. Each task's directory says which is its own: 1.x in `address`, 2.x in `bootstrap.json`.
 */
export function shimSocketsOf(directory: string): readonly string[] {
  const tasks = `${directory}/state/io.containerd.runtime.v2.task`;
  return childrenOf(tasks)
    .flatMap(childrenOf)
    .flatMap((task) => [textOf(`${task}/address`), textOf(`${task}/bootstrap.json`)])
    .flatMap((text) => text.match(/\/run\/containerd\/s\/[0-9a-f]{64}/) ?? []);
}

const childrenOf = (directory: string): readonly string[] =>
  entriesOf(directory).map((name) => `${directory}/${name}`);

const textOf = (file: string): string => unlessGone(() => readFileSync(file, "utf8"), "");

/** A directory whose file is not written yet, or not whole, is one that is being made. */
const readOwner = (directory: string): { pid: number; startTicks: string } | undefined =>
  unlessGone(() => JSON.parse(textOf(`${directory}/${ownerFile}`)), undefined);
