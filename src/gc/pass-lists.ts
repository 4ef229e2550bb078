/** The runtime as one pass sees it: its lists of containers and sandboxes may lose only what no longer exists. */

import type { ContainerId, SandboxId } from "../model/ids.ts";
import type { Engine } from "./ports.ts";
import { expectGone, missing } from "./whole-lists.ts";

/** Every part of the pass lists through it, so that what one has seen, the next one expects. */
export function withPassLists(engine: Engine): Engine {
  const { runtime } = engine.observe;
  const { writer } = engine;
  const containers = new Seen<ContainerId>("containers", (id, signal) =>
    runtime.containerDetail(id, signal),
  );
  const sandboxes = new Seen<SandboxId>("sandboxes", (id, signal) =>
    runtime.sandboxDetail(id, signal),
  );
  return {
    ...engine,
    observe: {
      ...engine.observe,
      runtime: {
        ...runtime,
        listContainers: async (signal) => containers.list(runtime.listContainers(signal), signal),
        listSandboxes: async (signal) => sandboxes.list(runtime.listSandboxes(signal), signal),
      },
    },
    writer: {
      ...writer,
      removeContainer: async (id) => {
        await writer.removeContainer(id);
        containers.forget([id]);
      },
      removeSandbox: async (id) => {
        await writer.removeSandbox(id);
        sandboxes.forget([id]);
      },
    },
  };
}

type Listed<Id> = readonly { readonly id: Id }[];

/** What the pass has seen, and has not seen removed. */
class Seen<Id extends string> {
  readonly #what: "containers" | "sandboxes";
  readonly #detail: (id: Id, signal: AbortSignal) => Promise<unknown>;
  /** A list, as long as it is exactly what was seen: most passes get the same list again, and need not go through it. */
  #seen: Listed<Id> | Set<Id> = [];
  /** An older list that arrives late does not bring these back. */
  readonly #gone = new Set<Id>();

  constructor(
    what: "containers" | "sandboxes",
    detail: (id: Id, signal: AbortSignal) => Promise<unknown>,
  ) {
    this.#what = what;
    this.#detail = detail;
  }

  async list<Item extends { readonly id: Id }>(
    ask: Promise<readonly Item[]>,
    signal: AbortSignal,
  ): Promise<readonly Item[]> {
    // Two parts of a pass may list at once: what only the other has seen may be newer than this list.
    const before = this.#seen instanceof Set ? [...this.#seen] : this.#seen.map(({ id }) => id);
    const listed = await ask;
    if (listed === this.#seen) return listed;
    if (before.length > 0) {
      const seen = this.#ids();
      const vanished = missing(before, listed).filter((id) => seen.has(id));
      await expectGone(this.#what, vanished, (id) => this.#detail(id, signal));
      this.forget(vanished);
    }
    this.#add(listed);
    return listed;
  }

  forget(ids: readonly Id[]): void {
    if (ids.length === 0) return;
    const seen = this.#ids();
    for (const id of ids) {
      seen.delete(id);
      this.#gone.add(id);
    }
  }

  #add(listed: Listed<Id>): void {
    if (this.#gone.size === 0 && !(this.#seen instanceof Set) && this.#seen.length === 0) {
      this.#seen = listed;
      return;
    }
    const seen = this.#ids();
    for (const { id } of listed) if (!this.#gone.has(id)) seen.add(id);
    const isWhole = seen.size === listed.length && listed.every(({ id }) => seen.has(id));
    if (isWhole) this.#seen = listed;
  }

  #ids(): Set<Id> {
    const seen = this.#seen instanceof Set ? this.#seen : new Set(this.#seen.map(({ id }) => id));
    this.#seen = seen;
    return seen;
  }
}
