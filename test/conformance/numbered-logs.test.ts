// The kubelet's own unit tests of container logs, by their numbers 47 to 49, on real files.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { removeContainers } from "../../src/gc/remove-containers.ts";
import { podUid } from "../../src/model/ids.ts";
import { containerIdOfLogLink, containerLogLink } from "../../src/model/log-names.ts";
import { logDeleter } from "../../src/node/log-remover.ts";
import { dead, inputOf, judged } from "../support/build/pods.ts";
import { containerLimits } from "../support/build/values.ts";
import { FakeNode } from "../support/fake-node.ts";

let top: string;
beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), "crigc-numbered-"));
  mkdirSync(join(top, "pods"));
  mkdirSync(join(top, "containers"));
});
afterEach(() => rmSync(top, { recursive: true }));

const deleter = () =>
  logDeleter({
    podLogsDir: join(top, "pods"),
    containerLogsDir: join(top, "containers"),
  });

test("47: a container is removed with its log, rotation and link", async () => {
  const directory = join(top, "pods", "new_bar_12345678", "foo");
  mkdirSync(directory, { recursive: true });
  const log = join(directory, "0.log");
  writeFileSync(log, "");
  writeFileSync(join(directory, "0.log.20060102-150405"), "");
  const container = dead("bar", "foo", {
    podUid: podUid("12345678"),
    podName: "bar",
    podNamespace: "new",
  });
  const link = join(top, "containers", containerLogLink(container));
  symlinkSync(log, link);

  const details = new Map([[container.id, { logPath: log }]]);
  const node = new FakeNode({ containers: [container], sandboxes: [], details });
  const input = inputOf(
    { containers: [container] },
    { pods: judged({ gone: ["12345678"] }), limits: { ...containerLimits, compat: "kubelet" } },
  );
  await removeContainers(node.execution({ inOrder: true, logs: deleter() }, input));

  expect(readdirSync(directory)).toEqual([]);
  expect(readdirSync(join(top, "containers"))).toEqual([]);
  expect(node.called("remove-container")).toEqual([container.id]);
});

test("48: only one of several logs in a directory is deleted, with its rotations", async () => {
  const directory = join(top, "pods", "default_app_uid-a");
  mkdirSync(directory);
  for (const name of [
    "test-log-1",
    "test-log-2",
    "test-log-2.00000000-000001.gz",
    "test-log-2.00000000-000002",
    "test-log-3",
    "test-log-3.00000000-000001.gz",
    "test-log-3.00000000-000002",
  ]) {
    writeFileSync(join(directory, name), "");
  }
  await deleter().removeContainerLogs({
    path: join(directory, "test-log-3"),
    podUid: "uid-a",
    kept: [],
  });
  expect(readdirSync(directory).toSorted()).toEqual([
    "test-log-1",
    "test-log-2",
    "test-log-2.00000000-000001.gz",
    "test-log-2.00000000-000002",
  ]);
  expect(existsSync(directory)).toBe(true);
});

describe("49: the link of a container", () => {
  const id = "8b4c3fc71c9bd9d8cb3e6ca9c0a5ba1e0d4dbd6e9d8ea3c37ea4bb7d44d8b0f4";

  test("has a name of at most 255 bytes, whose stem is cut to 251", () => {
    const container = {
      podName: "p".repeat(100),
      podNamespace: "n".repeat(60),
      name: "c".repeat(63),
      id,
    };
    const link = containerLogLink(container);
    expect(link).toHaveLength(255);
    expect(link.slice(-4)).toBe(".log");
    const stem = `${container.podName}_${container.podNamespace}_${container.name}-${id}`;
    expect(link.slice(0, 251)).toBe(stem.slice(0, 251));
    expect(containerIdOfLogLink(link)).toBe(id.slice(0, 251 - 226));
  });

  test("is not cut if it fits", () => {
    const link = containerLogLink({ podName: "app", podNamespace: "default", name: "c", id });
    expect(link).toBe(`app_default_c-${id}.log`);
    expect(containerIdOfLogLink(link)).toBe(id);
  });

  test.each([
    ["no dash", "app_default_c.log"],
    ["another ending", `app_default_c-${id}.txt`],
    ["five characters for an ID", "app_default_c-12345.log"],
  ])("gives no ID with %s", (_, entry) => {
    expect(containerIdOfLogLink(entry)).toBeNull();
  });
});
