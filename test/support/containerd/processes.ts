// Finds the processes that belong to a test node, by what the kernel says of them, and ends them.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";

import { until } from "./until.ts";

/** Starts with the ID's own directory name, so that a node's control groups are found by it. */
export function cgroupParentOf(directory: string): string {
  return `/${basename(directory)}`;
}

/** containerd, its shims, and everything that runs in a container of the node. */
export function processesOf(directory: string): readonly number[] {
  const all = allProcesses();
  const runtime = all.filter((pid) => isRuntimeOf(pid, directory));
  const found = new Set([...runtime, ...processesInCgroups(directory)]);
  const parents = new Map(all.map((pid) => [pid, parentOf(pid)]));
  // What a shim has started is a container's, in whatever control group it is. Children follow parents in a few rounds.
  for (let grown = true; grown;) {
    grown = false;
    for (const [pid, parent] of parents) {
      if (parent !== undefined && found.has(parent) && !found.has(pid)) {
        found.add(pid);
        grown = true;
      }
    }
  }
  found.delete(process.pid);
  return [...found];
}

/** Ends every process of the node for good and waits until the kernel has forgotten them. */
export async function endProcesses(directory: string): Promise<void> {
  await until(`the processes of ${directory} are gone`, 15_000, () => {
    const left = processesOf(directory);
    for (const pid of left) unlessGone(() => process.kill(pid, "SIGKILL"), true);
    return left.length === 0;
  });
}

/** Directories of the node's control groups, deepest first. */
export function cgroupsOf(directory: string): readonly string[] {
  const name = cgroupParentOf(directory);
  return ["", ...entriesOf("/sys/fs/cgroup").map((controller) => `/${controller}`)]
    .map((controller) => `/sys/fs/cgroup${controller}${name}`)
    .flatMap(withDirectoriesBelow)
    .toReversed();
}

/** True while the process `pid` that started at `startTicks` lives: a number alone may be somebody else's by now. */
export function isAlive(pid: number, startTicks: string): boolean {
  return startTicksOf(pid) === startTicks;
}

export function startTicksOf(pid: number): string | undefined {
  return statFields(pid)?.[19];
}

function allProcesses(): readonly number[] {
  return entriesOf("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** The result of reading something that may no longer exist. */
export function unlessGone<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}

/** A program of containerd whose command line names this node's directory; nothing else counts. */
const isRuntimeOf = (pid: number, directory: string): boolean =>
  unlessGone(() => {
    const program = basename(readlinkSync(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, "");
    if (!/^(containerd|containerd-shim-runc-v2|runc|ctr)$/.test(program)) return false;
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`${directory}/`);
  }, false);

const processesInCgroups = (directory: string): readonly number[] =>
  cgroupsOf(directory).flatMap((cgroup) =>
    unlessGone(() => readFileSync(`${cgroup}/cgroup.procs`, "utf8"), "")
      .split("\n")
      .filter(Boolean)
      .map(Number),
  );

function parentOf(pid: number): number | undefined {
  const parent = statFields(pid)?.[1];
  return parent === undefined ? undefined : Number(parent);
}

/** The fields of /proc/PID/stat from the third on: the second, the name, may hold spaces and brackets. A zombie counts as gone. */
function statFields(pid: number): readonly string[] | undefined {
  const stat = unlessGone(() => readFileSync(`/proc/${pid}/stat`, "utf8"), ") Z");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" ? undefined : fields;
}

const withDirectoriesBelow = (directory: string): readonly string[] =>
  unlessGone(() => {
    const below = readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => withDirectoriesBelow(`${directory}/${entry.name}`));
    return [directory, ...below];
  }, []);

export const entriesOf = (directory: string): readonly string[] =>
  unlessGone(() => readdirSync(directory), []);
