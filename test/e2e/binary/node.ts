// A node for the executable: the fake runtime on a socket, and every directory that is read or written in one place.

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";
import {
  type ImageDescription,
  imageIdOf,
  type NodeDescription,
} from "../../support/fake-runtime/describe.ts";
import {
  type FakeRuntime,
  type FakeRuntimeOptions,
  startFakeRuntime,
} from "../../support/fake-runtime/server.ts";
import {
  type ProgramResult,
  type ProgramSurroundings,
  type RunningProgram,
  runProgram,
  startProgram,
} from "../../support/program.ts";

/** No threshold is met, however full the tester's disk is. */
export const onAnyDisk = [
  "--image-gc-high-threshold=99",
  "--image-gc-low-threshold=98",
  "--eviction-hard=nodefs.available<0%",
] as const;

/** Every image may go at once; what else happens on the tester's disk does not matter. */
export const removable = ["--minimum-image-ttl-duration=0s", ...onAnyDisk] as const;

/** Passes come quickly, and only a budget triggers any removal. */
export const quickPasses = [
  ...removable,
  ...["image-gc", "image-detection", "image-cache", "container-gc", "pressure"].map(
    (loop) => `--${loop}-period=150ms`,
  ),
] as const;

/** `r.example/i0:1` and so on; of equal age the first is the largest and so goes first. */
export const numberedImages = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    id: imageIdOf(index),
    repoTags: [`r.example/i${index}:1`],
    sizeBytes: 1_000_000 - index,
  }));

export const image = (
  name: string,
  sizeBytes = 1_000_000,
  change: Partial<ImageDescription> = {},
): ImageDescription => ({
  id: imageIdOf(name),
  repoTags: [`r.example/${name}:1`],
  sizeBytes,
  ...change,
});

/** One unused image, and one that a running and a dead container use. */
export const usedAndUnused = {
  images: [image("unused"), image("used", 2_000_000)],
  sandboxes: [{ id: "pod" }],
  containers: [
    { id: "web", sandboxId: "pod", image: "r.example/used:1" },
    { id: "old", sandboxId: "pod", image: "r.example/used:1", state: "exited" },
  ],
} as const satisfies NodeDescription;

export interface NodeOptions extends Omit<FakeRuntimeOptions, "node" | "socket"> {
  readonly node?: NodeDescription;
  /** Flags of every call, behind those of the node. */
  readonly flags?: readonly string[];
}

