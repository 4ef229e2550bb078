import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { EventHook } from "../../src/node/executable.ts";
import { until } from "../support/containerd/until.ts";
import { put, scratch } from "../support/scratch.ts";

/** A process that has ended and was not waited for yet counts as ended. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function hookIn(directory: string, script: string, limitMs?: number) {
  const failures: string[] = [];
  const path = put(directory, "hook", `#!${Bun.which("sh")}\n${script}\n`, 0o755);
  return { path, failures, hook: new EventHook((message) => failures.push(message), limitMs) };
}

describe("the event hook", () => {
  test("that fails is reported, and gets the next event", async () => {
    const directory = scratch();
    const { hook, path, failures } = hookIn(directory, `touch "${directory}/ran.$$"; exit 3`);
    hook.send(path, "{}");
    hook.send(path, "{}");
    await hook.close();
    expect(failures).toHaveLength(2);
    expect(failures[0]).toContain("exit code 3");
    expect(readdirSync(directory).filter((name) => name.startsWith("ran."))).toHaveLength(2);
  });

  test.each(["/nowhere/hook", "/etc/passwd", "/etc"])(
    "%s cannot be started, and is reported",
    async (path) => {
      const failures: string[] = [];
      const hook = new EventHook((message) => failures.push(message));
      hook.send(path, "{}");
      await hook.close();
      expect(failures).toHaveLength(1);
      expect(failures[0]).toContain(path);
    },
  );

  test.each([
    ["after its time", (hook: EventHook) => hook.close()],
    ["when crigc ends", (hook: EventHook) => hook.close(300)],
  ])("that hangs is killed %s with the children that it started", async (when, close) => {
    const directory = scratch();
    const limitMs = when === "after its time" ? 300 : undefined;
    const { hook, path, failures } = hookIn(
      directory,
      `sleep 600 & echo $! >"${directory}/child"; sleep 600`,
      limitMs,
    );
    hook.send(path, "{}");
    await close(hook);
    const child = Number(readFileSync(join(directory, "child"), "utf8"));
    await until("the child has ended", 5_000, () => !isRunning(child));
    const why = when === "after its time" ? "was killed after 300 ms" : "when crigc stopped";
    expect(failures).toEqual([expect.stringContaining(why)]);
  });

  test("that returns may leave work running in the background", async () => {
    const directory = scratch();
    const { hook, path, failures } = hookIn(directory, `sleep 600 & echo $! >"${directory}/child"`);
    // Nor is it a failure that it leaves its input unread.
    hook.send(path, "x".repeat(1024 * 1024));
    await hook.close();
    const child = Number(readFileSync(join(directory, "child"), "utf8"));
    expect(isRunning(child)).toBe(true);
    expect(failures).toEqual([]);
    process.kill(child, "SIGKILL");
  });

  test("that hangs does not keep the program from exiting, however many events wait", async () => {
    const { hook, path, failures } = hookIn(scratch(), "exec sleep 600");
    for (let event = 0; event < 20; event += 1) hook.send(path, "{}");
    await hook.close(100);
    expect(failures.filter((it) => it.includes("when crigc stopped"))).toHaveLength(2);
    expect(failures).toContainEqual(expect.stringContaining("dropped 18 events"));
  });

  test("runs at most twice at once, and the oldest waiting events are dropped and counted", async () => {
    const directory = scratch();
    const { hook, path, failures } = hookIn(
      directory,
      `mkdir "${directory}/one" 2>/dev/null && { sleep 0.01; rmdir "${directory}/one"; exit; }
       mkdir "${directory}/two" 2>/dev/null && { sleep 0.01; rmdir "${directory}/two"; exit; }
       touch "${directory}/three"`,
    );
    for (let event = 0; event < 60; event += 1) hook.send(path, "{}");
    await hook.close(30_000);
    expect(existsSync(join(directory, "three"))).toBe(false);
    expect(failures).toEqual([expect.stringContaining("dropped 8 events")]);
    hook.send(path, "{}");
    expect(failures).toHaveLength(1);
  });
});
