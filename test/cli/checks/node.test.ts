// What doctor says of a node that could be looked at.

import { describe, expect, test } from "bun:test";

import { keepCheck, nodeChecks, runtimeCheck } from "../../../src/cli/checks/node.ts";
import { prepareRecorded } from "../../../src/gc/read-only.ts";
import { containerId, podUid } from "../../../src/model/ids.ts";
import type { Limits } from "../../../src/model/limits.ts";
import type { HoldState } from "../../../src/model/pass.ts";
import type { KeepRules, Snapshot } from "../../../src/model/snapshot.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aSandbox,
  aSnapshot,
  defaultLimits,
  GIB,
  NOW,
} from "../../support/build/values.ts";

const app = anImage("app");
const pause = anImage("pause", { repoTags: ["registry.k8s.io/pause:3.9"] });

const calm: Partial<Snapshot> = {
  images: [app, pause],
  sandboxes: [aSandbox("a")],
  containers: [aContainer("web", { imageId: app.id })],
  filesystems: [aFilesystem({ availableBytes: 60n * GIB })],
  pods: { kind: "ready", source: "cri", pods: [] },
};

function checks(
  change: Partial<Snapshot> = {},
  around: { readonly limits?: Limits; readonly hold?: HoldState } = {},
) {
  const { limits = defaultLimits, hold = { kind: "none" } } = around;
  const prepared = prepareRecorded(
    { snapshot: aSnapshot({ ...calm, ...change }), ledger: aLedger() },
    {
      limits,
      purpose: { kind: "periodic" },
      parts: { containers: "all", images: true },
      hold,
      startedAt: null,
    },
  );
  return new Map(nodeChecks(prepared, limits));
}

const FILESYSTEM = "filesystem-imagefs-containerfs-nodefs";

describe("a node", () => {
  test("without problems has no warning", () => {
    expect([...checks()].filter(([, check]) => check?.result !== "ok")).toEqual([]);
  });

  test("over its high threshold is a warning with figures", () => {
    const filesystems = [aFilesystem({ availableBytes: 10n * GIB })];
    expect(checks({ filesystems }).get(FILESYSTEM)).toMatchObject({
      result: "warning",
      message:
        "/var/lib/containerd (mounted at /) is 90% full, 10.0 GiB of 100.0 GiB available, at or over the high threshold of 85%",
    });
  });

  test("whose filesystem reports capacity 0 fails", () => {
    const filesystems = [aFilesystem({ capacityBytes: 0n, availableBytes: 0n })];
    const found = checks({ filesystems });
    expect(found.get(FILESYSTEM)).toMatchObject({ result: "failed" });
    expect(found.get("block-invalid-capacity")).toMatchObject({ result: "failed" });
  });

  test("on hold is a warning that says until when", () => {
    const hold: HoldState = { kind: "held", until: NOW, since: NOW, reason: "swap" };
    expect(checks({}, { hold }).get("block-on-hold")).toMatchObject({
      result: "warning",
      message: expect.stringContaining("until 2026-01-01T00:00:00Z (swap)"),
    });
  });

  test("whose images in use are unknown fails", () => {
    const containers = [aContainer("web", { imageName: "registry.example/x:1" })];
    expect(checks({ containers }).get("block-usage-unknown")).toMatchObject({ result: "failed" });
  });
});

describe("containers", () => {
  const foreign = {
    sandboxes: [aSandbox("a", { podUid: podUid("") })],
    containers: [aContainer("web", { podUid: podUid(""), imageId: app.id })],
  };
  const collect: Limits = {
    ...defaultLimits,
    containers: { ...defaultLimits.containers, collectForeign: true },
  };

  test("that are all foreign are a warning that names the flag to set", () => {
    expect(checks(foreign).get("owners")).toEqual({
      result: "warning",
      message:
        "everything on the node is foreign: none of its 1 container and 1 sandbox was created by Kubernetes, so only images are collected",
      advice: "set --collect-foreign to collect dead ones",
    });
  });

  test("that are foreign are counted", () => {
    const other = aContainer("x", { id: containerId("x"), imageId: app.id, podUid: podUid("") });
    const containers = [...(calm.containers ?? []), other];
    expect(checks({ containers }).get("owners")).toMatchObject({
      result: "ok",
      message: "1 container and 0 sandboxes not created by Kubernetes; they are left alone",
    });
  });

  test("that are foreign are no warning if they are collected", () => {
    expect(checks(foreign, { limits: collect }).get("owners")?.result).toBe("ok");
  });
});

