import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import type { PodReading } from "../../../src/model/snapshot.ts";
import { type PodSourceOptions, readPods } from "../../../src/node/kubelet/pods.ts";
import { put, scratch } from "../../support/scratch.ts";

const signal = new AbortController().signal;
const kubelet: PodSourceOptions["kubelet"] = {
  endpoint: "https://127.0.0.1:1",
  caFile: null,
  clientCertFile: null,
  clientKeyFile: null,
  tokenFile: null,
  timeoutMs: 1000,
};
const read = (change: Partial<PodSourceOptions>): Promise<PodReading> =>
  readPods(
    { source: "auto", rootDirectory: "/nowhere", nodeRoot: scratch(), kubelet, ...change },
    signal,
  );
const uidsOf = (reading: PodReading): readonly string[] =>
  reading.kind === "ready" ? reading.pods.map(({ uid }) => String(uid)).toSorted() : [reading.kind];

describe("kubelet-dir", () => {
  test("lists a pod for each entry of ROOT/pods that can be a UID", async () => {
    const root = scratch();
    for (const name of [
      "0a1b2c3d-0000-4000-8000-000000000000",
      "d41d8cd98f00b204e9800998ecf8427e",
      "lost+found",
      ".tmp",
    ]) {
      mkdirSync(join(root, "pods", name), { recursive: true });
    }
    const reading = await read({ source: "kubelet-dir", rootDirectory: root });
    expect(uidsOf(reading)).toEqual([
      "0a1b2c3d-0000-4000-8000-000000000000",
      "d41d8cd98f00b204e9800998ecf8427e",
    ]);
  });

  test("fails, naming the directory and what to do, if it is missing", async () => {
    expect(await read({ source: "kubelet-dir", rootDirectory: "/nowhere" })).toMatchObject({
      kind: "failed",
      source: "kubelet-dir",
      message: expect.stringMatching(
        /cannot read the pods of the kubelet from \/nowhere\/pods: it does not exist; .*--root-dir/,
      ),
    });
  });

  test("fails if ROOT/pods is a file", async () => {
    const root = scratch();
    put(root, "pods");
    expect((await read({ source: "kubelet-dir", rootDirectory: root })).kind).toBe("failed");
  });
});

test("pod source cri reads nothing, because the runtime's lists decide", async () => {
  expect(await read({ source: "cri" })).toEqual({ kind: "ready", source: "cri", pods: [] });
});

test("pod source none reads nothing, and is reported as configured", async () => {
  expect(await read({ source: "none" })).toEqual({ kind: "none", why: "as configured" });
});

test("pod source kubelet-api reports a request that failed", async () => {
  expect(await read({ source: "kubelet-api" })).toMatchObject({
    kind: "failed",
    source: "kubelet-api",
  });
});

describe("auto", () => {
  test("uses the kubelet's directory if it has pods", async () => {
    const root = scratch();
    mkdirSync(join(root, "pods", "uid-a"), { recursive: true });
    expect(await read({ rootDirectory: root })).toMatchObject({
      kind: "ready",
      source: "kubelet-dir",
    });
  });

  test("uses the kubelet's directory even if it cannot be read, and fails", async () => {
    const root = scratch();
    symlinkSync("/nowhere", join(root, "pods"));
    expect(await read({ rootDirectory: root })).toMatchObject({
      kind: "failed",
      source: "kubelet-dir",
    });
  });

  test("uses cri if nothing suggests a kubelet", async () => {
    expect(await read({})).toEqual({ kind: "ready", source: "cri", pods: [] });
    expect(await read({ rootDirectory: "/" })).toEqual({ kind: "ready", source: "cri", pods: [] });
  });

  test.each([
    ["a unit", "usr/lib/systemd/system/kubelet.service", "/nowhere"],
    ["a configuration", "etc/kubernetes/kubelet.conf", "/"],
    ["a root directory without pods", "no-such-kubelet/config.yaml", "/no-such-kubelet"],
  ])("uses no source if there is %s of a kubelet, and names it", async (_, sign, rootDirectory) => {
    const nodeRoot = scratch();
    put(nodeRoot, sign);
    const reading = await read({ nodeRoot, rootDirectory });
    expect(reading.kind).toBe("none");
    expect(reading.kind === "none" && reading.why).toMatch(/suggests a kubelet.*set --pod-source/);
  });

  test("ignores /pods of a node without a kubelet", async () => {
    const reading = await read({ rootDirectory: "/" });
    expect(reading).toMatchObject({ source: "cri" });
  });
});
