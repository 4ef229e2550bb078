import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { kubeletSigns } from "../../../src/node/kubelet/pods.ts";
import { put, scratch } from "../../support/scratch.ts";

describe("kubeletSigns", () => {
  test("finds none on an empty node", () => {
    expect(kubeletSigns(scratch())).toEqual([]);
  });

  test.each([
    "/etc/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/k3s-agent.service",
    "/etc/init.d/kubelet",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/kubelet/kubelet-config.json",
  ])("finds %s", (path) => {
    const root = scratch();
    put(root, path);
    expect(kubeletSigns(root)).toEqual([path]);
  });

  test("finds an empty root directory, wherever it is configured", () => {
    const root = scratch();
    mkdirSync(join(root, "data/kubelet"), { recursive: true });
    expect(kubeletSigns(root)).toEqual([]);
    expect(kubeletSigns(root, "/data/kubelet")).toEqual(["/data/kubelet"]);
  });

  test("finds a masked unit", () => {
    const root = scratch();
    mkdirSync(join(root, "etc/systemd/system"), { recursive: true });
    symlinkSync("/nowhere", join(root, "etc/systemd/system/kubelet.service"));
    expect(kubeletSigns(root)).toEqual(["/etc/systemd/system/kubelet.service"]);
  });

  test("counts an inaccessible path as one", () => {
    const root = scratch();
    const tooLong = `/${"x".repeat(300)}`;
    expect(kubeletSigns(root, tooLong)).toEqual([tooLong]);
  });

  test("ignores a file in place of a directory", () => {
    const root = scratch();
    put(root, "etc");
    expect(kubeletSigns(root)).toEqual([]);
  });
});
