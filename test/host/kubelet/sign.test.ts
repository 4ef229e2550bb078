import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import { kubeletSigns } from "../../../src/host/kubelet/sign.ts";
import { put, scratch } from "../../support/scratch.ts";

describe("kubeletSigns", () => {
  test("an empty node has none", () => {
    expect(kubeletSigns(scratch())).toEqual([]);
  });

  test.each([
    "/etc/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/k3s-agent.service",
    "/etc/init.d/kubelet",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/kubelet/kubelet-config.json",
  ])("%s is one", (path) => {
    const root = scratch();
    put(root, path);
    expect(kubeletSigns(root)).toEqual([path]);
  });

  test("an empty root directory is one, wherever it is said to be", () => {
    const root = scratch();
    mkdirSync(join(root, "data/kubelet"), { recursive: true });
    expect(kubeletSigns(root)).toEqual([]);
    expect(kubeletSigns(root, "/data/kubelet")).toEqual(["/data/kubelet"]);
  });

  test("a unit that is masked is one", () => {
    const root = scratch();
    mkdirSync(join(root, "etc/systemd/system"), { recursive: true });
    symlinkSync("/nowhere", join(root, "etc/systemd/system/kubelet.service"));
    expect(kubeletSigns(root)).toEqual(["/etc/systemd/system/kubelet.service"]);
  });

  test("what cannot be looked at counts as one", () => {
    const root = scratch();
    const tooLong = `/${"x".repeat(300)}`;
    expect(kubeletSigns(root, tooLong)).toEqual([tooLong]);
  });

  test("a file where a directory was expected is none", () => {
    const root = scratch();
    put(root, "etc");
    expect(kubeletSigns(root)).toEqual([]);
  });
});
