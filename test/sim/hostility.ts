// A runtime that answers wrongly, late, partly, twice or never, by spells whose mixture is random.

import { RuntimeError } from "../../src/model/errors.ts";
import type { ImageId } from "../../src/model/ids.ts";
import type { RuntimeReader, RuntimeWriter } from "../../src/model/ports.ts";
import type { Container, Image, Sandbox } from "../../src/model/snapshot.ts";
import { instant } from "../../src/model/time.ts";
import type { Random } from "../support/random.ts";
import { signalIn, surrounded } from "./around.ts";
import { DEADLINE_MS, type SimClock } from "./clock.ts";

const FATES = [
  "failed",
  "malformed",
  "unreachable",
  /** Never answered: its deadline ends it. */
  "never",
  "late",
  /** As it was when it was asked for, after a long time. */
  "late-and-old",
  /** What was answered to the call before; what changes something is done twice. */
  "again",
  /** Half of it; what changes something is done, and fails. */
  "part",
  /** Nothing; what changes something is not done, and succeeds. */
  "empty",
  /** In another order, images twice. */
  "shuffled",
  /** Sizes and times at the ends of their types. */
  "extreme",
] as const;
type Fate = (typeof FATES)[number];
type Falsehood = Exclude<
  Fate,
  "failed" | "malformed" | "unreachable" | "never" | "late" | "late-and-old"
>;

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
  imageConfig: "imageStatus",
};

const INT64_MAX = 2n ** 63n - 1n;

/** What lists were delivered as, for the judge. */
export interface Told {
  listed: readonly Container[];
  listedSandboxes: readonly Sandbox[];
}

interface Call {
  readonly method: Method;
  readonly signal: AbortSignal | undefined;
  readonly ask: () => Promise<unknown>;
  readonly falsely: (falsehood: Falsehood) => Promise<unknown>;
}

export class Hostility {
  readonly #clock: SimClock;
  readonly #random: Random;
  /** Of each method, what happens to some of its calls. */
  #spell = new Map<string, { readonly fate: Fate; readonly percent: number }>();
  /** Answers by question. */
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
    return surrounded(inner, async (name, given, call) => {
      if (name === "writableLayers") return call();
      const key = `${name} ${String(given[0])}`;
      const ask = async (): Promise<unknown> => {
        const answer = await call();
        this.#last.set(key, answer);
        return answer;
      };
      const answer = await this.#answer({
        method: ASKED_AS[name] ?? name,
        signal: signalIn(given),
        ask,
        falsely: async (falsehood) =>
          falsehood === "again"
            ? (this.#last.get(key) ?? ask())
            : this.#bent(name, await call(), falsehood),
      });
      if (name === "listContainers") told.listed = answer as readonly Container[];
      if (name === "listSandboxes") told.listedSandboxes = answer as readonly Sandbox[];
      return answer;
    });
  }

  writer(inner: RuntimeWriter, onRemoval: (id: ImageId) => void): RuntimeWriter {
    return surrounded(inner, async (name, given, ask) => {
      if (name === "execSync") return ask();
      if (name === "removeImage") onRemoval(given[0] as ImageId);
      const falsely = async (falsehood: Falsehood): Promise<void> => {
        if (falsehood !== "empty") await ask();
        if (falsehood === "again" || falsehood === "shuffled") await ask();
        if (falsehood === "part")
          throw new RuntimeError("unreachable", `${name}: the connection broke`);
      };
      return this.#answer({ method: name, signal: signalIn(given), ask, falsely });
    });
  }

  async #answer({ method, signal, ask, falsely }: Call): Promise<unknown> {
    const planned = this.#spell.get(method);
    if (planned === undefined || this.#random.next() * 100 >= planned.percent) return ask();
    const { fate } = planned;
    this.done.set(fate, (this.done.get(fate) ?? 0) + 1);
    if (fate === "failed" || fate === "malformed" || fate === "unreachable")
      throw new RuntimeError(fate, `${method} was made to fail`);
    if (fate === "never") {
      await this.#clock.sleep(DEADLINE_MS, signal);
      throw unanswered(method, signal);
    }
    if (fate === "late") {
      await this.#wait(signal);
      return ask();
    }
    if (fate !== "late-and-old") return falsely(fate);
    const answer = await ask();
    await this.#wait(signal);
    return answer;
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return this.#clock.sleep(this.#random.next() * DEADLINE_MS, signal);
  }

  /** That something is not there is the runtime's own word on what lists lack: it is not bent. */
  #bent(name: keyof RuntimeReader, answer: unknown, falsehood: Falsehood): unknown {
    if (name === "info" && falsehood === "extreme") return { ...(answer as object), version: "" };
    if (name === "imageStatus" && falsehood === "empty") return null;
    if (!name.startsWith("list")) return answer;
    const list = answer as readonly (Image | Container | Sandbox)[];
    const isOfImages = name === "listImages";
    if (falsehood === "empty") return [];
    if (falsehood === "part") return list.filter(() => this.#random.chance(0.6));
    if (falsehood === "shuffled")
      return [...list.toReversed(), ...(isOfImages ? list.slice(0, list.length / 2) : [])];
    const sizeBytes = this.#random.pick([0n, 1n, 2n * INT64_MAX + 1n]);
    const createdAt = instant(this.#random.pick([0n, INT64_MAX, -INT64_MAX - 1n]));
    return list.map((item) => ({ ...item, ...(isOfImages ? { sizeBytes } : { createdAt }) }));
  }
}

const unanswered = (method: string, signal: AbortSignal | undefined): RuntimeError =>
  signal?.aborted === true
    ? new RuntimeError("cancelled", `${method} was given up`)
    : new RuntimeError("deadline", `${method} was not answered in time`);