/** A document of ours, as the test looks into it. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Json = any;

export async function startNode(options: NodeOptions = {}): Promise<TestNode> {
  const home = mkdtempSync(join(tmpdir(), "crigc-binary-"));
  // Images without files count as lying where the tester's temporary files do.
  const onDisk =
    options.store?.directory === undefined ? { imageFilesystems: [{ mountpoint: home }] } : {};
  const runtime = await startFakeRuntime({
    ...options,
    node: { ...onDisk, ...options.node },
    socket: join(home, "cri.sock"),
  });
  const node = new TestNode(home, runtime, options.flags ?? []);
  node.configure({});
  return node;
}

const CHANGING =
  /^(?:Remove|Stop|Start|Create|Run|Pull|Exec|Attach|Update|Reopen|Checkpoint|PortForward)/;

export class TestNode {
  readonly home: string;
  readonly runtime: FakeRuntime;
  readonly stateDir: string;
  readonly runDir: string;
  readonly keepDir: string;
  readonly configFile: string;
  readonly podLogsDir: string;
  /** The agent's control socket. */
  readonly socket: string;
  /** Flags that tie the program to this node. */
  readonly flags: readonly string[];

  constructor(home: string, runtime: FakeRuntime, flags: readonly string[]) {
    this.home = home;
    this.runtime = runtime;
    const place = (name: string): string => join(home, name);
    this.stateDir = place("state");
    this.runDir = place("run");
    this.keepDir = place("keep.d");
    this.configFile = place("crigc.yaml");
    this.podLogsDir = place("pods");
    this.socket = place("run/crigc.sock");
    for (const name of ["keep.d", "conf.d", "pods", "containers", "root"]) mkdirSync(place(name));
    this.flags = [
      `--container-runtime-endpoint=${runtime.endpoint}`,
      `--state-dir=${this.stateDir}`,
      `--run-dir=${this.runDir}`,
      `--keep-dir=${this.keepDir}`,
      `--config=${this.configFile}`,
      `--config-dir=${place("conf.d")}`,
      `--pod-logs-dir=${this.podLogsDir}`,
      `--container-logs-dir=${place("containers")}`,
      `--root-dir=${place("root")}`,
      "--pod-source=cri",
      ...flags,
    ];
  }

  crigc(...words: readonly string[]): Promise<ProgramResult> {
    return this.within({}, ...words);
  }

  within(surroundings: ProgramSurroundings, ...words: readonly string[]): Promise<ProgramResult> {
    return runProgram(this.#withFlags(words), surroundings);
  }

  /** Its document; throws where it exits with another code than `exitCode`. */
  async json(words: readonly string[], exitCode = 0): Promise<Json> {
    const result = await this.crigc(...words, "-o", "json");
    if (result.exitCode !== exitCode)
      throw new Error(
        `crigc ${words.join(" ")} exits ${result.exitCode}, not ${exitCode}:\n${result.stderr}${result.stdout}`,
      );
    return JSON.parse(result.stdout);
  }

  start(...words: readonly string[]): RunningProgram {
    return startProgram(this.#withFlags(words));
  }

  /** Fetches a path from the agent. */
  ask(path: string): Promise<Response> {
    return fetch(`http://agent${path}`, { unix: this.socket });
  }

  /** What the running agent says of itself; waits until it answers and `isSo`. */
  status(what = "the agent answers", isSo: (status: Json) => boolean = () => true): Promise<Json> {
    return until(what, 20_000, async () => {
      if (!existsSync(this.socket)) return undefined;
      const { exitCode, stdout } = await this.crigc("status", "-o", "json");
      if (exitCode !== 0) return undefined;
      const status: Json = JSON.parse(stdout);
      return isSo(status) && status;
    });
  }

  /** The agent's status once it has ended a pass over images. */
  firstPass(): Promise<Json> {
    return this.status("the first pass over images has ended", ({ lastPasses }) =>
      lastPasses.some((pass: Json) => pass.passKind === "image-gc"),
    );
  }

  /** Until the agent has listed the node three times more. */
  async looksAgain(): Promise<void> {
    const before = this.runtime.callsOf("ListImages").length;
    await until(
      "it has looked again",
      10_000,
      () => this.runtime.callsOf("ListImages").length > before + 2,
    );
  }

  /** Until the runtime was told to remove so many images in all. */
  async untilRemoved(count: number): Promise<void> {
    await until(`${count} images went`, 20_000, () => this.removedImages().length === count);
  }

  /** Those of the node, unless the words give them themselves. */
  #withFlags(words: readonly string[]): readonly string[] {
    const given = new Set(words.map((word) => word.split("=")[0]));
    return [...words, ...this.flags.filter((flag) => !given.has(flag.split("=")[0]))];
  }

  /** Replaces the configuration file: fields beside `apiVersion` and `kind`. */
  configure(fields: object): void {
    const document = { apiVersion: "crigc/v1", kind: "CrigcConfiguration", ...fields };
    writeFileSync(this.configFile, JSON.stringify(document, null, 1));
  }

  /** IDs that the runtime was told to remove, in order. */
  removedImages(): readonly string[] {
    return this.runtime.removedImages();
  }

  /** Calls that change the runtime. */
  changes(): readonly string[] {
    return this.runtime.calls.map(({ method }) => method).filter((name) => CHANGING.test(name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runtime.stop();
    rmSync(this.home, { recursive: true, force: true });
  }
}
