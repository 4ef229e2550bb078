import { describe, expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";

import { kubeletProcesses } from "../../../src/node/kubelet/flags.ts";
import { type Kubelet, nodeKubelet, readKubelet } from "../../../src/node/kubelet/settings.ts";
import { put, scratch } from "../../support/scratch.ts";

interface Command {
  readonly words: readonly string[];
  /** Default: the program's name. */
  readonly comm?: string;
  readonly pids?: string;
  /** Default: root. */
  readonly user?: string;
}

function procWith(...commands: readonly (readonly string[] | Command)[]): string {
  const proc = scratch();
  put(proc, "uptime", "1 1");
  for (const [at, it] of commands.entries()) {
    const { words, comm, pids = "1", user = "0" } = "words" in it ? it : { words: it };
    const name = words[0]?.split("/").at(-1) ?? "";
    put(proc, `${100 + at}/comm`, `${(comm ?? name).slice(0, 15)}\n`);
    put(
      proc,
      `${100 + at}/status`,
      `Name:\t${name}\nUid:\t${user}\t${user}\t${user}\t${user}\nNSpid:\t${pids}\n`,
    );
    put(proc, `${100 + at}/cmdline`, words.map((word) => `${word}\0`).join(""));
  }
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
      expect.objectContaining({
        pid: 101,
        program: "kubelet",
        flags: new Map([
          ["config", "/etc/k.yaml"],
          ["image-gc-high-threshold", "70"],
          ["v", "2"],
          ["help", ""],
        ]),
      }),
    ]);
  });

  test("finds what k3s passes on to its own, and not the flags of k3s itself", () => {
    const proc = procWith({
      words: [
        "/usr/local/bin/k3s server --config=/etc/k3s.yaml --kubelet-arg=image-gc-high-threshold=60",
      ],
      comm: "k3s-server",
    });
    expect(kubeletProcesses(proc)[0]?.flags).toEqual(new Map([["image-gc-high-threshold", "60"]]));
  });

  test("puts the kubelet before the program that started it", () => {
    const proc = procWith(
      ["/usr/local/bin/rke2", "agent"],
      ["/var/lib/rancher/rke2/bin/kubelet", "--root-dir=/data/kubelet"],
    );
    expect(kubeletProcesses(proc).map(({ program }) => program)).toEqual(["kubelet", "rke2"]);
  });

  test("ignores a kubelet in a container, whose paths are not this node's", () => {
    const proc = procWith({ words: ["/usr/bin/kubelet"], pids: "4711\t12" });
    expect(kubeletProcesses(proc)).toEqual([]);
  });

  test("reads no other program's command line, because that may hang", () => {
    const proc = procWith({ words: ["/usr/bin/kubelet"], comm: "postgres" });
    expect(kubeletProcesses(proc)).toEqual([]);
  });

  test("is empty if processes cannot be listed", () => {
    expect(kubeletProcesses("/does/not/exist")).toEqual([]);
  });

  test("ignores another user's program named kubelet", () => {
    const words = ["kubelet", "--root-dir=/home/u", "--eviction-hard=imagefs.available<90%"];
    expect(kubeletProcesses(procWith({ words, user: "65534" }))).toEqual([]);
    expect(kubeletProcesses(procWith({ words }))).toHaveLength(1);
  });

  test("finds a process of that name on this machine", async () => {
    const program = join(scratch(), "kubelet");
    symlinkSync(process.execPath, program);
    const script = "console.log('up'); setTimeout(() => 0, 30_000)";
    const child = Bun.spawn([program, "-e", script, "--v=7"], {
      stdout: "pipe",
    });
    try {
      await child.stdout.getReader().read();
      const found = kubeletProcesses().find(({ pid }) => pid === child.pid);
      expect(found?.flags.get("v")).toBe("7");
    } finally {
      child.kill();
    }
  });
});

const config = `kind: KubeletConfiguration
imageGCHighThresholdPercent: 90
imageMinimumGCAge: 5m
evictionHard:
  nodefs.available: 10%
  imagefs.available: 5Gi
`;

const settingsOf = ({ settings }: Kubelet): Readonly<Record<string, readonly [string, string]>> =>
  Object.fromEntries(settings.map(({ field, text, source }) => [field, [text, source]]));

const kubelet = (...words: readonly string[]): string => procWith(["/usr/bin/kubelet", ...words]);
const nobody = "/does/not/exist";

