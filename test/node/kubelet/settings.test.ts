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

const CONFIG = "var/lib/kubelet/config.yaml";
const K3S = "etc/rancher/k3s/config.yaml";
const inForce = kubelet("--config=/etc/k.yaml");
const withDropIns = kubelet("--config=/etc/k.yaml", "--config-dir=/etc/k.d");

/** Files, and whether a kubelet runs. */
const nodes: Readonly<Record<string, readonly [Readonly<Record<string, string>>, string?]>> = {
  "without a kubelet": [{}],
  "with the well-known file, whose maps of signals are in flag syntax": [
    { [CONFIG]: `${config}evictionSoftGracePeriod:\n  imagefs.available: 1m\n` },
  ],
  "whose kubelet runs with --config, and a flag that wins": [
    { [CONFIG]: "imageGCHighThresholdPercent: 1", "etc/k.yaml": config },
    kubelet("--config=/etc/k.yaml", "--image-gc-high-threshold=70"),
  ],
  "whose kubelet has a root directory and static pods": [
    { "etc/k.yaml": "staticPodPath: /etc/kubernetes/manifests\n" },
    kubelet("--config=/etc/k.yaml", "--root-dir", "/data/kubelet"),
  ],
  "whose file has values of a wrong type": [
    { [CONFIG]: "imageGCHighThresholdPercent: true\nevictionHard: [1]\nevictionSoft: null\n" },
  ],
  "whose file is cut off": [{ [CONFIG]: "{" }],
  "whose file is a list": [{ [CONFIG]: "- a" }],
  "whose file is empty": [{ [CONFIG]: "" }],
  "whose --config is missing": [{}, inForce],
  "with drop-ins, merged by name and maps by key, from subdirectories too": [
    {
      "etc/k.yaml": config,
      "etc/k.d/20-b.conf": "imageGCHighThresholdPercent: 71\n",
      "etc/k.d/10-a.conf":
        "imageGCHighThresholdPercent: 60\nevictionHard: {imagefs.available: 20%}\n",
      "etc/k.d/10-team/a.conf": "imageMinimumGCAge: 9m\n",
      "etc/k.d/30-ignored.yaml": "imageGCHighThresholdPercent: 1\n",
    },
    withDropIns,
  ],
  "with a drop-in that resets a value by null and patches the default thresholds": [
    {
      "etc/k.yaml": "imageGCHighThresholdPercent: 90\n",
      "etc/k.d/10-a.conf":
        "imageGCHighThresholdPercent: null\nevictionHard: {imagefs.available: 20%}\n",
    },
    withDropIns,
  ],
  "with flags for a package's service": [
    { "etc/default/kubelet": 'KUBELET_EXTRA_ARGS="--root-dir=/data/kubelet --v=2"\n' },
  ],
  "with flags of kubeadm": [
    {
      "var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--v=2 --root-dir=/data/kubelet"',
    },
  ],
  "with flags in a drop-in of the unit": [
    {
      "etc/systemd/system/kubelet.service.d/20-site.conf":
        "[Service]\n# --root-dir=/old\nExecStart=/usr/bin/kubelet \\\n  --root-dir=/data/kubelet \\\n",
    },
  ],
  "of k3s, with kubelet-arg in its file and a drop-in, and the drop-ins that k3s writes": [
    {
      [K3S]: "kubelet-arg:\n- image-gc-high-threshold=70\n",
      [`${K3S}.d/10.yaml`]: 'kubelet-arg+: ["root-dir=/data/kubelet"]\n',
      "var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf":
        "evictionHard: {imagefs.available: 5%, nodefs.available: 5%}\n",
    },
    procWith({ words: ["/usr/local/bin/k3s server"], comm: "k3s-server" }),
  ],
  "of MicroK8s, with the variables of the snap": [
    {
      "var/snap/microk8s/current/args/kubelet":
        "--root-dir=${SNAP_COMMON}/var/lib/kubelet\n# --eviction-hard=x\n--eviction-hard=imagefs.available<2Gi\n",
    },
  ],
};

test("the kubelet's settings are found in its files and flags, each with its source", () => {
  const found = Object.entries(nodes).map(([name, [files, proc = NOBODY]]) => {
    const root = scratch();
    for (const [path, text] of Object.entries(files)) put(root, path, text);
    const { settings, processes: _, ...rest } = readKubelet({ proc, root });
    const values = settings.map(({ field, text, source }) => `${field}: ${text} (${source})`);
    return [`a node ${name}`, JSON.stringify(rest), ...values].join("\n  ");
  });
  expect(found.join("\n")).toMatchSnapshot();
});
