// Large nodes: what passes cost beside the bare cost of their calls, and how that grows with the node.

import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";

import type { BareCost, BareStep } from "./bare.ts";
import { cheapest, sum } from "./costs.ts";
import { type LargeNode, largeNode } from "./large-node.ts";
import type { ToRuntime } from "./large-runtime.ts";
import { alive, peakOf, usageOf } from "./process.ts";
import { type Command, median } from "./runs.ts";

export interface Measured {
  readonly name: string;
  readonly wallMs: number;
  /** As the pass itself counts, without the start of the program; `null`: the command is no pass. */
  readonly passMs: number | null;
  readonly processorMs: number;
  readonly peakBytes: number;
  /** By method, those that were made. */
  readonly calls: Readonly<Record<string, number>>;
  /** What the same work costs bare: time, and processor time of the one who asks. */
  readonly bareMs: number;
  readonly bareProcessorMs: number;
}

export interface LargeResult {
  readonly images: number;
  /** One set, bare. */
  readonly lists: BareCost;
  readonly runs: readonly Measured[];
}

export interface AgentResult {
  readonly seconds: number;
  /** Of one core. */
  readonly idleShare: number;
  readonly residentBytes: number;
  readonly peakBytes: number;
  /** With a pass each second. */
  readonly passes: number;
  readonly passProcessorMs: number;
  /** As the agent itself measures a pass once it is warm: the median. */
  readonly passMs: number;
}

/** By then the first passes have ended, and what they left has been given back. */
const settlingMs = 45_000;

/** Of the images, one in so many goes in a pass that removes. */
const removedShare = 0.08;
/** Best of what was measured: more at once is no faster on two cores. */
const atOnceChoices = [8, 16, 32];

export interface LargeOptions {
  readonly directory: string;
  readonly program: string;
  readonly images: number;
  readonly priority: Command;
}

export class LargeBench {
  readonly #directory: string;
  readonly #program: string;
  /** Goes before every command. */
  readonly #priority: Command;
  readonly #images: number;
  readonly #node: LargeNode;
  readonly #runtime: Bun.Subprocess<"ignore", "inherit", "inherit">;
  #answered: (message: { readonly calls: Record<string, number> }) => void = () => undefined;

  private constructor(of: LargeOptions, listening: () => void) {
    this.#program = of.program;
    this.#priority = of.priority;
    this.#images = of.images;
    this.#directory = join(of.directory, `large-${of.images}`);
    this.#node = largeNode(of.images);
    for (const name of ["logs", "links", "root", "keep"])
      mkdirSync(this.#at(name), { recursive: true });
    const main = join(import.meta.dir, "large-runtime.ts");
    this.#runtime = Bun.spawn(
      [
        ...of.priority,
        process.execPath,
        main,
        this.#at("cri.sock"),
        String(of.images),
        this.#directory,
      ],
      {
        stdio: ["ignore", "inherit", "inherit"],
        ipc: (message: { kind: string; calls: Record<string, number> }) =>
          message.kind === "listening" ? listening() : this.#answered(message),
      },
    );
  }