describe("the kubelet of a node", () => {
  const found: Kubelet = {
    processes: [],
    isHere: true,
    rootDirectory: null,
    staticPodPath: null,
    problems: [],
    settings: [{ field: "imageGCHighThresholdPercent", text: "90", source: "a flag" }],
  };

  const looks = (...each: readonly Kubelet[]) => {
    const rest = [...each];
    return nodeKubelet(() => rest.shift() ?? each.at(-1) ?? none);
  };
  const flags = new Map<string, string>();
  const process = { pid: 7, program: "kubelet", flags, programFlags: flags };
  const none: Kubelet = { ...found, isHere: false, settings: [] };

  test("is looked up once, and again when asked to", () => {
    const changed = { ...found, rootDirectory: "/data" };
    const node = looks(found, changed);
    expect([node.found(), node.found()]).toEqual([found, found]);
    expect([node.look(), node.found()]).toEqual([changed, changed]);
  });

  test("is none until it appears", () => {
    const node = looks(none, found);
    expect(node.found()).toBeNull();
    expect(node.look()).toEqual(found);
  });

  test("is the same object while nothing of it changes", () => {
    const node = looks(found, structuredClone(found));
    expect(node.found()).toBe(node.look());
  });

  test.each([
    ["whose files vanish", found, none],
    ["that restarts", { ...found, processes: [process] }, { ...found, settings: [] }],
    [
      "with a file that cannot be read any more",
      found,
      { ...found, settings: [], problems: ["x"] },
    ],
  ])("%s keeps the settings that were found last", (_, before, after) => {
    const node = looks(before, after);
    expect([node.found(), node.look()]).toEqual([before, before]);
  });

  test("with a file that never could be read is followed in the others", () => {
    const before = { ...found, problems: ["x"] };
    const after = { ...before, settings: [] };
    const node = looks(before, after);
    expect([node.found(), node.look()]).toEqual([before, after]);
  });
});

