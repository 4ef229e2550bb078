// Faults that a test puts into single calls of the fake runtime, and hooks that run before a call.
import type { status } from "@grpc/grpc-js";

export type CodeName = keyof typeof status;

export type Fault =
  | { readonly kind: "error"; readonly code: CodeName; readonly message?: string }
  /** Never answers; the call ends when the client gives up. */
  | { readonly kind: "hang" }
  | { readonly kind: "delay"; readonly ms: number }
  /** Bytes that are no message. */
  | { readonly kind: "garbage" }
  /** Whatever the runtime would have answered, changed; of a stream, each batch. What it throws is the answer. */
  | { readonly kind: "edit"; readonly edit: (answer: object) => object }
  /** Does what was asked, then breaks the connection instead of answering. */
  | { readonly kind: "drop" };

export interface FaultScope {
  /** Calls that pass before; 0 by default. */
  readonly skip?: number;
  /** Calls that fail; every one by default. */
  readonly times?: number;
  /** Only calls whose request it accepts. */
  readonly when?: (request: object) => boolean;
}

interface Planted {
  readonly method: string;
  readonly fault: Fault;
  readonly when: (request: object) => boolean;
  skip: number;
  times: number;
}

export type Hook = (request: object) => void | Promise<void>;

/** What a test has planted, by method; "*" stands for every one. */
export class Faults {
  readonly #planted = new Set<Planted>();
  readonly #hooks = new Map<string, Set<Hook>>();

  /** Gives back what lifts the fault. */
  plant(method: string, fault: Fault, scope: FaultScope = {}): () => void {
    const { skip = 0, times = Infinity, when = () => true } = scope;
    const planted = { method, fault, when, skip, times };
    this.#planted.add(planted);
    return () => this.#planted.delete(planted);
  }

  before(method: string, hook: Hook): () => void {
    const hooks = this.#hooks.get(method) ?? new Set();
    this.#hooks.set(method, hooks.add(hook));
    return () => hooks.delete(hook);
  }

  async runHooks(method: string, request: object): Promise<void> {
    for (const name of [method, "*"])
      for (const hook of this.#hooks.get(name) ?? []) await hook(request);
  }

  take(method: string, request: object): Fault | undefined {
    for (const planted of this.#planted) {
      const matches = planted.method === method || planted.method === "*";
      if (!matches || planted.times <= 0 || !planted.when(request)) continue;
      if (planted.skip > 0) {
        planted.skip -= 1;
        continue;
      }
      planted.times -= 1;
      return planted.fault;
    }
    return undefined;
  }
}
