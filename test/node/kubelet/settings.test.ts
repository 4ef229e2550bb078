import { describe, expect, test } from "bun:test";

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
    const words = ["--config=/etc/k.yaml", "--image-gc-high-threshold", "70", "--v=2", "--help"];
    const proc = procWith(["/usr/bin/bash", "-c", "kubelet"], ["/usr/bin/kubelet", ...words], []);
    expect(kubeletProcesses(proc)).toMatchObject([
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

  test("finds what k3s passes on to its own, and not the flags of k3s itself", () => {
    const line =
      "/usr/local/bin/k3s server --config=/etc/k3s.yaml --kubelet-arg=image-gc-high-threshold=60";
    const [found] = kubeletProcesses(procWith({ words: [line], comm: "k3s-server" }));
    expect(found?.flags).toEqual(new Map([["image-gc-high-threshold", "60"]]));
  });

  test("puts the kubelet before the program that started it", () => {
    const proc = procWith(["/usr/local/bin/rke2", "agent"], ["/var/lib/rancher/rke2/bin/kubelet"]);
    expect(kubeletProcesses(proc).map(({ program }) => program)).toEqual(["kubelet", "rke2"]);
  });

  test.each<[string, Partial<Command>]>([
    ["a kubelet in a container, whose paths are not this node's", { pids: "4711\t12" }],
    ["another program, whose command line may hang", { comm: "postgres" }],
    ["another user's program named kubelet", { user: "65534" }],
  ])("ignores %s", (_, change) => {
    const words = ["/usr/bin/kubelet", "--root-dir=/home/u"];
    expect(kubeletProcesses(procWith({ words, ...change }))).toEqual([]);
    expect(kubeletProcesses(procWith({ words }))).toHaveLength(1);
  });
});

const config = `kind: KubeletConfiguration
imageGCHighThresholdPercent: 90
imageMinimumGCAge: 5m
evictionHard:
  nodefs.available: 10%
  imagefs.available: 5Gi
`;

const NOBODY = "/does/not/exist";
const kubelet = (...words: readonly string[]): string => procWith(["/usr/bin/kubelet", ...words]);
const k3s = () => procWith({ words: ["/usr/local/bin/k3s server"], comm: "k3s-server" });

/** The kubelet of a node with these files. */
function kubeletWith(files: Readonly<Record<string, string>>, proc = NOBODY): Kubelet {
  const root = scratch();
  for (const [name, text] of Object.entries(files)) put(root, name, text);
  return readKubelet({ proc, root });
}

const settingsOf = ({ settings }: Kubelet): Readonly<Record<string, readonly [string, string]>> =>
  Object.fromEntries(settings.map(({ field, text, source }) => [field, [text, source]]));

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

  test("is none until it appears, and is looked up again only when asked to", () => {
    const changed = { ...found, rootDirectory: "/data" };
    const node = looks(none, found, structuredClone(found), changed);
    expect([node.found(), node.look(), node.found()]).toEqual([null, found, found]);
    // The same object while nothing of it changes.
    expect(node.found()).toBe(node.look());
    expect(node.look()).toEqual(changed);
  });

  const unreadable = { ...found, settings: [], problems: ["x"] };
  test.each([
    ["whose files vanish keeps the settings that were found last", found, none, found],
    [
      "that restarts keeps them",
      { ...found, processes: [process] },
      { ...found, settings: [] },
      { ...found, processes: [process] },
    ],
    ["with a file that cannot be read any more keeps them", found, unreadable, found],
    [
      "with a file that never could be read is followed in the others",
      { ...found, problems: ["x"] },
      unreadable,
      unreadable,
    ],
  ])("%s", (_, before, after, expected) => {
    const node = looks(before, after);
    expect([node.found(), node.look()]).toEqual([before, expected]);
  });
});

describe("the settings of a kubelet", () => {
  const CONFIG = "var/lib/kubelet/config.yaml";

  test("are those of the well-known file, with maps of signals in flag syntax", () => {
    const soft = "evictionSoftGracePeriod:\n  imagefs.available: 1m\n";
    const found = kubeletWith({ [CONFIG]: config + soft });
    expect(settingsOf(found)).toEqual({
      imageGCHighThresholdPercent: ["90", `/${CONFIG}`],
      imageMinimumGCAge: ["5m", `/${CONFIG}`],
      evictionHard: ["nodefs.available<10%,imagefs.available<5Gi", `/${CONFIG}`],
      evictionSoftGracePeriod: ["imagefs.available=1m", `/${CONFIG}`],
    });
    expect(found.problems).toEqual([]);
  });

  test("are those of the running kubelet's --config file, and a flag wins", () => {
    const files = { [CONFIG]: "imageGCHighThresholdPercent: 1", "etc/k.yaml": config };
    const proc = kubelet("--config=/etc/k.yaml", "--image-gc-high-threshold=70");
    expect(settingsOf(kubeletWith(files, proc))).toMatchObject({
      imageGCHighThresholdPercent: ["70", "--image-gc-high-threshold"],
      imageMinimumGCAge: ["5m", "/etc/k.yaml"],
    });
  });

  test("include its root directory and its static pod path", () => {
    const proc = kubelet("--config=/etc/k.yaml", "--root-dir", "/data/kubelet");
    const files = { "etc/k.yaml": "staticPodPath: /etc/kubernetes/manifests\n" };
    expect(kubeletWith({})).toMatchObject({ isHere: false, settings: [], rootDirectory: null });
    expect(kubeletWith(files, proc)).toMatchObject({
      isHere: true,
      rootDirectory: "/data/kubelet",
      staticPodPath: "/etc/kubernetes/manifests",
    });
  });

  test.each(["{", "- a", ""])("report an invalid configuration file: %j", (text) => {
    const { settings, problems } = kubeletWith({ [CONFIG]: text });
    expect(settings).toEqual([]);
    expect(problems).toEqual([expect.stringContaining(`/${CONFIG}`)]);
  });

  test("report a missing --config file of the running kubelet", () => {
    const { problems } = kubeletWith({}, kubelet("--config=/etc/k.yaml"));
    expect(problems).toEqual(["the kubelet's configuration /etc/k.yaml does not exist"]);
  });
});