describe("the settings of a kubelet", () => {
  test("are none on a node without one", () => {
    expect(readKubelet({ proc: nobody, root: scratch() })).toEqual({
      processes: [],
      isHere: false,
      settings: [],
      rootDirectory: null,
      staticPodPath: null,
      problems: [],
    });
  });

  test("are those of the well-known file", () => {
    const root = scratch();
    put(root, "var/lib/kubelet/config.yaml", config);
    const source = "/var/lib/kubelet/config.yaml";
    const found = readKubelet({ proc: nobody, root });
    expect(settingsOf(found)).toEqual({
      imageGCHighThresholdPercent: ["90", source],
      imageMinimumGCAge: ["5m", source],
      evictionHard: ["nodefs.available<10%,imagefs.available<5Gi", source],
    });
    expect(found.problems).toEqual([]);
  });

  test("are those of the running kubelet's --config file, and a flag wins", () => {
    const root = scratch();
    put(root, "var/lib/kubelet/config.yaml", "imageGCHighThresholdPercent: 1");
    put(root, "etc/k.yaml", config);
    const proc = kubelet("--config=/etc/k.yaml", "--image-gc-high-threshold=70");
    expect(settingsOf(readKubelet({ proc, root }))).toMatchObject({
      imageGCHighThresholdPercent: ["70", "--image-gc-high-threshold"],
      imageMinimumGCAge: ["5m", "/etc/k.yaml"],
    });
  });

  test("have maps of signals in flag syntax", () => {
    const root = scratch();
    const soft =
      "evictionSoft:\n  imagefs.available: 20%\nevictionSoftGracePeriod:\n  imagefs.available: 1m\n";
    put(root, "var/lib/kubelet/config.yaml", soft);
    const { settings } = readKubelet({ proc: nobody, root });
    expect(settings.map(({ text }) => text)).toEqual([
      "imagefs.available<20%",
      "imagefs.available=1m",
    ]);
  });

  test("include its root directory and its static pod path", () => {
    const root = scratch();
    put(root, "etc/k.yaml", "staticPodPath: /etc/kubernetes/manifests\n");
    const proc = kubelet("--config=/etc/k.yaml", "--root-dir", "/data/kubelet");
    expect(readKubelet({ proc, root })).toMatchObject({
      rootDirectory: "/data/kubelet",
      staticPodPath: "/etc/kubernetes/manifests",
    });
  });

  test.each(["{", "- a", ""])("report an invalid configuration file: %j", (text) => {
    const root = scratch();
    put(root, "var/lib/kubelet/config.yaml", text);
    const { settings, problems } = readKubelet({ proc: nobody, root });
    expect(settings).toEqual([]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("/var/lib/kubelet/config.yaml");
  });

  test("report a missing --config file of the running kubelet", () => {
    const { problems } = readKubelet({ proc: kubelet("--config=/etc/k.yaml"), root: scratch() });
    expect(problems).toEqual(["the kubelet's configuration /etc/k.yaml does not exist"]);
  });
});

describe("drop-ins of a kubelet's --config-dir", () => {
  const proc = kubelet("--config=/etc/k.yaml", "--config-dir=/etc/k.d");

  test("are merged over the file in the order of their names, maps by key", () => {
    const root = scratch();
    put(root, "etc/k.yaml", config);
    put(root, "etc/k.d/20-b.conf", "imageGCHighThresholdPercent: 71\n");
    put(
      root,
      "etc/k.d/10-a.conf",
      "imageGCHighThresholdPercent: 60\nevictionHard: {imagefs.available: 20%}\n",
    );
    put(root, "etc/k.d/30-ignored.yaml", "imageGCHighThresholdPercent: 1\n");
    expect(settingsOf(readKubelet({ proc, root }))).toEqual({
      imageGCHighThresholdPercent: ["71", "/etc/k.d/20-b.conf"],
      imageMinimumGCAge: ["5m", "/etc/k.yaml"],
      evictionHard: ["nodefs.available<10%,imagefs.available<20%", "/etc/k.d/10-a.conf"],
    });
  });

  test("reset a value by null, and patch the default thresholds if the file has none", () => {
    const root = scratch();
    put(root, "etc/k.yaml", "imageGCHighThresholdPercent: 90\n");
    put(
      root,
      "etc/k.d/10-a.conf",
      "imageGCHighThresholdPercent: null\nevictionHard: {imagefs.available: 20%}\n",
    );
    const found = settingsOf(readKubelet({ proc, root }));
    expect(found["imageGCHighThresholdPercent"]).toBeUndefined();
    expect(found["evictionHard"]?.[0]).toBe(
      "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<20%,imagefs.inodesFree<5%",
    );
  });

  test("are read from subdirectories too, as the kubelet does", () => {
    const root = scratch();
    put(root, "etc/k.yaml", config);
    put(root, "etc/k.d/10-team/a.conf", "imageGCHighThresholdPercent: 71\n");
    expect(settingsOf(readKubelet({ proc, root }))["imageGCHighThresholdPercent"]?.[0]).toBe("71");
  });
});

describe("the kubelet's flags in files", () => {
  const flagged = (root: string, proc = nobody) => readKubelet({ proc, root });

  test.each([
    ["etc/default/kubelet", 'KUBELET_EXTRA_ARGS="--root-dir=/data/kubelet --v=2"\n'],
    ["var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="--v=2 --root-dir=/data/kubelet"'],
    [
      "etc/systemd/system/kubelet.service.d/20-site.conf",
      "[Service]\n# --root-dir=/old\nExecStart=/usr/bin/kubelet \\\n  --root-dir=/data/kubelet \\\n",
    ],
  ])("are found in %s while it is not running", (name, text) => {
    const root = scratch();
    put(root, name, text);
    expect(flagged(root).rootDirectory).toBe("/data/kubelet");
  });

  test("of k3s are the kubelet-arg of its configuration and of its drop-ins", () => {
    const root = scratch();
    put(root, "etc/rancher/k3s/config.yaml", "kubelet-arg:\n- image-gc-high-threshold=70\n");
    put(
      root,
      "etc/rancher/k3s/config.yaml.d/10.yaml",
      'kubelet-arg+: ["root-dir=/data/kubelet"]\n',
    );
    const proc = procWith({ words: ["/usr/local/bin/k3s server"], comm: "k3s-server" });
    const found = flagged(root, proc);
    expect(settingsOf(found)["imageGCHighThresholdPercent"]).toEqual([
      "70",
      "/etc/rancher/k3s/config.yaml",
    ]);
    expect(found.rootDirectory).toBe("/data/kubelet");
  });

  test("of k3s include the drop-ins that it writes itself", () => {
    const root = scratch();
    const dropIn = "var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf";
    put(root, dropIn, "evictionHard: {imagefs.available: 5%, nodefs.available: 5%}\n");
    const proc = procWith({ words: ["/usr/local/bin/k3s server"], comm: "k3s-server" });
    expect(settingsOf(flagged(root, proc))["evictionHard"]?.[0]).toContain("imagefs.available<5%");
  });

  test("of MicroK8s are those of its file of arguments, with the variables of the snap", () => {
    const root = scratch();
    put(
      root,
      "var/snap/microk8s/current/args/kubelet",
      "--root-dir=${SNAP_COMMON}/var/lib/kubelet\n# --eviction-hard=x\n--eviction-hard=imagefs.available<2Gi\n",
    );
    const found = flagged(root);
    expect(found.rootDirectory).toBe("/var/snap/microk8s/common/var/lib/kubelet");
    expect(settingsOf(found)["evictionHard"]?.[0]).toBe("imagefs.available<2Gi");
  });
});
