import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { rename, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { podUid } from "../../src/model/ids.ts";
import type { LogRemover } from "../../src/model/ports.ts";
import type { LogFacts } from "../../src/model/snapshot.ts";
import { logReader } from "../../src/node/log-reader.ts";
import { logDeleter } from "../../src/node/log-remover.ts";
import { hexId } from "../support/build/pods.ts";
import { failureOf } from "../support/failure.ts";

let top: string;
let pods: string;
let links: string;
let reader: ReturnType<typeof logReader>;
let deleter: LogRemover;

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), "crigc-logs-"));
  pods = join(top, "pods");
  links = join(top, "containers");
  mkdirSync(pods);
  mkdirSync(links);
  const paths = { podLogsDir: pods, containerLogsDir: links };
  reader = logReader(paths);
  deleter = logDeleter(paths);
});
afterEach(() => rmSync(top, { recursive: true }));

const write = (path: string, text = "log\n"): string => {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text);
  return path;
};
const podA = "default_app_uid-a";
const pod = (entry: string, uid: string) => ({ entry, uid: podUid(uid) });
const outside = (): string => write(join(top, "outside", "precious"));

async function read(): Promise<LogFacts | null> {
  const reading = await reader();
  if (reading?.kind === "failed") throw new Error(reading.message);
  return reading;
}

describe("reading", () => {
  test("distinguishes pod directories from other entries", async () => {
    write(join(pods, podA, "c", "0.log"));
    mkdirSync(join(pods, "lost+found"));
    mkdirSync(join(pods, "audit"));
    mkdirSync(join(pods, "default_app_name_uid-b"));
    write(join(pods, "default_file_uid-c"));
    symlinkSync(top, join(pods, "default_link_uid-d"));
    const facts = await read();
    expect(facts?.podLogs).toEqual([pod(podA, "uid-a")]);
    expect(facts?.strays).toEqual([
      "audit",
      "default_app_name_uid-b",
      "default_file_uid-c",
      "default_link_uid-d",
      "lost+found",
    ]);
  });

  test("finds nothing without a log directory, and works once it exists", async () => {
    rmSync(pods, { recursive: true });
    expect(await reader()).toBeNull();
    mkdirSync(join(pods, podA), { recursive: true });
    expect((await read())?.podLogs).toHaveLength(1);
  });

  test.each([
    ["a file", () => write(pods, "a file"), () => pods, "part of the path is not a directory"],
    ["a link to itself", () => symlinkSync(pods, pods), () => pods, "it is a symbolic link"],
    [
      "such a link of the other one",
      () => symlinkSync(links, links),
      () => links,
      "it is a symbolic link",
    ],
  ])("fails, naming the directory, if %s is in its place", async (_what, put, of, why) => {
    rmSync(of(), { recursive: true });
    put();
    expect(await reader()).toEqual({
      kind: "failed",
      message: expect.stringContaining(`cannot open the log directory ${of()}: ${why}`),
    });
  });

  test("finds dangling links, and only those that point to pod logs", async () => {
    const id = hexId("c1");
    const log = write(join(pods, podA, "c", "0.log"));
    symlinkSync(log, join(links, `app_default_c-${hexId("there")}.log`));
    symlinkSync(join(pods, podA, "c", "1.log"), join(links, `app_default_c-${id}.log`));
    symlinkSync("../pods/gone/c/0.log", join(links, `relative_default_c-${id}.log`));
    symlinkSync(join(top, "elsewhere"), join(links, `other_default_c-${id}.log`));
    symlinkSync(join(pods, "..", "elsewhere"), join(links, `dots_default_c-${id}.log`));
    symlinkSync("/nowhere", join(links, "current"));
    write(join(links, `file_default_c-${id}.log`));
    const entries = (await read())?.danglingLinks;
    expect(entries).toEqual([
      { entry: `app_default_c-${id}.log`, containerId: id },
      { entry: `relative_default_c-${id}.log`, containerId: id },
    ]);
  });

  test("works without a directory of links", async () => {
    rmSync(links, { recursive: true });
    expect((await read())?.danglingLinks).toEqual([]);
  });
});

