// Logs are deleted only below the log directories: no link is followed, no mount entered, no name in doubt touched.

import { beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { rename, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";

import { podUid } from "../../src/model/ids.ts";
import type { LogRemover, RemovedFiles } from "../../src/model/ports.ts";
import type { Container } from "../../src/model/snapshot.ts";
import { logDeleter, logReader } from "../../src/node/logs.ts";
import { danglingLink } from "../support/build/pods.ts";
import { aContainer } from "../support/build/values.ts";
import { failureOf } from "../support/failure.ts";
import { put, scratch } from "../support/scratch.ts";
import { treeOf } from "../support/tree.ts";

const base = scratch();
const podA = "default_app_uid-a";
let top: string;
let pods: string;
let links: string;
let reader: ReturnType<typeof logReader>;
let deleter: LogRemover;
/** A file outside the log directories. */
let precious: string;

beforeEach(() => {
  top = mkdtempSync(join(base, "node-"));
  [pods, links] = [join(top, "pods"), join(top, "containers")];
  mkdirSync(pods);
  mkdirSync(links);
  precious = put(top, "outside/precious", "content");
  const paths = { podLogsDir: pods, containerLogsDir: links };
  [reader, deleter] = [logReader(paths), logDeleter(paths)];
});

const log = (name = "c/0.log", text = "log\n"): string => put(join(pods, podA), name, text);
/** Of container `c` of that pod. */
const container = aContainer("c", { podName: "app", podUid: podUid("uid-a") });
const removeLogs = async (change: Partial<Container> = {}) =>
  whole(await deleter.removeContainerLogs({ ...container, ...change }));
const removePod = async (entry = podA, uid = "uid-a", stop = new AbortController()) =>
  whole(await deleter.removePodLogs({ entry, uid: podUid(uid) }, stop.signal));
/** Rejects where something could not be deleted. */
function whole(files: RemovedFiles | null): RemovedFiles {
  if (files?.failure !== undefined) throw files.failure;
  return files ?? { names: [], bytes: 0n };
}
const namesIn = (path: string): readonly string[] => readdirSync(path).toSorted();

async function expectFailure(removal: Promise<unknown>, kind: string, message = ""): Promise<void> {
  expect(await failureOf(removal)).toMatchObject({
    kind,
    message: expect.stringContaining(message),
  });
  expect(existsSync(precious)).toBe(true);
}

describe("the log directories", () => {
  test("have pod directories, other entries, and dangling links, of which only those to pod logs count", async () => {
    log();
    for (const name of ["lost+found", "audit", "default_app_name_uid-b"])
      mkdirSync(join(pods, name));
    put(pods, "default_file_uid-c");
    symlinkSync(top, join(pods, "default_link_uid-d"));
    const link = (target: string, name: string) => symlinkSync(target, join(links, name));
    link(log(), "there_default_c");
    link(join(pods, podA, "c", "1.log"), "app_default_c");
    link(`../pods/${podA}/gone/10.log`, "relative");
    link(join(pods, podA, "c", "0.log.1"), "rotation");
    link(join(pods, "gone", "c", "0.log"), "of no pod");
    link(join(top, "elsewhere"), "other_default_c");
    link(join(pods, "..", "elsewhere"), "dots_default_c");
    symlinkSync("/nowhere", join(links, "current"));
    put(links, "file.log");
    expect({ ...(await reader()), podLogsDirectory: "" }).toMatchSnapshot();
  });

  test("may be absent, and appear later", async () => {
    for (const path of [pods, links]) rmSync(path, { recursive: true });
    expect(await reader()).toBeNull();
    log();
    expect(await reader()).toMatchObject({ podLogs: [{ entry: podA }], danglingLinks: [] });
  });

  test.each([
    ["pods", "a file", "part of the path is not a directory"],
    ["pods", "a link to itself", "it is a symbolic link"],
    ["containers", "a link to itself", "it is a symbolic link"],
  ])("fail the reading, by name, if %s is %s", async (name, what, why) => {
    const path = join(top, name);
    rmSync(path, { recursive: true });
    if (what === "a file") put(top, name);
    else symlinkSync(path, path);
    expect(await reader()).toEqual({
      kind: "failed",
      message: expect.stringContaining(`cannot open the log directory ${path}: ${why}`),
    });
  });
});

describe("the logs of a container", () => {
  test("are its file and its rotations, and nothing with a similar name", async () => {
    log("c/0.log", "x".repeat(10_000));
    const rotations = ["0.log.20060102-150405", "0.log.20060102-150405.gz", "0.log.tmp"];
    const others = ["0.log-old", "0.log.d/file", "00.log", "0xlog.a", "1.log"];
    for (const name of [...rotations, ...others]) log(`c/${name}`);
    const { names, bytes } = await removeLogs();
    expect([...names].toSorted()).toEqual(["0.log", ...rotations]);
    expect(bytes).toBeGreaterThanOrEqual(10_000n);
    expect(namesIn(join(pods, podA, "c"))).toEqual([
      "0.log-old",
      "0.log.d",
      "00.log",
      "0xlog.a",
      "1.log",
    ]);
  });

  test("are found if the root is a link", async () => {
    const byLink = join(top, "by-link");
    symlinkSync(pods, byLink);
    deleter = logDeleter({ podLogsDir: byLink, containerLogsDir: links });
    const real = log();
    await removeLogs();
    expect(existsSync(real)).toBe(false);
  });

  test("lose a link among them, not its target", async () => {
    mkdirSync(join(pods, podA, "c"), { recursive: true });
    symlinkSync(precious, join(pods, podA, "c", "0.log"));
    await removeLogs();
    expect(existsSync(precious)).toBe(true);
    expect(namesIn(join(pods, podA, "c"))).toEqual([]);
  });

  test.each<[string, Partial<Container>]>([
    ["of no pod", { podUid: podUid("") }],
    ["with dots for a pod", { podUid: podUid(".."), podName: "..", podNamespace: ".." }],
    ["with dots for a name", { name: ".." }],
    ["with a path for a name", { name: "../../outside" }],
    ["with a NUL in its name", { name: "c\0" }],
    ["of another pod", { podUid: podUid("uid-b") }],
    ["of another name", { name: "d" }],
    ["of another attempt", { attempt: 1 }],
  ])("stay if it is one %s", async (_, change) => {
    log();
    const before = treeOf(top);
    expect((await removeLogs(change)).names).toEqual([]);
    expect(treeOf(top)).toEqual(before);
  });

  test.each([
    ["container", "outside", `${podA}/c`],
    ["pod", "outside", podA],
  ])("behind a link in place of the %s's directory stay", async (_, target, link) => {
    put(top, "outside/0.log");
    put(top, "outside/c/0.log");
    const path = join(pods, link);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(join(top, target), path);
    const before = treeOf(top);
    await expectFailure(removeLogs(), "write");
    expect(treeOf(top)).toEqual(before);
  });
});

describe("the directory of a pod", () => {
  test("goes with its content, but not with the targets of its links", async () => {
    log("c/0.log", "x".repeat(20_000));
    log("deep/er/file");
    linkSync(log("c/hard", "x".repeat(20_000)), join(top, "other-name"));
    symlinkSync(join(top, "outside"), join(pods, podA, "link-to-directory"));
    symlinkSync(precious, join(pods, podA, "c", "link-to-file"));
    const { names, bytes } = await removePod();
    expect([existsSync(join(pods, podA)), existsSync(precious)]).toEqual([false, true]);
    expect(names).toContain("0.log");
    // A file with another name frees nothing.
    expect(Number(bytes)).toBeWithin(20_000, 40_000);
  });

  test("loses nothing outside while its directories are swapped for links", async () => {
    put(top, "outside/0.log");
    const before = treeOf(join(top, "outside"));
    for (let round = 0; round < 100; round += 1) {
      for (const name of ["a", "b", "c"]) log(`${name}/0.log`);
      const swap = async (name: string): Promise<void> => {
        await rename(join(pods, podA, name), join(top, `aside-${round}-${name}`));
        await symlink(join(top, "outside"), join(pods, podA, name));
      };
      await Promise.allSettled([
        removePod(),
        removeLogs({ name: "b" }),
        ...["a", "b", "c"].map(swap),
      ]);
      expect(treeOf(join(top, "outside"))).toEqual(before);
      rmSync(join(pods, podA), { recursive: true, force: true });
    }
  });

  test("keeps what a stopped removal did not reach, and is deleted by the next one", async () => {
    for (const name of ["c/0.log", "c/1.log", "c/2.log", "d/0.log"]) log(name);
    const stop = new AbortController();
    let looks = 0;
    Object.defineProperty(stop.signal, "aborted", { get: () => (looks += 1) > 3 });
    const stopped = await removePod(podA, "uid-a", stop);
    expect(stopped).toMatchObject({ isStopped: true, names: { length: 2 } });
    expect(Number(stopped.bytes)).toBeGreaterThan(0);
    expect((await removePod()).names).toHaveLength(2);
    expect(existsSync(join(pods, podA))).toBe(false);
  });

  test("that no longer exists is not an error, nor is a missing log", async () => {
    const directory = { entry: podA, uid: podUid("uid-a") };
    expect(await deleter.removePodLogs(directory, new AbortController().signal)).toBeNull();
    expect((await removeLogs()).names).toEqual([]);
  });

  test("that became a link stays, and so does its target", async () => {
    symlinkSync(join(top, "outside"), join(pods, podA));
    await expectFailure(removePod(), "write");
  });

  test.each([
    ["lost+found", ""],
    ["lost+found", "found"],
    ["..", ".."],
    [".", "."],
    ["../outside", "outside"],
    [`${podA}/c`, "uid-a"],
    [podA, "uid-b"],
    ["default_app_name_uid-a", "uid-a"],
  ])("is not %s for the UID %j", async (entry, uid) => {
    put(pods, "lost+found/file");
    log();
    const before = treeOf(top);
    await expectFailure(removePod(entry, uid), "refused");
    expect(treeOf(top)).toEqual(before);
  });

  test("is refused if it is deeper than any log directory", async () => {
    const deep = join(pods, podA, ...Array.from({ length: 40 }, () => "d"));
    mkdirSync(deep, { recursive: true });
    await expectFailure(removePod(), "refused", "32 directories deep");
    expect(existsSync(deep)).toBe(true);
  });

  test("loses everything but what cannot be deleted, and says how much", async () => {
    const deep = Array.from({ length: 40 }, () => "d");
    mkdirSync(join(pods, podA, "c", ...deep), { recursive: true });
    for (let at = 0; at < 30; at += 1) {
      log(`c/${at}.log`, "x".repeat(10_000));
      log(`c${at}/0.log`);
    }
    const directory = { entry: podA, uid: podUid("uid-a") };
    const removed = await deleter.removePodLogs(directory, new AbortController().signal);
    expect(removed?.names).toHaveLength(60);
    expect(Number(removed?.bytes)).toBeGreaterThan(300_000);
    expect(removed?.failure?.message).toContain(`${podA}/c/d`);
    expect([namesIn(join(pods, podA)), namesIn(join(pods, podA, "c"))]).toEqual([["c"], ["d"]]);
  });
});

describe("a link to a container's log", () => {
  const entry = "app_default_c.log";
  const link = danglingLink({ entry });

  test("goes once its log is gone", async () => {
    const target = log();
    symlinkSync(target, join(links, entry));
    expect(await deleter.removeLink(link)).toBe(false);
    expect(namesIn(links)).toEqual([entry]);
    rmSync(target);
    expect(await deleter.removeLink(link)).toBe(true);
    expect(namesIn(links)).toEqual([]);
    expect(await deleter.removeLink(link)).toBe(false);
  });

  test.each([
    ["a link elsewhere", () => symlinkSync(precious, join(links, entry))],
    [
      "a link to another log",
      () => symlinkSync(join(pods, podA, "c", "1.log"), join(links, entry)),
    ],
    ["a file", () => put(links, entry)],
  ])("is refused if it is %s", async (_, make) => {
    make();
    await expectFailure(deleter.removeLink(link), "refused");
    expect(namesIn(links)).toEqual([entry]);
  });

  test("is not one outside the directory of links", async () => {
    const removal = deleter.removeLink({ ...link, entry: "../outside/precious" });
    expect(await failureOf(removal)).toBeInstanceOf(Error);
    expect(existsSync(precious)).toBe(true);
  });
});

describe.skipIf(process.getuid?.() !== 0)("what is mounted in a log directory (needs root)", () => {
  const mount = (...args: readonly string[]) => Bun.spawnSync([...args], { cwd: top }).exitCode;

  test("is kept, alone, among the rotations of a log", async () => {
    const names = ["0.log", ...Array.from({ length: 20 }, (_, at) => `0.log.${at}`)];
    const [path = ""] = names.map((name) => log(`c/${name}`));
    expect(mount("mount", "--bind", "outside/precious", `${path}.7`)).toBe(0);
    try {
      const { failure, ...removed } = await deleter.removeContainerLogs(container);
      expect(failure?.message).toContain(`cannot delete ${podA}/c/0.log.7`);
      expect(removed.names).toHaveLength(20);
      expect(namesIn(join(pods, podA, "c"))).toEqual(["0.log.7"]);
    } finally {
      expect(mount("umount", `${path}.7`)).toBe(0);
    }
  });

  test.each([
    ["another filesystem", ["-t", "tmpfs", "-o", "size=1m", "none"]],
    ["another directory of the same filesystem", ["--bind", "outside"]],
  ])("is kept with the logs of a container and of a pod: %s", async (_, options) => {
    const place = join(pods, podA, "c");
    mkdirSync(place, { recursive: true });
    expect(mount("mount", ...options, place)).toBe(0);
    try {
      const path = log();
      await expectFailure(removePod(), "refused", `${podA}/c`);
      await expectFailure(removeLogs(), "refused", "something is mounted there");
      expect(existsSync(path)).toBe(true);
    } finally {
      expect(mount("umount", place)).toBe(0);
    }
  });
});
