// Takes a test node out of the machine: processes, mounts, loop devices, control groups, sockets, files.
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename } from "node:path";

import { unmount } from "./disk.ts";
import { until } from "./until.ts";

const parent = realpathSync(process.env["CRIGC_TEST_DIR"] ?? tmpdir());
/** Only directories that are named so are ever torn down; the number is that of the process that made it. */
const named = /^crigc-node-(\d+)-/;

/** A directory for one node, marked as this process's. */
export const makeNodeDirectory = (): string => mkdtempSync(`${parent}/crigc-node-${process.pid}-`);

/** Every node of this machine, of whatever owner. */
export const nodeDirectories = (): readonly string[] =>
  namesIn(parent)
    .filter((name) => named.test(name))
    .map((name) => `${parent}/${name}`);

/** Starts with the node's own directory name, so that its control groups are found by it. */
export const cgroupParentOf = (directory: string): string => `/${basename(directory)}`;

/** What test processes that were killed have left behind. Nodes whose owner lives are left alone. */
export async function tearDownAbandoned(): Promise<void> {
  for (const directory of nodeDirectories())
    if (!existsSync(`/proc/${named.exec(basename(directory))?.[1]}`)) await tearDown(directory);
}

/** Whatever state the node is in, half made or half gone; twice does no harm. */
export async function tearDown(directory: string): Promise<void> {
  if (!nodeDirectories().includes(directory)) return;
  const shimSockets = shimSocketsOf(directory);
  await until(`the processes of ${directory} are gone`, 15_000, () => {
    const left = processesOf(directory);
    for (const pid of left) unlessGone(() => process.kill(pid, "SIGKILL"), true);
    return left.length === 0;
  });
  for (const path of mountsBelow(directory)) await unmount(path);
  const left = mountsBelow(directory);
  // Removing files through a mount that would not go could remove what is not ours.
  if (left.length > 0) throw new Error(`could not unmount ${left.join(", ")}: unmount by hand`);
  // The kernel may hold one for a moment after its last process.
  await until(`the control groups of ${directory} are gone`, 5_000, () => {
    for (const cgroup of cgroupsOf(directory)) unlessGone(() => rmdirSync(cgroup), undefined);
    return cgroupsOf(directory).length === 0;
  });
  for (const socket of shimSockets) rmSync(socket, { force: true });
  rmSync(directory, { recursive: true, force: true });
}

/** containerd, its shims, and everything that runs in a container of the node. */
function processesOf(directory: string): readonly number[] {
  const runtime = namesIn("/proc")
    .filter((name) => /^\d+$/.test(name) && isRuntimeOf(name, directory))
    .map(Number);
  const contained = cgroupsOf(directory)
    .flatMap((cgroup) => textOf(`${cgroup}/cgroup.procs`).split("\n"))
    .filter((line) => line !== "")
    .map(Number);
  return [...new Set([...runtime, ...contained])];
}

/** A program of containerd whose command line names this node's directory; nothing else counts. */
const isRuntimeOf = (pid: string, directory: string): boolean =>
  /^(?:containerd|containerd-shim-runc-v2|runc|ctr)(?: \(deleted\))?$/.test(
    unlessGone(() => basename(readlinkSync(`/proc/${pid}/exe`)), ""),
  ) && textOf(`/proc/${pid}/cmdline`).includes(`${directory}/`);

/** Directories of the node's control groups, deepest first. */
const cgroupsOf = (directory: string): readonly string[] =>
  ["", ...namesIn("/sys/fs/cgroup").map((controller) => `/${controller}`)]
    .map((controller) => `/sys/fs/cgroup${controller}${cgroupParentOf(directory)}`)
    .flatMap(withDirectoriesBelow)
    .toReversed();

const withDirectoriesBelow = (directory: string): readonly string[] =>
  unlessGone(() => {
    const entries = readdirSync(directory, { withFileTypes: true });
    const below = entries.filter((entry) => entry.isDirectory());
    return [
      directory,
      ...below.flatMap(({ name }) => withDirectoriesBelow(`${directory}/${name}`)),
    ];
  }, []);

/** Mount points at or below `directory`, the newest first. */
const mountsBelow = (directory: string): readonly string[] =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path === directory || path.startsWith(`${directory}/`))
    .toReversed();

/**
 * Shims listen below /run/containerd/s whatever the state directory is, and remove their socket only when they
 * are asked to end. Each task's directory says which is its own: 1.x in `address`, 2.x in `bootstrap.json`.
 */
function shimSocketsOf(directory: string): readonly string[] {
  const tasks = `${directory}/state/io.containerd.runtime.v2.task`;
  return namesIn(tasks)
    .flatMap((namespace) => namesIn(`${tasks}/${namespace}`).map((id) => `${namespace}/${id}`))
    .flatMap((task) =>
      ["address", "bootstrap.json"].map((name) => textOf(`${tasks}/${task}/${name}`)),
    )
    .flatMap((text) => text.match(/\/run\/containerd\/s\/[0-9a-f]{64}/) ?? []);
}

/** The result of reading something that may no longer exist. */
function unlessGone<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}

const namesIn = (directory: string): readonly string[] =>
  unlessGone(() => readdirSync(directory), []);

const textOf = (file: string): string => unlessGone(() => readFileSync(file, "utf8"), "");