describe("the places of logs in the log directory", () => {
  const places = async (path: string, uid = "") =>
    (await deleter.placesOf([{ path, podUid: uid }])).flat();

  test("are found by the text of their paths and by links", async () => {
    write(join(pods, podA, "c", "0.log"));
    write(join(pods, "default_other_uid-b", "c", "0.log"));
    symlinkSync(join(pods, podA), join(top, "by-link"));
    symlinkSync(join(pods, "default_other_uid-b", "c"), join(pods, podA, "linked"));
    symlinkSync("0.log", join(pods, podA, "c", "1.log"));
    expect(await places(join(top, "by-link", "c", "0.log"))).toEqual([`${podA}/c/0.log`]);
    expect(await places(join(pods, podA, "linked", "0.log"))).toEqual([
      `${podA}/linked/0.log`,
      "default_other_uid-b/c/0.log",
    ]);
    expect(await places(join(pods, podA, "c", "1.log"))).toEqual([
      `${podA}/c/1.log`,
      `${podA}/c/0.log`,
    ]);
    expect(await places(`${pods}/${podA}/../default_dots_uid-d/c/0.log`)).toEqual([
      "default_dots_uid-d/c/0.log",
    ]);
    expect(await places(join(pods, "default_absent_uid-c", "c", "0.log"))).toEqual([
      "default_absent_uid-c/c/0.log",
    ]);
  });

  test("are empty for paths that lead elsewhere", async () => {
    for (const path of [join(top, "elsewhere", "0.log"), "relative/0.log", "", "/", pods])
      expect(await places(path)).toEqual([]);
  });

  test("of impossible paths do not keep the logs of others", async () => {
    const long = "x".repeat(1024 * 1024);
    expect(await places(`/elsewhere/${long}/0.log`)).toEqual([]);
    expect(await places(`${pods}/a\u0000b/0.log`)).toEqual([]);
    expect(await places(`${pods}/${long}/0.log`)).toEqual([`${long}/0.log`]);
  });

  test("in the directory of their own pod are found by the text alone", async () => {
    symlinkSync(top, join(pods, "linked"));
    mkdirSync(join(pods, podA));
    symlinkSync("../default_other_uid-b", join(pods, podA, "c"));
    expect(await places(join(pods, podA, "c", "0.log"), "uid-a")).toEqual([`${podA}/c/0.log`]);
  });
});

