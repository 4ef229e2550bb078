// Whatever the runtime or the disk fails to say: nothing is removed because of it.
import { expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";

import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import type { Fault } from "../../support/fake-runtime/faults.ts";
import { put } from "../../support/scratch.ts";
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

const faults: readonly Fault[] = [
  { kind: "error", code: "UNKNOWN", message: "the store is locked" },
  { kind: "garbage" },
  { kind: "hang" },
  { kind: "drop" },
];

test.each(["ListImages", "ListContainers", "ListPodSandbox", "ImageFsInfo"])(
  "a call of %s that fails in any way ends the pass before any removal, with exit 3, and is named",
  async (method) => {
    await using it = await startNode(options);
    const words = ["--all-unused", "--runtime-request-timeout=1s"];
    for (const fault of faults) {
      const lift = it.runtime.fail(method, fault);
      const [gc, plan] = await Promise.all([it.crigc("gc", ...words), it.crigc("plan", ...words)]);
      expect({ fault, gc: gc.exitCode, plan: plan.exitCode }).toEqual({ fault, gc: 3, plan: 3 });
      expect(gc.stdout + gc.stderr).toContain(it.runtime.socket);
      expect(it.changes()).toEqual([]);
      lift();
    }
  },
);

test("a container's status that fails stops image removal with exit 3, one not found does not, and its image volumes are in use", async () => {
  const [web] = node.containers;
  await using it = await startNode(options);
  const when = (request: object) => (request as { container_id: string }).container_id === "web";
  const lift = it.runtime.fail("ContainerStatus", { kind: "error", code: "UNAVAILABLE" }, { when });
  for (const command of ["gc", "plan"]) {
    const { exitCode, stdout } = await it.crigc(command, "--images", "--all-unused");
    expect(exitCode).toBe(3);
    expect(stdout).toContain("web");
  }
  lift();
  it.runtime.fail("ContainerStatus", { kind: "error", code: "NOT_FOUND" }, { when });
  await it.crigc("gc", "--all-unused");
  expect(it.removedImages()).toEqual([unused]);
  it.runtime.node.addImage(node.images[0]);
  it.runtime.node.addContainer({ ...web, id: "model", imageVolumes: ["r.example/unused:1"] });
  expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
  expect(it.removedImages()).toEqual([unused]);
});

test.each([
  ["that is not there", "/no/such/directory", "/no/such/directory"],
  ["with a relative path", "var/lib/images", "var/lib/images"],
  ["without a path", "", "no mount point"],
  // A filesystem of no size, as a disk is that was not mounted.
  ["of capacity 0", "/proc", "InvalidDiskCapacity"],
])(
  "an image filesystem %s cannot be measured: exit 3, nothing is removed",
  async (_, mountpoint, said) => {
    const imageFilesystems = [{ mountpoint }];
    const containers = node.containers.slice(0, 1);
    const onIt = { ...node, containers, imageFilesystems };
    await using it = await startNode({ ...options, node: onIt });
    const { exitCode, stdout, stderr } = await it.crigc("gc");
    expect(exitCode).toBe(3);
    expect(stdout + stderr).toContain(said);
    for (const command of ["plan", "df"])
      expect(await it.crigc(command)).toMatchObject({ exitCode: 3 });
    expect(it.changes()).toEqual([]);
  },
);

test("log directories that cannot be read stop only the removal of logs: exit 3, and each is named", async () => {
  await using it = await startNode(options);
  const aFile = put(it.home, "file", "no directory\n");
  const loop = join(it.home, "loop");
  symlinkSync(loop, loop);
  for (const [flag, path, why] of [
    ["--pod-logs-dir", aFile, "part of the path is not a directory"],
    ["--container-logs-dir", loop, "it is a symbolic link"],
  ] as const) {
    const said = `cannot open the log directory ${path}: ${why}`;
    const plan = await it.json(["plan", "--all-unused", `${flag}=${path}`], 3);
    expect(plan.containers.logsError).toContain(said);
    expect(plan.images.candidates.map(({ id }: Json) => id)).toEqual([unused]);
  }
  const said = `cannot open the log directory ${aFile}`;
  const df = await it.crigc("df", `--pod-logs-dir=${aFile}`);
  expect(df).toMatchObject({ exitCode: 3, stderr: expect.stringContaining(said) });
  const gc = await it.crigc("gc", "--all-unused", `--pod-logs-dir=${aFile}`);
  expect(gc.exitCode).toBe(3);
  expect(it.changes()).toEqual(["RemoveContainer", "RemoveImage"]);
  for (const text of [gc.stdout, gc.stderr]) expect(text.replaceAll(/\s+/g, " ")).toContain(said);
  const [pass] = (await it.json(["history"])).passes;
  expect(pass).toMatchObject({ error: expect.stringContaining(said), removed: 2 });
});