describe("the sandbox image", () => {
  test.each<[string, Partial<Snapshot>, string]>([
    ["matched by a built-in pattern", {}, "ok"],
    ["pinned by the runtime", { images: [{ ...app, pinned: true }] }, "ok"],
    ["without any sandbox", { images: [app], sandboxes: [] }, "ok"],
    ["unknown", { images: [app] }, "warning"],
  ])("%s is checked as expected", (_what, change, result) => {
    expect(checks(change).get("sandbox-image")?.result).toBe(result as "ok");
  });
});

describe("the pod source", () => {
  test("that cannot be read gets advice about the kubelet's endpoint and credentials", () => {
    const found = checks({
      pods: { kind: "failed", source: "kubelet-api", message: "status 401" },
    });
    for (const name of ["pod-source", "block-pods-unknown"])
      expect(found.get(name)).toMatchObject({
        result: "failed",
        advice: expect.stringContaining("--kubelet-endpoint") as string,
      });
  });

  test("that lists only static pods, as after the last pod of the API server was deleted, is a warning", () => {
    const dead = aSandbox("a", { podUid: podUid("uid-dead"), state: "not-ready" });
    const mirror = { finished: false, evicted: false, images: [], origin: "static" } as const;
    const listed = [{ ...mirror, uid: podUid("0123456789abcdef0123456789abcdef") }];
    const pods = { kind: "ready", source: "kubelet-api", pods: listed } as const;
    const found = checks({ pods, sandboxes: [dead], containers: [] });
    for (const name of ["pod-source", "block-pods-incomplete"])
      expect(found.get(name)).toMatchObject({
        result: "warning",
        advice: expect.stringContaining("API server") as string,
      });
  });

  test.each<[string, Snapshot["pods"], string]>([
    ["that is ready", { kind: "ready", source: "cri", pods: [] }, "ok"],
    ["none", { kind: "none", why: "signs of a kubelet" }, "warning"],
    ["that failed", { kind: "failed", source: "kubelet-api", message: "401" }, "failed"],
    // It lists none of the live pods.
    ["of another node", { kind: "ready", source: "kubelet-dir", pods: [] }, "failed"],
  ])("%s is checked as expected", (_what, pods, result) => {
    expect(checks({ pods }).get("pod-source")?.result).toBe(result as "ok");
  });
});

test("the pod logs are counted, as are stray entries", () => {
  const logs = {
    kind: "read" as const,
    podLogsDirectory: "/var/log/pods",
    podLogs: [{ entry: "a_b_u", uid: podUid("u") }],
    strays: ["lost+found"],
    danglingLinks: [],
    sizeBytes: null,
  };
  expect(checks({ logs }).get("pod-logs")?.message).toBe(
    "/var/log/pods has the logs of 1 pod; 1 other entry left alone",
  );
});

describe("keep rules", () => {
  const rules = (...patterns: readonly string[]): KeepRules => ({
    rules: patterns.map((pattern, at) => ({ pattern, source: `a.list:${at + 1}` })),
    problems: [],
    directoriesRead: [],
  });

  test.each<[string, KeepRules, string, string]>([
    ["none", rules(), "ok", "none"],
    ["that match an image", rules("registry.example/app"), "ok", "1 valid rule"],
    [
      "of which one matches nothing",
      rules("registry.example/app", "gone"),
      "warning",
      "2 valid rules, 1 of which matches nothing on this node",
    ],
    [
      "that are invalid",
      { ...rules(), problems: [{ source: "a.list:3", message: "it is no name" }] },
      "failed",
      "invalid, so no image is removed: a.list:3: it is no name",
    ],
  ])("%s are checked as expected", (_what, keep, result, message) => {
    expect(keepCheck(keep, { images: [app], ledger: aLedger() })).toMatchObject({
      result,
      message,
    });
  });

  test("are not matched if the node could not be read", () => {
    expect(keepCheck(rules("gone"), null).result).toBe("ok");
  });
});

describe("a runtime version with known faults", () => {
  test.each([
    ["containerd", "1.7.24", "ok"],
    ["containerd", "2.0.0", "warning"],
    ["containerd", "v2.0.4", "warning"],
    ["containerd", "2.0.5", "ok"],
    ["containerd", "2.0.10", "ok"],
    ["containerd", "unknown", "ok"],
    ["cri-o", "2.0.1", "ok"],
  ])("%s %s: %s", (name, version, result) => {
    expect(runtimeCheck({ name, version }).result).toBe(result as "ok");
  });
});
