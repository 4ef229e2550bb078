// A runtime that answers wrongly, late, partly, twice or never, by spells whose mixture is random.

import { assertNever } from "../../src/model/assert.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { ImageId } from "../../src/model/ids.ts";
import type { RuntimeReader, RuntimeWriter } from "../../src/model/ports.ts";
import type { Container, Image, Sandbox } from "../../src/model/snapshot.ts";
import { instant } from "../../src/model/time.ts";
import type { Random } from "../support/random.ts";
import { signalIn, surrounded } from "./around.ts";
import type { SimClock } from "./clock.ts";

type Fate =
  | "error"
  | "malformed"
  | "unreachable"
  /** Answered by nobody: the deadline ends it. */
  | "never"
  | "late"
  /** As it was when it was asked for, after a long time. */
  | "late-and-old"
  /** What was answered to the call before. */
  | "again"
  | "part"
  | "empty"
  /** In another order, images twice. */
  | "shuffled"
  /** Sizes and times at the ends of their types. */
  | "extreme";

const FATES: readonly Fate[] = [
  "error",
  "malformed",
  "unreachable",
  "never",
  "late",
  "late-and-old",
  "again",
  "part",
  "empty",
  "shuffled",
  "extreme",
];

const DEADLINE_MS = 120_000;
const INT64_MAX = 2n ** 63n - 1n;
const UINT64_MAX = 2n ** 64n - 1n;

/** What lists were delivered as, for the judge. */
export interface Told {
  listed: readonly Container[];
  listedSandboxes: readonly Sandbox[];
}

export class Hostility {
  readonly #clock: SimClock;
  readonly #random: Random;
  /** Of each method, what happens to some of its calls. */
  #spell = new Map<string, { readonly fate: Fate; readonly percent: number }>();
  readonly #last = new Map<string, unknown>();
  /** Calls that were not answered as an honest runtime would. */
  readonly done = new Map<Fate, number>();