describe("the logs of a container", () => {
  test("are its file and its rotations, and no file with a similar name", async () => {
    const directory = join(pods, podA, "c");
    const log = write(join(directory, "0.log"), "x".repeat(10_000));
    for (const name of ["0.log.20060102-150405", "0.log.20060102-150405.gz", "0.log.tmp"])
      write(join(directory, name));
    for (const name of ["0.log-old", "00.log", "1.log", "0xlog.a"]) write(join(directory, name));
    const { names, bytes } = await deleter.removeContainerLogs({
      path: log,
      podUid: "uid-a",
      kept: [],
    });
    expect([...names].toSorted()).toEqual([
      "0.log",
      "0.log.20060102-150405",
      "0.log.20060102-150405.gz",
      "0.log.tmp",
    ]);
    expect(readdirSync(directory).toSorted()).toEqual(["0.log-old", "00.log", "0xlog.a", "1.log"]);
    expect(bytes).toBeGreaterThanOrEqual(10_000n);
  });

  test.each([
    ["of the same path", "0.log", "0.log", ["0.log", "0.log.1", "0.log.1.gz", "0.log.2"]],
    ["of a path like a rotation", "0.log", "0.log.1", ["0.log.1", "0.log.1.gz"]],
    [
      "whose rotation has that path",
      "0.log.1",
      "0.log",
      ["0.log", "0.log.1", "0.log.1.gz", "0.log.2"],
    ],
    ["of another path", "0.log", "1.log", []],
  ])("are kept if they belong to another container, %s", async (_, name, other, left) => {
    const directory = join(pods, podA, "c");
    for (const each of ["0.log", "0.log.1", "0.log.1.gz", "0.log.2"]) write(join(directory, each));
    // Where a rotation's path is asked for, the file of the other begins alike.
    await deleter.removeContainerLogs({
      path: join(directory, name),
      podUid: "uid-a",
      kept: [other],
    });
    const kept = readdirSync(directory).toSorted();
    expect(kept).toEqual(
      name === "0.log.1" ? ["0.log", "0.log.1", "0.log.1.gz", "0.log.2"] : [...left],
    );
  });

  test("are found by the resolved path too, if the root is a link", async () => {
    const real = write(join(pods, podA, "c", "0.log"));
    symlinkSync(pods, join(top, "by-link"));
    const byLink = logDeleter({
      podLogsDir: join(top, "by-link"),
      containerLogsDir: links,
    });
    await byLink.removeContainerLogs({
      path: join(top, "by-link", podA, "c", "0.log"),
      podUid: "uid-a",
      kept: [],
    });
    expect(existsSync(real)).toBe(false);
    write(real);
    await byLink.removeContainerLogs({ path: real, podUid: "uid-a", kept: [] });
    expect(existsSync(real)).toBe(false);
  });

  test("that are links lose the link, not its target", async () => {
    const precious = outside();
    mkdirSync(join(pods, podA, "c"), { recursive: true });
    symlinkSync(precious, join(pods, podA, "c", "0.log"));
    await deleter.removeContainerLogs({
      path: join(pods, podA, "c", "0.log"),
      podUid: "uid-a",
      kept: [],
    });
    expect(existsSync(precious)).toBe(true);
    expect(readdirSync(join(pods, podA, "c"))).toEqual([]);
  });

  test("keep a directory whose name matches", async () => {
    const kept = write(join(pods, podA, "c", "0.log.d", "file"));
    await deleter.removeContainerLogs({
      path: join(pods, podA, "c", "0.log"),
      podUid: "uid-a",
      kept: [],
    });
    expect(existsSync(kept)).toBe(true);
  });

  test("that no longer exist are no failure", async () => {
    const gone = await deleter.removeContainerLogs({
      path: join(pods, podA, "c", "0.log"),
      podUid: "uid-a",
      kept: [],
    });
    expect(gone.names).toEqual([]);
  });

  test.each([
    ["an empty path", () => ""],
    ["a relative path", () => `${podA}/c/0.log`],
    ["a path outside", () => outside()],
    ["a path that leaves by dots", () => `${pods}/${podA}/../../outside/precious`],
    ["a path of a root with the same beginning", () => `${pods}-other/${podA}/c/0.log`],
    ["a path in the root itself", () => write(join(pods, "0.log"))],
    ["the directory of another pod", () => write(join(pods, "default_app_uid-b", "c", "0.log"))],
    ["a directory that is no pod's", () => write(join(pods, "uid-a", "c", "0.log"))],
    ["a path with an empty component", () => `${pods}/${podA}//0.log`],
    ["a path that ends in a slash", () => `${pods}/${podA}/c/`],
    ["a path with a NUL", () => `${pods}/${podA}/c/0.log\0`],
  ])("refuses %s", async (_, path) => {
    outside();
    expect(
      await failureOf(deleter.removeContainerLogs({ path: path(), podUid: "uid-a", kept: [] })),
    ).toMatchObject({
      kind: "refused",
    });
    expect(existsSync(join(top, "outside", "precious"))).toBe(true);
    for (const kept of [join(pods, "0.log"), join(pods, "default_app_uid-b", "c", "0.log")]) {
      if (path() === kept) expect(existsSync(kept)).toBe(true);
    }
  });

  test.each([
    [
      "the container's directory",
      () => symlinkSync(join(top, "outside"), join(pods, podA, "c")),
      `${podA}/c/precious`,
    ],
    [
      "the pod's directory",
      () => symlinkSync(top, join(pods, "default_evil_uid-a")),
      "default_evil_uid-a/outside/precious",
    ],
  ])("does not follow a link in place of %s", async (_, link, path) => {
    const precious = outside();
    mkdirSync(join(pods, podA));
    link();
    expect(
      await failureOf(
        deleter.removeContainerLogs({ path: join(pods, path), podUid: "uid-a", kept: [] }),
      ),
    ).toMatchObject({
      kind: "write",
    });
    expect(existsSync(precious)).toBe(true);
  });
});

