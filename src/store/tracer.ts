// Sends what each detection saw to the trace in the state file, and of what the file has already only that it is the same.

import type { ImageId } from "../model/ids.ts";
import type { Image } from "../model/snapshot.ts";
import { type Instant, instantToMs, toMs } from "../model/time.ts";
import type { TracedNode, TraceSeen } from "../model/trace.ts";
import type { LedgerAnswer } from "./state-request.ts";
import type { TraceRequest } from "./trace-rows.ts";

export interface TracerPorts {
  readonly ask: (request: TraceRequest) => Promise<LedgerAnswer>;
  readonly observedMs: () => number;
  /** Told once when writing fails, until it succeeds again. */
  readonly failed: (message: string) => void;
}

/** What the file knows of an image. */
interface KnownImage {
  readonly image: Image;
  readonly hasChain: boolean;
}

/** Images of one request: each is a line between processes. */
const IMAGES_AT_ONCE = 256;

/** In a detection period: passes under pressure come every half second. */
const OFTEN = 10n;

/** Nothing here throws or waits; a detection that comes while an earlier one is being written is left out. */
export class Tracer {
  readonly #ports: TracerPorts;
  #known = new Map<ImageId, KnownImage>();
  /** What the file has; `null`: unknown. */
  #written: TracedNode | null = null;
  #isWriting = false;
  #at: Instant | null = null;
  #hasFailed = false;

  constructor(ports: TracerPorts) {
    this.#ports = ports;
  }

  seen(seen: TraceSeen): void {
    const { at, precision } = seen;
    const before = this.#at ?? 0n;
    const sinceNs = at > before ? at - before : before - at;
    if (this.#isWriting || sinceNs * OFTEN < precision) return;
    this.#isWriting = true;
    this.#at = at;
    void this.#write(seen).finally(() => (this.#isWriting = false));
  }

  async #write(seen: TraceSeen): Promise<void> {
    const wasKnown = this.#written !== null;
    let error = await this.#send(seen);
    // The file is another one, or its process: it gets everything.
    if (error !== null && wasKnown) error = await this.#send(seen);
    if (error !== null && !this.#hasFailed) this.#ports.failed(error);
    this.#hasFailed = error !== null;
  }

  /** Why it failed; `null`: it is written. */
  async #send(seen: TraceSeen): Promise<string | null> {
    const { node, isComplete } = seen;
    const before = this.#written;
    const { known, news } = node === before ? { known: this.#known, news: [] } : this.#newsOf(node);
    const isSame = before !== null && isSameSet(node.keys, before.keys);
    const detection = {
      atMs: Math.max(0, instantToMs(seen.at)),
      precisionMs: toMs(seen.precision),
      watchedMs: this.#ports.observedMs(),
      keys: isSame ? null : [...node.keys],
      isComplete,
    };
    for (let at = 0, isLast = false; !isLast; at += IMAGES_AT_ONCE) {
      isLast = at + IMAGES_AT_ONCE >= news.length;
      const images = news.slice(at, at + IMAGES_AT_ONCE);
      const request = { kind: "trace", images, detection: isLast ? detection : null } as const;
      const answer = await this.#ports.ask(request);
      if (answer.kind === "done") continue;
      [this.#written, this.#known] = [null, new Map()];
      return answer.kind === "failed" ? answer.message : "the file is a new one";
    }
    // Uses that are unknown do not end in the file either.
    this.#written = isSame || isComplete ? node : null;
    this.#known = known;
    return null;
  }

  #newsOf({ images, chainOf }: TracedNode) {
    const known = new Map<ImageId, KnownImage>();
    const news = images.flatMap((image) => {
      const { id, repoTags, repoDigests, sizeBytes } = image;
      const before = this.#known.get(id);
      const chain = before?.hasChain === true ? null : chainOf(id);
      const hasChain = before?.hasChain === true || chain !== null;
      known.set(id, { image, hasChain });
      if (before?.image === image && before.hasChain === hasChain) return [];
      const names = [...repoTags, ...repoDigests];
      return [{ image: id, names, sizeBytes: sizeBytes.toString(), chain }];
    });
    return { known, news };
  }
}

function isSameSet<T>(one: ReadonlySet<T>, other: ReadonlySet<T>): boolean {
  if (one === other) return true;
  if (one.size !== other.size) return false;
  for (const value of one) if (!other.has(value)) return false;
  return true;
}
