/** The runtime for one pass, whose lists of containers and sandboxes may lose only what has really gone. */

import type { ContainerId, SandboxId } from "../../model/ids.ts";
import { expectGoneContainers, expectGoneSandboxes, missing } from "../../observe/whole-lists.ts";
import type { Engine } from "../ports.ts";

/** Every look of the pass goes through it, whichever part of the pass looks: what one has seen, the next one expects. */
export function withPassLists(engine: Engine): Engine {
  const { runtime } = engine.observe;
  const { writer } = engine;
  const containers = new Seen<ContainerId>(async (ids, signal) =>
    expectGoneContainers(runtime, ids, signal),
  );
  const sandboxes = new Seen<SandboxId>(async (ids, signal) =>
    expectGoneSandboxes(runtime, ids, signal),
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

/** What the pass has seen, and has not seen to go. */
class Seen<Id extends string> {
  readonly #expectGone: (ids: readonly Id[], signal: AbortSignal) => Promise<void>;
  readonly #ids = new Set<Id>();
  /** An older list that comes in late does not bring them back. */
  readonly #gone = new Set<Id>();
  /** The list that names all of that and nothing else, where there is one: the same list again is not gone through. */
  #whole: readonly { readonly id: Id }[] | null = null;

  constructor(expectGone: (ids: readonly Id[], signal: AbortSignal) => Promise<void>) {
    this.#expectGone = expectGone;
  }

  async list<Item extends { readonly id: Id }>(
    ask: Promise<readonly Item[]>,
    signal: AbortSignal,
  ): Promise<readonly Item[]> {
    // Two parts of a pass may look at once: what only the other one has seen may be newer than this list.
    const before = [...this.#ids];
    const listed = await ask;
    if (listed === this.#whole) return listed;
    const vanished = missing(before, listed).filter((id) => this.#ids.has(id));
    await this.#expectGone(vanished, signal);
    this.forget(vanished);
    for (const { id } of listed) if (!this.#gone.has(id)) this.#ids.add(id);
    const isWhole = this.#ids.size === listed.length && listed.every(({ id }) => this.#ids.has(id));
    this.#whole = isWhole ? listed : null;
    return listed;
  }

  forget(ids: readonly Id[]): void {
    this.#whole = null;
    for (const id of ids) {
      this.#ids.delete(id);
      this.#gone.add(id);
    }
  }
}