describe("names that are not UTF-8", () => {
  /** Both read as the same text. */
  const [one, other] = [Buffer.from([0xff]), Buffer.from([0xfe])];
  const bytes = (path: string, end: Buffer): Buffer => Buffer.concat([Buffer.from(path), end]);
  const namesIn = (path: string): readonly string[] =>
    readdirSync(path, { encoding: "buffer" }).map((name) => name.toString("latin1"));

  test("do not keep a pod's directory", async () => {
    write(join(pods, podA, "c", "0.log"));
    for (const end of [one, other]) {
      writeFileSync(bytes(join(pods, podA, "file-"), end), "x");
      mkdirSync(bytes(join(pods, podA, "directory-"), end));
      writeFileSync(bytes(join(pods, podA, "c", "0.log."), end), "x");
    }
    const { names } = await deleter.removePodLogs(pod(podA, "uid-a"));
    expect(names).toHaveLength(5);
    expect(existsSync(join(pods, podA))).toBe(false);
  });

  test("are told apart by their bytes: a rotation goes, a file with the same text stays", async () => {
    const path = write(join(pods, podA, "c", "\uFFFD"));
    for (const name of ["", "\uFFFD."])
      writeFileSync(bytes(`${join(pods, podA, "c")}/${name}`, one), "x");
    await deleter.removeContainerLogs({ path, podUid: "uid-a", kept: [] });
    expect(namesIn(join(pods, podA, "c"))).toEqual(["\u00ff"]);
  });
});

describe("the directory of a pod", () => {
  test("is deleted with its content, and links in it are not followed", async () => {
    const precious = outside();
    write(join(pods, podA, "c", "0.log"), "x".repeat(20_000));
    write(join(pods, podA, "deep", "er", "file"));
    symlinkSync(join(top, "outside"), join(pods, podA, "link-to-directory"));
    symlinkSync(precious, join(pods, podA, "c", "link-to-file"));
    const { names, bytes } = await deleter.removePodLogs(pod(podA, "uid-a"));
    expect(existsSync(join(pods, podA))).toBe(false);
    expect(existsSync(precious)).toBe(true);
    expect(names).toContain(`${podA}/c/0.log`);
    expect(bytes).toBeGreaterThanOrEqual(20_000n);
  });

  test("loses nothing outside while its directories are swapped for links", async () => {
    const precious = outside();
    for (let round = 0; round < 100; round += 1) {
      for (const name of ["a", "b", "c"]) write(join(pods, podA, name, "precious"));
      const swap = async (name: string): Promise<void> => {
        await rename(join(pods, podA, name), join(top, `aside-${round}-${name}`));
        await symlink(join(top, "outside"), join(pods, podA, name));
      };
      await Promise.allSettled([
        deleter.removePodLogs(pod(podA, "uid-a")),
        deleter.removeContainerLogs({
          path: join(pods, podA, "b", "precious"),
          podUid: "uid-a",
          kept: [],
        }),
        ...["a", "b", "c"].map(swap),
      ]);
      expect(existsSync(precious)).toBe(true);
      rmSync(join(pods, podA), { recursive: true, force: true });
    }
  });

  test("that no longer exists is no failure", async () => {
    expect((await deleter.removePodLogs(pod(podA, "uid-a"))).names).toEqual([]);
  });

  test("that became a link is left alone, and so is its target", async () => {
    const precious = outside();
    symlinkSync(join(top, "outside"), join(pods, podA));
    expect(await failureOf(deleter.removePodLogs(pod(podA, "uid-a")))).toMatchObject({
      kind: "write",
    });
    expect(existsSync(precious)).toBe(true);
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
    const precious = outside();
    write(join(pods, "lost+found", "file"));
    write(join(pods, podA, "c", "0.log"));
    expect(await failureOf(deleter.removePodLogs(pod(entry, uid)))).toMatchObject({
      kind: "refused",
    });
    expect(
      [precious, join(pods, "lost+found", "file"), join(pods, podA, "c", "0.log")].every(
        existsSync,
      ),
    ).toBe(true);
  });

  test("is refused if it is deeper than any log directory", async () => {
    const deep = join(pods, podA, ...Array.from({ length: 40 }, () => "d"));
    mkdirSync(deep, { recursive: true });
    expect(await failureOf(deleter.removePodLogs(pod(podA, "uid-a")))).toMatchObject({
      kind: "refused",
    });
    expect(existsSync(deep)).toBe(true);
  });

  test("counts a file with another hard link as nothing freed", async () => {
    const log = write(join(pods, podA, "c", "0.log"), "x".repeat(20_000));
    linkSync(log, join(top, "other-name"));
    expect((await deleter.removePodLogs(pod(podA, "uid-a"))).bytes).toBe(0n);
  });
});