describe("drop-ins of a kubelet's --config-dir", () => {
  const proc = kubelet("--config=/etc/k.yaml", "--config-dir=/etc/k.d");
  const dropped = (base: string, files: Readonly<Record<string, string>>) =>
    settingsOf(kubeletWith({ "etc/k.yaml": base, ...files }, proc));

  test("are merged over the file in the order of their names, maps by key", () => {
    const found = dropped(config, {
      "etc/k.d/20-b.conf": "imageGCHighThresholdPercent: 71\n",
      "etc/k.d/10-a.conf":
        "imageGCHighThresholdPercent: 60\nevictionHard: {imagefs.available: 20%}\n",
      "etc/k.d/30-ignored.yaml": "imageGCHighThresholdPercent: 1\n",
    });
    expect(found).toEqual({
      imageGCHighThresholdPercent: ["71", "/etc/k.d/20-b.conf"],
      imageMinimumGCAge: ["5m", "/etc/k.yaml"],
      evictionHard: ["nodefs.available<10%,imagefs.available<20%", "/etc/k.d/10-a.conf"],
    });
  });

  test("reset a value by null, and patch the default thresholds if the file has none", () => {
    const patch = "imageGCHighThresholdPercent: null\nevictionHard: {imagefs.available: 20%}\n";
    const files = { "etc/k.d/10-a.conf": patch };
    const found = dropped("imageGCHighThresholdPercent: 90\n", files);
    expect(found["imageGCHighThresholdPercent"]).toBeUndefined();
    expect(found["evictionHard"]?.[0]).toBe(
      "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<20%,imagefs.inodesFree<5%",
    );
  });

  test("are read from subdirectories too, as the kubelet does", () => {
    const files = { "etc/k.d/10-team/a.conf": "imageGCHighThresholdPercent: 71\n" };
    expect(dropped(config, files)["imageGCHighThresholdPercent"]?.[0]).toBe("71");
  });
});

describe("the kubelet's flags in files", () => {
  test.each([
    ["etc/default/kubelet", 'KUBELET_EXTRA_ARGS="--root-dir=/data/kubelet --v=2"\n'],
    ["var/lib/kubelet/kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="--v=2 --root-dir=/data/kubelet"'],
    [
      "etc/systemd/system/kubelet.service.d/20-site.conf",
      "[Service]\n# --root-dir=/old\nExecStart=/usr/bin/kubelet \\\n  --root-dir=/data/kubelet \\\n",
    ],
  ])("are found in %s while it is not running", (name, text) => {
    expect(kubeletWith({ [name]: text }).rootDirectory).toBe("/data/kubelet");
  });

  test("of k3s are the kubelet-arg of its configuration and of its drop-ins", () => {
    const path = "etc/rancher/k3s/config.yaml";
    const files = {
      [path]: "kubelet-arg:\n- image-gc-high-threshold=70\n",
      [`${path}.d/10.yaml`]: 'kubelet-arg+: ["root-dir=/data/kubelet"]\n',
    };
    const found = kubeletWith(files, k3s());
    expect(settingsOf(found)["imageGCHighThresholdPercent"]).toEqual(["70", `/${path}`]);
    expect(found.rootDirectory).toBe("/data/kubelet");
  });

  test("of k3s include the drop-ins that it writes itself", () => {
    const dropIn = "var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf";
    const files = { [dropIn]: "evictionHard: {imagefs.available: 5%, nodefs.available: 5%}\n" };
    const found = settingsOf(kubeletWith(files, k3s()));
    expect(found["evictionHard"]?.[0]).toContain("imagefs.available<5%");
  });

  test("of MicroK8s are those of its file of arguments, with the variables of the snap", () => {
    const found = kubeletWith({
      "var/snap/microk8s/current/args/kubelet":
        "--root-dir=${SNAP_COMMON}/var/lib/kubelet\n# --eviction-hard=x\n--eviction-hard=imagefs.available<2Gi\n",
    });
    expect(found.rootDirectory).toBe("/var/snap/microk8s/common/var/lib/kubelet");
    expect(settingsOf(found)["evictionHard"]?.[0]).toBe("imagefs.available<2Gi");
  });
});
