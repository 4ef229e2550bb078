import { describe, expect, test } from "bun:test";

import { kubeletProcesses } from "../../src/host/kubelet-process.ts";
import { kubeletSettings } from "../../src/host/kubelet-settings.ts";
import { put, scratch } from "../support/scratch.ts";

function procWith(...commands: readonly (readonly string[])[]): string {
  const proc = scratch();
  put(proc, "uptime", "1 1");
  for (const [at, words] of commands.entries())
    put(proc, `${100 + at}/cmdline`, words.map((word) => `${word}\0`).join(""));
  return proc;
}

describe("kubeletProcesses", () => {
  test("finds a kubelet among others, with its flags in both spellings", () => {
    const proc = procWith(
      ["/usr/bin/bash", "-c", "kubelet"],
      [
        "/usr/bin/kubelet",
        "--config=/etc/k.yaml",
        "--image-gc-high-threshold",
        "70",
        "--v=2",
        "--help",
      ],
      [],
    );
    expect(kubeletProcesses(proc)).toEqual([
      {
        pid: 101,
        program: "kubelet",
        flags: new Map([
          ["config", "/etc/k.yaml"],
          ["image-gc-high-threshold", "70"],
          ["v", "2"],
          ["help", ""],
        ]),
      },
    ]);
  });

  test("finds what k3s passes on to its own", () => {
    const proc = procWith([
      "/usr/local/bin/k3s",
      "server",
      "--kubelet-arg=image-gc-high-threshold=60",
    ]);
    expect(kubeletProcesses(proc)[0]?.flags.get("image-gc-high-threshold")).toBe("60");
  });

  test("is quiet where processes cannot be seen", () => {
    expect(kubeletProcesses("/does/not/exist")).toEqual([]);
  });

  test("finds a kubelet in the process table of this machine", async () => {
    const kubelet = Bun.spawn(["sleep", "60"], { argv0: "/usr/bin/kubelet" });
    try {
      // Before its exec a process has the name of its parent.
      while (!kubeletProcesses().some(({ pid }) => pid === kubelet.pid)) await Bun.sleep(1);
    } finally {
      kubelet.kill();
      await kubelet.exited;
    }
    expect(kubeletProcesses().map(({ pid }) => pid)).not.toContain(kubelet.pid);
  });
});

describe("kubeletSettings", () => {
  const config = `kind: KubeletConfiguration
imageGCHighThresholdPercent: 90
imageMinimumGCAge: 5m
evictionHard:
  nodefs.available: 10%
  imagefs.available: 5Gi
`;

  test("a node without a kubelet has none", () => {
    expect(kubeletSettings([], scratch())).toEqual({ settings: [], problems: [] });
  });

  test("are those of the well-known file", () => {
    const root = scratch();
    put(root, "var/lib/kubelet/config.yaml", config);
    const source = "/var/lib/kubelet/config.yaml";
    expect(kubeletSettings([], root)).toEqual({
      settings: [
        { field: "imageGCHighThresholdPercent", text: "90", source },
        { field: "imageMinimumGCAge", text: "5m", source },
        { field: "evictionHard", text: "nodefs.available<10%,imagefs.available<5Gi", source },
      ],
      problems: [],
    });
  });

  test("are those of the file that the running one names, and a flag wins", () => {
    const root = scratch();
    put(root, "var/lib/kubelet/config.yaml", "imageGCHighThresholdPercent: 1");
    put(root, "etc/k.yaml", config);
    const flags = new Map([
      ["config", "/etc/k.yaml"],
      ["image-gc-high-threshold", "70"],
    ]);
    const { settings } = kubeletSettings([{ pid: 1, program: "kubelet", flags }], root);
    expect(settings.slice(0, 2)).toEqual([
      { field: "imageGCHighThresholdPercent", text: "70", source: "--image-gc-high-threshold" },
      { field: "imageMinimumGCAge", text: "5m", source: "/etc/k.yaml" },
    ]);
  });

  test("have maps of signals as flags spell them", () => {
    const root = scratch();
    const soft =
      "evictionSoft:\n  imagefs.available: 20%\nevictionSoftGracePeriod:\n  imagefs.available: 1m\n";
    put(root, "var/lib/kubelet/config.yaml", soft);
    expect(kubeletSettings([], root).settings.map(({ text }) => text)).toEqual([
      "imagefs.available<20%",
      "imagefs.available=1m",
    ]);
  });

  test.each(["{", "- a", ""])("a file that is no configuration is told of: %j", (text) => {
    const root = scratch();
    put(root, "var/lib/kubelet/config.yaml", text);
    const { settings, problems } = kubeletSettings([], root);
    expect(settings).toEqual([]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("/var/lib/kubelet/config.yaml");
  });
});