  static async start(of: LargeOptions): Promise<LargeBench> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const bench = new LargeBench(of, resolve);
    await promise;
    return bench;
  }

  async stop(): Promise<void> {
    this.#runtime.kill("SIGTERM");
    await this.#runtime.exited;
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async run(): Promise<LargeResult> {
    const removed = Math.round(this.#images * removedShare);
    const bare = await this.#bareCosts(removed);
    const { lists } = bare;
    // The fake runtime frees nothing, so what the disk says must not end the pass.
    const atMost = (left: number) => ["gc", "--images", `--image-store-budget=${left}M`];
    const first = sum(lists, bare.statuses);
    const firstRuns = [
      await this.#measure("first plan, nothing known", ["plan"], first),
      // Fills the ledger.
      await this.#measure("first pass, nothing known", ["gc"], first, { keepsContainers: true }),
    ];
    // An agent reads the layers of images as they arrive; without one the first pass that removes images does.
    await this.#measure("the layers", atMost(this.#images - 1), first);
    const runs = [
      ...firstRuns,
      await this.#measure("plan with a ledger", ["plan"], lists),
      await this.#measure("pass that finds nothing", ["gc", "--images"], lists),
      await this.#measure(
        `image pass, ${removed} removals`,
        atMost(this.#images - removed),
        sum(lists, bare.removals),
      ),
      await this.#measure(
        `container pass, ${bare.deadContainers} containers`,
        ["gc", "--containers"],
        sum(lists, bare.containers),
      ),
    ];
    return { images: this.#images, lists, runs };
  }

  /** The agent on a ledger that knows the node, with nothing to do. */
  async agent(seconds: number): Promise<AgentResult> {
    const idle = await this.#runAgent([], seconds);
    const busy = await this.#runAgent(
      [`--image-store-budget=${this.#images}M`, "--image-gc-period=1s"],
      seconds,
    );
    return {
      seconds,
      idleShare: idle.processorMs / (seconds * 1000),
      residentBytes: idle.residentBytes,
      peakBytes: idle.peakBytes,
      passes: busy.passes,
      passProcessorMs: (busy.processorMs - idle.processorMs) / busy.passes,
      passMs: median(busy.tookMs.slice(-busy.passes)),
    };
  }

  /**
   * Memory over the second tenth of the passes and over the last, one pass a second: medians of a look each second, because
   * one look sees as much garbage as happens to wait for its collection.
   */
  async soak(passes: number): Promise<readonly [number, number]> {
    const child = this.#startAgent([
      `--image-store-budget=${this.#images}M`,
      "--image-gc-period=1s",
      "--container-gc-period=1s",
    ]);
    const tenth = Math.ceil(passes / 10);
    const over = async (seconds: number): Promise<number> => {
      const resident: number[] = [];
      for (let second = 0; second < seconds; second += 1) {
        await alive(child, 1000);
        resident.push(usageOf(child.pid).residentBytes);
      }
      return median(resident);
    };
    try {
      await alive(child, tenth * 1000);
      const early = await over(tenth);
      await alive(child, (passes - 3 * tenth) * 1000);
      return [early, await over(tenth)];
    } finally {
      child.kill("SIGTERM");
      await child.exited;
    }
  }

  async #runAgent(
    words: readonly string[],
    seconds: number,
  ): Promise<
    ReturnType<typeof usageOf> & { readonly passes: number; readonly tookMs: readonly number[] }
  > {
    const child = this.#startAgent(words);
    const log = child.stderr.text();
    try {
      await alive(child, settlingMs);
      // Nothing is brought back here: the sandboxes that went at the start would have to go again.
      const { ListContainers: looksBefore = 0 } = await this.#tell("calls");
      const before = usageOf(child.pid);
      await alive(child, seconds * 1000);
      const after = usageOf(child.pid);
      const { ListContainers: looks = 0 } = await this.#tell("calls");
      const passes = looks - looksBefore;
      child.kill("SIGTERM");
      const tookMs = [...(await log).matchAll(/ image-gc\] .* tookMs=(\d+)/g)].map(([, ms]) =>
        Number(ms),
      );
      return { ...after, processorMs: after.processorMs - before.processorMs, passes, tookMs };
    } finally {
      child.kill("SIGTERM");
      await child.exited;
    }
  }

  #startAgent(words: readonly string[]): Bun.Subprocess<"ignore", "ignore", "pipe"> {
    const command = [
      ...this.#priority,
      this.#program,
      "run",
      ...this.#flags({ keepsContainers: true }),
      ...words,
    ];
    return Bun.spawn(command, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, BUN_GC_TIMER_INTERVAL: "10000", BUN_IDLE_GC_SECONDS: "0" },
    });
  }

  async #measure(
    name: string,
    words: readonly string[],
    bare: BareCost,
    how: { readonly keepsContainers?: boolean } = {},
  ): Promise<Measured> {
    await this.#tell("reset");
    const startedAt = performance.now();
    const child = Bun.spawn(
      [...this.#priority, this.#program, ...words, "-o", "json", ...this.#flags(how)],
      {
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const peak = peakOf(child);
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    const exitCode = await child.exited;
    const wallMs = performance.now() - startedAt;
    if (exitCode !== 0)
      throw new Error(`crigc ${words.join(" ")} ended with ${exitCode}: ${errors}`);
    const usage = child.resourceUsage();
    const took = (JSON.parse(output) as { readonly tookMs?: number }).tookMs;
    return {
      name,
      wallMs,
      passMs: took ?? null,
      processorMs: Number(usage?.cpuTime.total ?? 0) / 1000,
      peakBytes: await peak,
      calls: await this.#tell("calls"),
      bareMs: bare.wallMs,
      bareProcessorMs: bare.processorMs,
    };
  }

  async #bareCosts(removed: number): Promise<{
    readonly lists: BareCost;
    readonly statuses: BareCost;
    readonly removals: BareCost;
    readonly containers: BareCost;
    readonly deadContainers: number;
  }> {
    await this.#tell("reset");
    const { containers, sandboxes, images } = this.#node;
    const idsOf = (messages: readonly { readonly id: string }[]) => messages.map(({ id }) => id);
    const lists = { methods: ["ListImages", "ListContainers", "ListPodSandbox"], ids: [""] };
    const dead = idsOf(containers.filter(({ state }) => state === 2)).filter(
      (_, index) => index % 3 < 2,
    );
    const old = idsOf(sandboxes.filter(({ state }) => state === 1));
    const step = (methods: readonly string[], ids: readonly string[], atOnce = 1) =>
      this.#bare([
        { ...lists, atOnce: 1 },
        { methods, ids, atOnce },
      ]);
    const statuses: BareCost[] = [];
    for (const atOnce of atOnceChoices)
      statuses.push(
        sum(
          (await step(["ContainerStatus"], idsOf(containers), atOnce))[1],
          (await step(["PodSandboxStatus"], idsOf(sandboxes), atOnce))[1],
        ),
      );
    const set = await this.#bare(Array.from({ length: 5 }, () => ({ ...lists, atOnce: 1 })));
    const gone = await step(["RemoveImage", "ImageStatus"], idsOf(images.slice(-removed)));
    const removedContainers = await step(["ContainerStatus", "RemoveContainer"], dead);
    const removedSandboxes = await step(["StopPodSandbox", "RemovePodSandbox"], old);
    return {
      // The first also opens the connection.
      lists: cheapest(set.slice(1)),
      statuses: cheapest(statuses),
      removals: sum(gone[1]),
      containers: sum(removedContainers[1], removedSandboxes[1]),
      deadContainers: dead.length,
    };
  }

  async #bare(steps: readonly BareStep[]): Promise<readonly BareCost[]> {
    const child = Bun.spawn(
      [...this.#priority, process.execPath, join(import.meta.dir, "bare.ts"), this.#at("cri.sock")],
      { stdio: [new Blob([JSON.stringify(steps)]), "pipe", "inherit"] },
    );
    const output = await child.stdout.text();
    if ((await child.exited) !== 0) throw new Error("the bare calls failed");
    return JSON.parse(output) as readonly BareCost[];
  }

  async #tell(kind: ToRuntime["kind"]): Promise<Readonly<Record<string, number>>> {
    const { promise, resolve } = Promise.withResolvers<Record<string, number>>();
    this.#answered = ({ calls }) => resolve({ ...calls });
    this.#runtime.send({ kind });
    return promise;
  }

  #at(name: string): string {
    return join(this.#directory, name);
  }

  /** No image has to go, however full the disk is that this runs on. */
  #flags({ keepsContainers = false }: { readonly keepsContainers?: boolean }): readonly string[] {
    return Object.entries({
      "container-runtime-endpoint": this.#at("cri.sock"),
      "state-dir": this.#at("state"),
      "run-dir": this.#at("run"),
      "pod-logs-dir": this.#at("logs"),
      "container-logs-dir": this.#at("links"),
      "root-dir": this.#at("root"),
      "keep-dir": this.#at("keep"),
      "pod-source": "cri",
      "boot-grace": "0s",
      "minimum-image-ttl-duration": "0s",
      "image-gc-high-threshold": "100",
      "image-gc-low-threshold": "99",
      "eviction-hard": "nodefs.available<1Mi,imagefs.available<1Mi",
      ...(keepsContainers ? { "maximum-dead-containers-per-container": "-1" } : {}),
    }).map(([name, value]) => `--${name}=${value}`);
  }
}
