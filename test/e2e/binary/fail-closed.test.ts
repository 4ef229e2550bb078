// Whatever the runtime or the disk fails to say: nothing is removed because of it.
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import type { Fault } from "../../support/fake-runtime/faults.ts";
import { type Json, removable, startNode, usedAndUnused } from "./node.ts";

const unused = imageIdOf("unused");
const node = usedAndUnused;
/** Where images can be mounted, so that every container's status counts. */
const options = {
  node,
  traits: { version: "v2.1.0" },
  flags: [...removable, "--maximum-dead-containers-per-container=0"],
};

test("without a fault the unused image and the dead container are removed", async () => {
  await using it = await startNode(options);
  expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
  expect(it.removedImages()).toEqual([unused]);
  expect(it.changes()).toEqual(["RemoveContainer", "RemoveImage"]);
});

const faults: Readonly<Record<string, Fault>> = {
  "is refused": { kind: "error", code: "UNKNOWN", message: "the store is locked" },
  "is answered with bytes that are no message": { kind: "garbage" },
  "is never answered": { kind: "hang" },
  "ends with the connection": { kind: "drop" },
};

describe.each(["ListImages", "ListContainers", "ListPodSandbox", "ImageFsInfo"])("%s", (method) => {
  test.each(Object.entries(faults))(
    "that %s ends the pass before any removal, with exit 3, and is named",
    async (_, fault) => {
      await using it = await startNode(options);
      it.runtime.fail(method, fault);
      const words = ["--all-unused", "--runtime-request-timeout=1s"];
      const [gc, plan] = await Promise.all([it.crigc("gc", ...words), it.crigc("plan", ...words)]);
      expect({ gc: gc.exitCode, plan: plan.exitCode }).toEqual({ gc: 3, plan: 3 });
      expect(gc.stdout + gc.stderr).toContain(it.runtime.socket);
      expect(it.changes()).toEqual([]);
    },
  );
});

// The transport cannot tell a stream that was cut inside a message from a complete one.
test.each([
  ["StreamContainers", "containers"],
  ["StreamPodSandboxes", "pod_sandboxes"],
])("a stream of %s that ends early, with status OK, stops everything", async (method, field) => {
  await using it = await startNode({
    ...options,
    traits: { ...options.traits, runtimeStreams: true, batchSize: 1 },
  });
  await it.crigc("gc", "--images", "--minimum-image-ttl-duration=1h");
  it.runtime.fail(method, { kind: "edit", edit: () => ({ [field]: [] }) });
  const { exitCode, stderr } = await it.crigc("gc", "--all-unused");
  expect(exitCode).toBe(3);
  expect(stderr).toContain("which still exists");
  expect(it.changes()).toEqual([]);
});

describe("the status of a container", () => {
  test("that fails leaves its image volumes unknown: no image is removed, exit 3, and the container is named", async () => {
    await using it = await startNode(options);
    it.runtime.fail(
      "ContainerStatus",
      { kind: "error", code: "UNAVAILABLE" },
      { when: (request) => (request as { container_id: string }).container_id === "web" },
    );
    const { exitCode, stdout } = await it.crigc("gc", "--all-unused");
    expect(exitCode).toBe(3);
    expect(stdout).toContain("web");
    expect(it.removedImages()).toEqual([]);
  });

  test("that is not found means that it no longer exists: the pass continues", async () => {
    await using it = await startNode(options);
    it.runtime.fail(
      "ContainerStatus",
      { kind: "error", code: "NOT_FOUND" },
      { when: (request) => (request as { container_id: string }).container_id === "web" },
    );
    await it.crigc("gc", "--all-unused");
    expect(it.removedImages()).toEqual([unused]);
  });

  test("names an image volume, which is in use", async () => {
    const containers = [
      {
        id: "web",
        sandboxId: "pod",
        image: "r.example/used:1",
        imageVolumes: ["r.example/unused:1"],
      },
    ];
    await using it = await startNode({ ...options, node: { ...node, containers } });
    expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
    expect(it.removedImages()).toEqual([]);
  });
});

test("a reference that cannot be resolved because the call failed stops image removal", async () => {
  const containers = [{ id: "web", sandboxId: "pod", image: "r.example/elsewhere:1" }];
  await using it = await startNode({ ...options, node: { ...node, containers } });
  it.runtime.fail("ImageStatus", { kind: "error", code: "UNKNOWN" });
  const { exitCode, stdout } = await it.crigc("gc", "--all-unused");
  expect(exitCode).toBe(3);
  expect(stdout).toContain("r.example/elsewhere:1");
  expect(it.removedImages()).toEqual([]);
});

describe("the image filesystem", () => {
  test.each([
    ["that is not there", "/no/such/directory"],
    ["with a relative path", "var/lib/images"],
    ["without a path", ""],
  ])("%s cannot be measured: exit 3, nothing is removed", async (_, mountpoint) => {
    const imageFilesystems = [{ mountpoint }];
    await using it = await startNode({ ...options, node: { ...node, imageFilesystems } });
    const { exitCode, stdout, stderr } = await it.crigc("gc", "--all-unused");
    expect(exitCode).toBe(3);
    expect(stdout + stderr).toContain(mountpoint === "" ? "no mount point" : mountpoint);
    expect(it.changes()).toEqual([]);
  });
});

describe("a log directory that cannot be read", () => {
  const home = mkdtempSync(join(tmpdir(), "crigc-binary-unread-"));
  afterAll(() => rmSync(home, { recursive: true }));
  const aFile = join(home, "file");
  writeFileSync(aFile, "no directory\n");
  const loop = join(home, "loop");
  symlinkSync(loop, loop);

  test.each([
    ["--pod-logs-dir", aFile, "part of the path is not a directory"],
    ["--container-logs-dir", loop, "it is a symbolic link"],
  ])(
    "(%s %s) stops only the removal of logs: exit 3, and the directory is named",
    async (flag, path, why) => {
      await using it = await startNode(options);
      const said = `cannot open the log directory ${path}: ${why}`;
      const given = ["--all-unused", `${flag}=${path}`];

      const plan = await it.json(["plan", ...given], 3);
      expect(plan.containers.logsError).toContain(said);
      expect(plan.images.candidates.map(({ id }: Json) => id)).toEqual([unused]);
      const gc = await it.crigc("gc", ...given);
      expect(gc.exitCode).toBe(3);
      expect(it.changes()).toEqual(["RemoveContainer", "RemoveImage"]);
      for (const text of [gc.stdout, gc.stderr])
        expect(text.replaceAll(/\s+/g, " ")).toContain(said.replaceAll(/\s+/g, " "));
      const [pass] = (await it.json(["history"])).passes;
      expect(pass).toMatchObject({ error: expect.stringContaining(said), removed: 2 });
    },
  );
});
