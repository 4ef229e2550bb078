import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import {
  holderWords,
  isAgent,
  isSameSocket,
  lockDirectory,
  lockHolder,
  type LockWait,
  socketDirectory,
  stateDirectory,
} from "../../src/node/lock.ts";
import { failureOf } from "../support/failure.ts";
import { put, scratch } from "../support/scratch.ts";

const lock = (directory: string, wait: Partial<LockWait> = {}) =>
  lockDirectory(directory, { waitMs: 0, signal: new AbortController().signal, ...wait });

/** A process that holds the directory's lock as `crigc COMMAND` would. */
async function heldBy(directory: string, command: string) {
  const libc = join(import.meta.dir, "../../src/node/libc.ts");
  const program = put(
    scratch(),
    "holder.ts",
    `import { openSync } from "node:fs"; import { tryFlock } from ${JSON.stringify(libc)};
console.log(tryFlock(openSync(process.env.LOCKED, "r")).kind); await Bun.stdin.text();`,
  );
  const child = Bun.spawn([process.execPath, program, command], {
    env: { ...process.env, LOCKED: directory },
    stdin: "pipe",
    stdout: "pipe",
  });
  await child.stdout.getReader().read();
  return child;
}

describe("lockDirectory", () => {
  test("excludes others until it is released, and leaves nothing in the directory", async () => {
    const directory = scratch();
    const first = await lock(directory);
    expect(await failureOf(lock(directory))).toMatchObject({ kind: "lock" });
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    (await lock(directory))[Symbol.dispose]();
  });

  test("gives the lock to a waiting caller when it is released, unless that was cancelled", async () => {
    const directory = scratch();
    const first = await lock(directory);
    const cancelled = lock(directory, { waitMs: 60_000, signal: AbortSignal.timeout(1) });
    expect(await failureOf(cancelled)).toMatchObject({ kind: "stopped" });
    const second = lock(directory, { waitMs: 10_000 });
    first[Symbol.dispose]();
    (await second)[Symbol.dispose]();
  });

  test("waits for a command, says for which one, and gives up in time", async () => {
    const directory = scratch();
    const child = await heldBy(directory, "gc");
    const waitedFor: string[] = [];
    const onHeld: LockWait["onHeld"] = (holder) => void waitedFor.push(holderWords(holder));
    const failure = await failureOf(lock(directory, { waitMs: 120, onHeld }));
    expect(failure).toMatchObject({
      kind: "lock",
      message: `crigc gc, process ${child.pid}, holds the node; try again when it has ended`,
    });
    expect(waitedFor).toEqual([`crigc gc, process ${child.pid}`]);
    child.kill("SIGKILL");
    await child.exited;
    (await lock(directory, { waitMs: 10_000 }))[Symbol.dispose]();
  });

  test("does not wait for an agent", async () => {
    const directory = scratch();
    const child = await heldBy(directory, "run");
    const failure = await failureOf(lock(directory, { waitMs: 3_600_000 }));
    expect(failure).toMatchObject({
      kind: "lock",
      message: `another agent holds ${directory} (crigc run, process ${child.pid})`,
    });
    child.kill();
    await child.exited;
  });

  test("does not pass the lock to a child process", async () => {
    const directory = scratch();
    const first = await lock(directory);
    const child = Bun.spawnSync(["ls", "-l", "/proc/self/fd"]);
    expect(child.exitCode).toBe(0);
    expect(child.stdout.toString()).not.toContain(directory);
    first[Symbol.dispose]();
  });

  test("fails for a directory that does not exist, so that nothing is removed", async () => {
    const failure = await failureOf(lock(join(scratch(), "absent")));
    expect(failure).toMatchObject({ kind: "refused" });
  });
});

describe("lockHolder", () => {
  test("names the agent that holds a directory, and takes nothing itself", async () => {
    const directory = scratch();
    expect(lockHolder(directory)).toBeNull();
    const child = await heldBy(directory, "run");
    const holder = lockHolder(directory);
    expect(holder).toEqual({ directory, pid: child.pid, command: "run" });
    expect(holder !== null && isAgent(holder)).toBe(true);
    child.kill("SIGKILL");
    await child.exited;
    expect(lockHolder(directory)).toBeNull();
    (await lock(directory))[Symbol.dispose]();
  });

  test("a process that is not crigc counts as no agent", async () => {
    const directory = scratch();
    const child = await heldBy(directory, "backup");
    const holder = lockHolder(directory);
    expect(holder).toMatchObject({ command: "another" });
    expect(holder !== null && isAgent(holder)).toBe(false);
    child.kill();
    await child.exited;
  });

  test("a holder of another PID namespace counts as an agent", () => {
    expect(isAgent({ directory: "/run", pid: null, command: "another" })).toBe(true);
  });

  test("a directory that does not exist has no holder", () => {
    expect(lockHolder(join(scratch(), "absent"))).toBeNull();
  });
});

test("a socket has one directory under all its names, whether it exists or not", () => {
  const top = scratch();
  mkdirSync(join(top, "run"));
  symlinkSync("run", join(top, "var-run"));
  const names = [`unix://${top}/run/x.sock`, `${top}/run/x.sock`, `unix://${top}/var-run/x.sock`];
  expect(new Set(names.map(socketDirectory))).toEqual(new Set([join(top, "run")]));
  put(top, "run/x.sock");
  symlinkSync("run/x.sock", join(top, "y.sock"));
  expect(new Set([...names, `${top}/y.sock`].map(socketDirectory))).toEqual(
    new Set([join(top, "run")]),
  );
  expect(isSameSocket(`unix://${top}/y.sock`, `${top}/var-run/x.sock`)).toBe(true);
  expect(isSameSocket(`unix://${top}/y.sock`, `${top}/run/z.sock`)).toBe(false);
  rmSync(join(top, "run"), { recursive: true });
  expect(socketDirectory(`unix://${top}/var-run/x.sock`)).toBe(join(top, "run"));
});

test("a state directory is created; one that cannot be is not locked", () => {
  const top = scratch();
  expect(stateDirectory(join(top, "a/b"))).toBe(join(top, "a/b"));
  expect(stateDirectory(put(top, "file"))).toBeNull();
});
