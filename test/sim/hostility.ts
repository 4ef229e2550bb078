// A runtime that answers wrongly, late, partly, twice or never, by spells whose mixture is random.

import { assertNever } from "../../src/model/assert.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { ImageId } from "../../src/model/ids.ts";
import type { RuntimeReader, RuntimeWriter } from "../../src/model/ports.ts";
import type { Container, Image, Sandbox } from "../../src/model/snapshot.ts";
import { instant } from "../../src/model/time.ts";
import type { Random } from "../support/random.ts";
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
    const read = this.#read.bind(this);
    return {
      info: async (signal) =>
        read("info", signal, () => inner.info(signal), {
          bent: (info, fate) => (fate === "extreme" ? { ...info, version: "" } : info),
        }),
      listImages: async (signal) =>
        read("listImages", signal, () => inner.listImages(signal), { bent: this.#images }),
      listContainers: async (signal) =>
        (told.listed = await read("listContainers", signal, () => inner.listContainers(signal), {
          bent: this.#dated,
        })),
      listSandboxes: async (signal) =>
        (told.listedSandboxes = await read(
          "listSandboxes",
          signal,
          () => inner.listSandboxes(signal),
          { bent: this.#dated },
        )),
      // That something is not there is the runtime's own word on what lists lack: it is not bent.
      containerDetail: async (id, signal) =>
        read("containerDetail", signal, () => inner.containerDetail(id, signal), { about: id }),
      sandboxDetail: async (id, signal) =>
        read("sandboxDetail", signal, () => inner.sandboxDetail(id, signal), { about: id }),
      sandboxLogDirectory: async (id, signal) =>
        read("sandboxDetail", signal, () => inner.sandboxLogDirectory(id, signal), {
          about: `logs of ${id}`,
        }),
      sandboxImage: async (id, signal) =>
        read("sandboxDetail", signal, () => inner.sandboxImage(id, signal), {
          about: `image of ${id}`,
        }),
      imageStatus: async (reference, signal) =>
        read("imageStatus", signal, () => inner.imageStatus(reference, signal), {
          about: reference,
          bent: (image, fate) => (fate === "empty" ? null : image),
        }),
      writableLayers: async (signal) => inner.writableLayers(signal),
      imageOrigin: async (id, signal) =>
        read("imageStatus", signal, () => inner.imageOrigin(id, signal), { about: `origin ${id}` }),
      reportedFilesystems: async (signal) =>
        read("reportedFilesystems", signal, () => inner.reportedFilesystems(signal), {}),
    };
  }

  writer(inner: RuntimeWriter, onRemoval: (id: ImageId) => void): RuntimeWriter {
    return {
      removeImage: async (id) => {
        onRemoval(id);
        return this.#write("removeImage", undefined, () => inner.removeImage(id));
      },
      stopContainer: async (id, grace, signal) =>
        this.#write("stopContainer", signal, () => inner.stopContainer(id, grace, signal)),
      removeContainer: async (id) =>
        this.#write("removeContainer", undefined, () => inner.removeContainer(id)),
      stopSandbox: async (id, signal) =>
        this.#write("stopSandbox", signal, () => inner.stopSandbox(id, signal)),
      removeSandbox: async (id) =>
        this.#write("removeSandbox", undefined, () => inner.removeSandbox(id)),
      execSync: async (id, command, signal) => inner.execSync(id, command, signal),
    };
  }

  #fateOf(method: Method): Fate | null {
    const planned = this.#spell.get(method);
    if (planned === undefined || this.#random.next() * 100 >= planned.percent) return null;
    this.done.set(planned.fate, (this.done.get(planned.fate) ?? 0) + 1);
    return planned.fate;
  }

  async #read<Answer>(
    method: (typeof READS)[number],
    signal: AbortSignal,
    ask: () => Promise<Answer>,
    {
      about = "",
      bent = (answer) => answer,
    }: { about?: string; bent?: (answer: Answer, fate: Fate) => Answer },
  ): Promise<Answer> {
    const fate = this.#fateOf(method);
    const key = `${method} ${about}`;
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
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of the same method about the same thing
        return this.#last.has(key)
          ? (this.#last.get(key) as Answer)
          : this.#remembered(key, answer);
      }
      case "part":
      case "empty":
      case "shuffled":
      case "extreme":
        return bent(await ask(), fate);
      default:
        return assertNever(fate);
    }
  }

  /** What fails may have been done, and what succeeds may not. */
  async #write(
    method: (typeof WRITES)[number],
    signal: AbortSignal | undefined,
    act: () => Promise<void>,
  ): Promise<void> {
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

  #remembered<Answer>(key: string, answer: Answer): Answer {
    this.#last.set(key, answer);
    return answer;
  }

  readonly #images = (images: readonly Image[], fate: Fate): readonly Image[] => {
    const size = this.#random.pick([0n, 1n, UINT64_MAX]);
    if (fate === "extreme") return images.map((image) => ({ ...image, sizeBytes: size }));
    const list = this.#listed(images, fate);
    return fate === "shuffled" ? [...list, ...list.slice(0, list.length / 2)] : list;
  };

  readonly #dated = <Item extends Container | Sandbox>(
    items: readonly Item[],
    fate: Fate,
  ): readonly Item[] => {
    const createdAt = instant(this.#random.pick([0n, INT64_MAX, -INT64_MAX - 1n]));
    if (fate === "extreme") return items.map((item) => ({ ...item, createdAt }));
    return this.#listed(items, fate);
  };

  #listed<Item>(items: readonly Item[], fate: Fate): readonly Item[] {
    if (fate === "empty") return [];
    if (fate === "part") return items.filter(() => this.#random.chance(0.6));
    return fate === "shuffled" ? items.toReversed() : items;
  }
}

const READS = [
  "info",
  "listImages",
  "listContainers",
  "listSandboxes",
  "containerDetail",
  "sandboxDetail",
  "imageStatus",
  "reportedFilesystems",
] as const;
const WRITES = [
  "removeImage",
  "stopContainer",
  "removeContainer",
  "stopSandbox",
  "removeSandbox",
] as const;
const METHODS = [...READS, ...WRITES];
type Method = (typeof READS)[number] | (typeof WRITES)[number];

const unanswered = (method: string, signal: AbortSignal | undefined): RuntimeError =>
  signal?.aborted === true
    ? new RuntimeError("cancelled", `${method} was given up`)
    : new RuntimeError("deadline", `${method} was not answered in time`);
