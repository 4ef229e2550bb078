// Every exit code of the executable, each by its cause; 7 is in operator.test.ts.
import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { imageIdOf, type NodeDescription } from "../../support/fake-runtime/describe.ts";
import { diskObstacle, layer, MiB, smallDisk } from "./disk.ts";
import { image, removable, startNode, usedAndUnused } from "./node.ts";

const flags = removable;
const node: NodeDescription = { ...usedAndUnused, containers: [usedAndUnused.containers[0]] };

test("exit code 1 is the exit code when the result cannot be written", async () => {
  await using it = await startNode({ node });
  const words = ["--state-dir=/proc/no", "--run-dir=/proc/no"];
  const { exitCode, stderr } = await it.crigc("hold", "1h", ...words);
  expect(exitCode).toBe(1);
  expect(stderr).toContain("/proc/no");
});

describe("exit code 2", () => {
  test.each([["gc"], ["plan"], ["keep check"]])(
    "is the exit code of %s if keep rules are invalid",
    async (command) => {
      await using it = await startNode({ node, flags });
      writeFileSync(join(it.keepDir, "site.list"), "r.example/fine\nr.example/not fine\n");
      const { exitCode, stdout, stderr } = await it.within({}, ...command.split(" "));
      expect(exitCode).toBe(2);
      expect(stdout + stderr).toContain("site.list:2");
      expect(it.changes()).toEqual([]);
    },
  );

  test("is the exit code of gc if the directory that --keep-dir names is missing", async () => {
    await using it = await startNode({ node, flags });
    rmSync(it.keepDir, { recursive: true });
    const { exitCode, stdout } = await it.crigc("gc", "--all-unused");
    expect(exitCode).toBe(2);
    expect(stdout.replaceAll(/\s+/g, " ")).toContain("that --keep-dir names does not exist");
    expect(it.changes()).toEqual([]);
  });

  test.each(["--keep=r.example/a:b c", "--pod-infra-container-image=r.example/pause: 3"])(
    "is the exit code for %s, of which nobody can tell what it keeps",
    async (flag) => {
      await using it = await startNode({ node, flags: [...flags, flag] });
      const [name = "", text = ""] = flag.split("=");
      for (const words of [["gc", "--all-unused"], ["plan"], ["keep", "check"], ["config"]]) {
        const { exitCode, stdout, stderr } = await it.within({}, ...words);
        expect({ words, exitCode }).toEqual({ words, exitCode: 2 });
        expect(stdout + stderr).toContain(text);
        expect(stdout + stderr).toContain(name);
      }
      expect(it.changes()).toEqual([]);
    },
  );

  test.each([
    ["gc", "--image-gc-high-threshold=101"],
    ["config", "--image-gc-high-threshold=101"],
    ["gc", "--no-such-flag"],
    ["frobnicate", "--dry-run"],
  ])("is the exit code of %s %s", async (command, word) => {
    await using it = await startNode({ node });
    expect(await it.crigc(command, word)).toMatchObject({ exitCode: 2, stdout: "" });
    expect(it.runtime.calls).toEqual([]);
  });
});

describe("exit code 3", () => {
  test("is the exit code when the runtime does not answer", async () => {
    await using it = await startNode({ node });
    await it.runtime.crash();
    for (const command of ["gc", "plan", "images", "snapshot"])
      expect(await it.crigc(command)).toMatchObject({ exitCode: 3, stdout: "" });
  });

  // A filesystem of no size, as a disk is that was not mounted.
  test("is the exit code when the images are on a disk of capacity 0", async () => {
    const imageFilesystems = [{ mountpoint: "/proc" }];
    await using it = await startNode({ node: { ...node, imageFilesystems }, flags });
    const { exitCode, stdout } = await it.crigc("gc");
    expect(exitCode).toBe(3);
    expect(stdout).toContain("InvalidDiskCapacity");
    expect(await it.crigc("plan")).toMatchObject({ exitCode: 3 });
    expect(it.changes()).toEqual([]);
  });

  test("is the exit code when the images in use are unknown", async () => {
    await using it = await startNode({ node, flags, traits: { version: "v2.1.0" } });
    it.runtime.fail("ContainerStatus", { kind: "error", code: "UNKNOWN" });
    for (const command of ["gc", "plan"]) {
      const { exitCode, stdout } = await it.crigc(command, "--all-unused");
      expect(exitCode).toBe(3);
      expect(stdout).toContain("web");
    }
    expect(it.changes()).toEqual([]);
  });
});