describe("the link of a container", () => {
  const entry = `app_default_c-${hexId("c1")}.log`;

  test("is deleted if it points to pod logs, and its target is kept", async () => {
    const log = write(join(pods, podA, "c", "0.log"));
    symlinkSync(log, join(links, entry));
    expect(await deleter.removeLegacyLink(entry)).toBe(true);
    expect(existsSync(join(links, entry))).toBe(false);
    expect(existsSync(log)).toBe(true);
  });

  test("that no longer exists is reported as such", async () => {
    expect(await deleter.removeLegacyLink(entry)).toBe(false);
  });

  test("is refused if it points elsewhere", async () => {
    symlinkSync(outside(), join(links, entry));
    expect(await failureOf(deleter.removeLegacyLink(entry))).toMatchObject({ kind: "refused" });
    expect(existsSync(join(links, entry))).toBe(true);
  });

  test("is refused if it is a file", async () => {
    write(join(links, entry));
    expect(await failureOf(deleter.removeLegacyLink(entry))).toMatchObject({ kind: "refused" });
    expect(existsSync(join(links, entry))).toBe(true);
  });

  test("outside the directory of links is ignored", async () => {
    const precious = outside();
    expect(await failureOf(deleter.removeLegacyLink("../outside/precious"))).toBeInstanceOf(Error);
    expect(existsSync(precious)).toBe(true);
  });
});

describe.skipIf(process.getuid?.() !== 0)("what is mounted in a log directory (needs root)", () => {
  const mounts = [
    ["another filesystem", ["-t", "tmpfs", "-o", "size=1m", "none"]],
    ["another directory of the same filesystem", ["--bind", "outside"]],
  ] as const;

  async function onMount(options: readonly string[], act: () => Promise<void>): Promise<void> {
    const place = join(pods, podA, "c");
    mkdirSync(place, { recursive: true });
    const mount = (...args: readonly string[]) => Bun.spawnSync([...args], { cwd: top }).exitCode;
    expect(mount("mount", ...options, place)).toBe(0);
    try {
      const log = write(join(place, "0.log"));
      await act();
      expect(existsSync(log)).toBe(true);
    } finally {
      expect(mount("umount", place)).toBe(0);
    }
  }

  test.each(mounts)("is kept with the directory of a pod: %s", async (_, options) => {
    outside();
    await onMount(options, async () => {
      const failure = await failureOf(deleter.removePodLogs(pod(podA, "uid-a")));
      const message = expect.stringContaining(`${podA}/c`);
      expect(failure).toMatchObject({ kind: "refused", message });
    });
  });

  test.each(mounts)("is kept with the logs of a container: %s", async (_, options) => {
    outside();
    await onMount(options, async () => {
      const log = join(pods, podA, "c", "0.log");
      const failure = await failureOf(
        deleter.removeContainerLogs({ path: log, podUid: "uid-a", kept: [] }),
      );
      expect(failure).toMatchObject({ kind: "refused" });
    });
  });
});