  constructor(clock: SimClock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Another mixture, mostly of few methods: where much is broken at once, no pass comes far. */
  begin(): void {
    const random = this.#random;
    this.#spell = new Map();
    for (let count = random.pick([1, 1, 2, 3, 8]); count > 0; count -= 1)
      this.#spell.set(random.pick(METHODS), {
        fate: random.pick(FATES),
        percent: random.pick([20, 60, 100]),
      });
  }

  end(): void {
    this.#spell = new Map();
  }

  reader(inner: RuntimeReader, told: Told): RuntimeReader {
    return surrounded(inner, async (name, given, ask) => {
      if (name === "writableLayers") return ask();
      const call = {
        method: ASKED_AS[name] ?? name,
        key: `${name} ${String(given[0])}`,
        signal: signalIn(given),
      };
      const answer = await this.#read(call, ask, this.#bent[name]);
      if (name === "listContainers") told.listed = answer as readonly Container[];
      if (name === "listSandboxes") told.listedSandboxes = answer as readonly Sandbox[];
      return answer;
    });
  }

  writer(inner: RuntimeWriter, onRemoval: (id: ImageId) => void): RuntimeWriter {
    return surrounded(inner, async (name, given, ask) => {
      if (name === "execSync") return ask();
      if (name === "removeImage") onRemoval(given[0] as ImageId);
      return this.#write(name, signalIn(given), ask);
    });
  }

  #fateOf(method: Method): Fate | null {
    const planned = this.#spell.get(method);
    if (planned === undefined || this.#random.next() * 100 >= planned.percent) return null;
    this.done.set(planned.fate, (this.done.get(planned.fate) ?? 0) + 1);
    return planned.fate;
  }

  async #read(
    { method, key, signal }: Call,
    ask: () => Promise<unknown>,
    bent: Bend = (answer) => answer,
  ): Promise<unknown> {
    const fate = this.#fateOf(method);
    if (fate === "late") await this.#wait(signal);
    if (fate === null || fate === "late") return this.#remembered(key, await ask());
    switch (fate) {
      case "error":
      case "malformed":
      case "unreachable":
        throw new RuntimeError(fate === "error" ? "failed" : fate, `${method} was made to fail`);
      case "never":
        await this.#clock.sleep(DEADLINE_MS, signal);
        throw unanswered(method, signal);
      case "late-and-old": {
        const answer = this.#remembered(key, await ask());
        await this.#wait(signal);
        return answer;
      }
      case "again": {
        const answer = await ask();
        return this.#last.has(key) ? this.#last.get(key) : this.#remembered(key, answer);
      }
      case "part":
      case "empty":
      case "shuffled":
      case "extreme":
        return bent((await ask()) as never, fate);
      default:
        return assertNever(fate);
    }
  }

  /** What fails may have been done, and what succeeds may not. */
  async #write(
    method: Method,
    signal: AbortSignal | undefined,
    act: () => Promise<unknown>,
  ): Promise<unknown> {
    const fate = this.#fateOf(method);
    switch (fate) {
      case null:
      case "extreme":
        return act();
      case "error":
      case "malformed":
      case "unreachable":
        throw new RuntimeError(fate === "error" ? "failed" : fate, `${method} was made to fail`);
      case "part":
        await act();
        throw new RuntimeError("unreachable", `${method}: the connection broke`);
      case "never":
        await this.#clock.sleep(DEADLINE_MS, signal);
        throw unanswered(method, signal);
      case "late-and-old":
        await act();
        await this.#clock.sleep(DEADLINE_MS, signal);
        throw unanswered(method, signal);
      case "late":
        await this.#wait(signal);
        return act();
      case "again":
      case "shuffled":
        await act();
        return act();
      case "empty":
        return;
      default:
        assertNever(fate);
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return this.#clock.sleep(this.#random.next() * DEADLINE_MS, signal);
  }

  #remembered(key: string, answer: unknown): unknown {
    this.#last.set(key, answer);
    return answer;
  }

  readonly #dated: Bend<readonly (Container | Sandbox)[]> = (items, fate) => {
    const createdAt = instant(this.#random.pick([0n, INT64_MAX, -INT64_MAX - 1n]));
    if (fate === "extreme") return items.map((item) => ({ ...item, createdAt }));
    return this.#listed(items, fate);
  };

  /** That something is not there is the runtime's own word on what lists lack: it is not bent. */
  readonly #bent: Readonly<Partial<Record<keyof RuntimeReader, Bend>>> = {
    info: (info: object, fate) => (fate === "extreme" ? { ...info, version: "" } : info),
    imageStatus: (image, fate) => (fate === "empty" ? null : image),
    listContainers: this.#dated,
    listSandboxes: this.#dated,
    listImages: (images: readonly Image[], fate) => {
      const size = this.#random.pick([0n, 1n, UINT64_MAX]);
      if (fate === "extreme") return images.map((image) => ({ ...image, sizeBytes: size }));
      const list = this.#listed(images, fate);
      return fate === "shuffled" ? [...list, ...list.slice(0, list.length / 2)] : list;
    },
  };

  #listed<Item>(items: readonly Item[], fate: Fate): readonly Item[] {
    if (fate === "empty") return [];
    if (fate === "part") return items.filter(() => this.#random.chance(0.6));
    return fate === "shuffled" ? items.toReversed() : items;
  }
}

const METHODS = [
  "info",
  "listImages",
  "listContainers",
  "listSandboxes",
  "containerDetail",
  "sandboxDetail",
  "imageStatus",
  "reportedFilesystems",
  "removeImage",
  "stopContainer",
  "removeContainer",
  "stopSandbox",
  "removeSandbox",
] as const;
type Method = keyof RuntimeReader | keyof RuntimeWriter;
/** Calls that are another one to the runtime. */
const ASKED_AS: Readonly<Partial<Record<Method, Method>>> = {
  sandboxLogDirectory: "sandboxDetail",
  sandboxImage: "sandboxDetail",
  imageOrigin: "imageStatus",
};
interface Call {
  readonly method: Method;
  /** The same for the same question. */
  readonly key: string;
  readonly signal: AbortSignal | undefined;
}
/** What an answer becomes under a fate that falsifies it. */
type Bend<Answer = never> = (answer: Answer, fate: Fate) => unknown;

const unanswered = (method: string, signal: AbortSignal | undefined): RuntimeError =>
  signal?.aborted === true
    ? new RuntimeError("cancelled", `${method} was given up`)
    : new RuntimeError("deadline", `${method} was not answered in time`);