test.skipIf(diskObstacle !== null)(
  "exit code 4 is the exit code when removing every image could not help, so that none is removed",
  async () => {
    await using disk = await smallDisk(20 * MiB);
    writeFileSync(join(disk.directory, "not an image"), Buffer.alloc(18 * MiB));
    const images = [image("unused", MiB / 4, { layers: [layer("unused", 0.25)] })];
    const store = { directory: join(disk.directory, "store") };
    const own = ["--minimum-image-ttl-duration=0s"];
    await using it = await startNode({ node: { images }, store, flags: own });
    const { exitCode, stdout } = await it.crigc("gc");
    expect(it.removedImages()).toEqual([]);
    expect(stdout).toContain("ImageGCFutile");
    expect(exitCode).toBe(4);
  },
);

describe("in the grace period after a boot", () => {
  const [, dead] = usedAndUnused.containers;
  const newer = { ...dead, id: "new", attempt: 1, createdAt: "2026-01-01T00:00:00Z" } as const;
  const withDead: NodeDescription = {
    ...usedAndUnused,
    containers: [...usedAndUnused.containers, newer],
  };
  /** A new ledger on a machine that booted within the grace. */
  const grace = "--boot-grace=87600h";

  test.each([
    ["gc --containers", withDead, 4],
    ["gc", withDead, 4],
    ["gc", node, 0],
    ["gc --all-unused", node, 4],
    ["gc --max-images=1 --dry-run", node, 4],
    ["rm r.example/unused:1", node, 4],
    ["rm r.example/unused:1 r.example/used:1", node, 5],
  ])(
    "crigc %s removes nothing, says why and exits by what was asked for",
    async (line, on, code) => {
      await using it = await startNode({ node: on, flags });
      const { exitCode, stdout } = await it.within({}, ...line.split(" "), grace);
      expect({ exitCode, changes: it.changes() }).toEqual({ exitCode: code, changes: [] });
      expect(stdout).toContain("grace period (--boot-grace) for another");
    },
  );
});

test("exit code 5 is the exit code when a removal failed and the rest was done", async () => {
  const images = ["a", "b", "c"].map((name) => ({ id: imageIdOf(name), sizeBytes: 1_000 }));
  await using it = await startNode({ node: { images }, flags });
  const [, second] = (await it.json(["plan", "--all-unused"])).images.candidates;
  it.runtime.fail(
    "RemoveImage",
    { kind: "error", code: "UNKNOWN", message: "layer is locked" },
    { when: (request) => JSON.stringify(request).includes(second.id) },
  );
  const { exitCode, stdout } = await it.crigc("gc", "--all-unused");
  expect(exitCode).toBe(5);
  expect(stdout).toContain("layer is locked");
  expect(it.runtime.node.images.map(({ id }) => id)).toEqual([second.id]);
});

describe("exit code 6", () => {
  test("is the exit code of a second agent, which names the first", async () => {
    await using it = await startNode({ node });
    await using first = it.start("run");
    await first.untilSaid("connected to the runtime");
    await first.untilSaid(/image-gc/);
    const { exitCode, stderr } = await it.crigc("run");
    expect(exitCode).toBe(6);
    expect(stderr).toContain(String(first.pid));
    expect(first.exitCode()).toBeNull();
    expect(await it.crigc("status")).toMatchObject({ exitCode: 0 });
  });

  test("is the exit code of gc that waited for another pass longer than --runtime-request-timeout", async () => {
    await using it = await startNode({ node, flags });
    it.runtime.fail("RemoveImage", { kind: "hang" });
    await using first = it.start("gc", "--all-unused", "--runtime-request-timeout=20s");
    while (it.removedImages().length === 0) await Bun.sleep(5);
    const own = "--runtime-request-timeout=1s";
    const { exitCode, stdout, stderr, tookMs } = await it.crigc("gc", own);
    expect(exitCode).toBe(6);
    expect(tookMs).toBeWithin(900, 4_000);
    expect(stdout + stderr).toContain("another pass");
    expect(it.removedImages()).toHaveLength(1);
    first.signal("SIGKILL");
  });
});

test.each([
  ["for an unknown REF", ["explain", "r.example/no-such-thing"], "r.example/no-such-thing"],
  ["if no agent answers", ["status"], "run"],
])("exit code 8 is the exit code %s", async (_, words, said) => {
  await using it = await startNode({ node });
  const { exitCode, stdout, stderr } = await it.within({}, ...words);
  expect({ exitCode, stdout }).toEqual({ exitCode: 8, stdout: "" });
  expect(stderr).toContain(said);
});
