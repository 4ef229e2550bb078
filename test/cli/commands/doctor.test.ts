// doctor as a whole: which checks there are, which are skipped because of others, and the exit code.

import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { directoryCheck } from "../../../src/cli/commands/doctor.ts";
import type { Openers } from "../../../src/engine/openers.ts";
import { RuntimeError } from "../../../src/model/errors.ts";
import type { DirectoryFact } from "../../../src/node/directories.ts";
import type { Verdict } from "../../../src/report/doctor.ts";
import { read } from "../../state/fixture.ts";
import { aFilesystem, aLedger, anImage, aSandbox, GIB, NOW } from "../../support/build/values.ts";
import { scratch } from "../../support/scratch.ts";
import { openNodeOf } from "../open-node.ts";
import { crigc } from "../world.ts";

const answering = {
  endpoint: "unix:///run/containerd/containerd.sock",
  name: "containerd",
  version: "1.7.24",
};

const shown = ({ result, message, advice }: Verdict): string =>
  `${result}: ${message}${advice === null ? "" : ` (${advice})`}`;

const room: DirectoryFact = {
  kind: "present",
  writable: true,
  availableBytes: GIB,
  inodes: 0n,
  inodesFree: 0n,
};

interface Machine {
  /** Why no runtime can be used. */
  readonly unusable?: RuntimeError;
  readonly node?: Openers["node"];
  readonly directory?: DirectoryFact;
  readonly words?: readonly string[];
  readonly files?: Readonly<Record<string, string>>;
  /** A state directory. */
  readonly state?: string;
  readonly userId?: number;
}

const state = scratch();
const pause = anImage("pause", { repoTags: ["registry.k8s.io/pause:3.9"] });

const wellNode = openNodeOf({
  snapshot: {
    images: [pause],
    sandboxes: [aSandbox("a")],
    filesystems: [aFilesystem({ availableBytes: 60n * GIB })],
    pods: { kind: "ready", source: "cri", pods: [] },
  },
  ledger: aLedger(),
}).node;

async function doctor(machine: Machine = {}) {
  const ran = await crigc(["doctor", "-o", "json", ...(machine.words ?? [])], {
    files: machine.files ?? {},
    open: {
      now: () => NOW,
      userId: machine.userId ?? 0,
      node: machine.node ?? wellNode,
      state: () => read(machine.state ?? state).reader,
      keepRules: async () => ({ rules: [], problems: [] }),
      machine: () => ({
        runtime: async () => {
          if (machine.unusable !== undefined) throw machine.unusable;
          return answering;
        },
        directory: () => machine.directory ?? room,
        device: async () => null,
        kubelet: () => ({ sign: null, file: null }),
      }),
    },
  });
  const { checks } = JSON.parse(ran.stdout) as {
    readonly checks: readonly Readonly<Record<"name" | "result" | "message", string>>[];
  };
  return { ...ran, checks };
}

const broken = scratch();
writeFileSync(join(broken, "ledger.json"), "no database at all\n".repeat(500));
const failing = (error: Error): Openers["node"] => {
  return async () => {
    throw error;
  };
};
const several = new RuntimeError("ambiguous", "two answer");
const none = new RuntimeError("absent", "no container runtime found");

test.each<[string, number, Machine]>([
  ["that is healthy", 0, {}],
  // No call reaches a runtime.
  ["with several runtimes", 8, { unusable: several, node: failing(new Error("asked")) }],
  ["with an unreadable ledger and no runtime", 8, { unusable: none, state: broken }],
  ["whose list fails", 8, { node: failing(new RuntimeError("failed", "cannot list images: x")) }],
  ["with an invalid configuration", 8, { words: ["--image-gc-high-threshold", "101"] }],
])("doctor of a node %s exits %d, and has these checks", async (_, code, machine) => {
  const ran = await doctor(machine);
  expect(ran.code).toBe(code);
  expect(JSON.parse(ran.stdout)).toMatchObject({ kind: "Doctor", healthy: code === 0 });
  const said = ran.checks.map(({ name, result, message }) =>
    result === "ok" ? name : `${name}: ${result}: ${message.replaceAll(broken, "STATE")}`,
  );
  expect(said.join("\n")).toMatchSnapshot();
});

test("doctor says of the state directory whether it can be read and written, and whether it is full", () => {
  const said = (change: Partial<typeof room> | DirectoryFact, failure: string | null = null) => {
    const fact = { ...room, ...change } as DirectoryFact;
    return shown(directoryCheck({ path: "/var/lib/crigc", fact, failure }));
  };
  expect({
    well: said({}),
    "of a broken ledger": said({}, "cannot use /var/lib/crigc/ledger.json: crigc did not write it"),
    "read-only": said({ writable: false }),
    full: said({ availableBytes: 4096n }),
    "without free inodes": said({ inodes: 100n }),
    "not there yet": said({ kind: "absent", creatable: true }),
    "that cannot be made": said({ kind: "absent", creatable: false }),
    "that is a file": said({ kind: "failed", message: "a file" }),
  }).toMatchSnapshot();
});

test("doctor warns a user who is not root", async () => {
  const found = async (machine: Machine) => {
    const { checks } = await doctor(machine);
    return Object.fromEntries(checks.map(({ name, result }) => [name, result]));
  };
  expect(await found({})).toMatchObject({ user: "ok" });
  expect(await found({ userId: 1000 })).toMatchObject({ user: "warning" });
});
