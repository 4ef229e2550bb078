/**
 * Lists of containers and sandboxes that may lack only what no longer exists. A runtime may return an empty or
 * shortened list without an error, which makes live pods look deleted and used images unused.
 */

import { RuntimeError } from "../model/errors.ts";
import type { ContainerId, SandboxId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
import { mapBounded } from "../model/values.ts";
import { byParts } from "../policy/by-object.ts";
import type { Listed } from "../policy/container/pods.ts";
import { CALLS_AT_ONCE } from "./calls.ts";

export type ListedRuntime = Pick<
  RuntimeReader,
  "listContainers" | "listSandboxes" | "containerDetail" | "sandboxDetail"
>;

/** The lists of one pass or one observation: what one of its parts has seen, the next one expects. */
export class PodLists {
  readonly #containers: CheckedList<Container>;
  readonly #sandboxes: CheckedList<Sandbox>;

  constructor(runtime: ListedRuntime) {
    this.#containers = new CheckedList(
      "containers",
      (signal) => runtime.listContainers(signal),
      (id, signal) => runtime.containerDetail(id, signal),
    );
    this.#sandboxes = new CheckedList(
      "sandboxes",
      (signal) => runtime.listSandboxes(signal),
      (id, signal) => runtime.sandboxDetail(id, signal),
    );
  }

  /** From now on a list may lack what is in the ledger only if it no longer exists. */
  expect({ containers, sandboxes }: Pick<Ledger, "containers" | "sandboxes">): void {
    this.#containers.expect(containers.keys());
    this.#sandboxes.expect(sandboxes);
  }

  /**
   * Rejects if the runtime still has what a list lacks, or does not answer for it. Sequential: on a large node the
   * responses take more memory than anything else, and a runtime answers them no faster in parallel. Containers come
   * last, because their freshness matters most.
   */
  async read(signal: AbortSignal): Promise<Listed> {
    const sandboxes = await this.#sandboxes.read(signal);
    const containers = await this.#containers.read(signal);
    const lacking = sandboxesLacking({ containers, sandboxes });
    if (lacking.length === 0) return { containers, sandboxes };
    // A pod may have started between the two lists.
    this.#sandboxes.expect(lacking);
    return { containers, sandboxes: await this.#sandboxes.read(signal) };
  }

  /** Its removal was answered, so a list may lack it. */
  containerRemoved(id: ContainerId): void {
    this.#containers.forget(id);
  }

  sandboxRemoved(id: SandboxId): void {
    this.#sandboxes.forget(id);
  }
}

/** The sandboxes that containers name and the list lacks. */
const sandboxesLacking = byParts(({ containers, sandboxes }: Listed): readonly SandboxId[] => {
  const listed = new Set<string>(sandboxes.map(({ id }) => id));
  const named = containers.flatMap(({ sandboxId }) =>
    sandboxId === "" || listed.has(sandboxId) ? [] : [sandboxId],
  );
  return [...new Set(named)];
});

class CheckedList<Item extends { readonly id: string }> {
  readonly #what: "containers" | "sandboxes";
  readonly #list: (signal: AbortSignal) => Promise<readonly Item[]>;
  readonly #detail: (id: Item["id"], signal: AbortSignal) => Promise<unknown>;
  readonly #expected = new Set<Item["id"]>();

  constructor(
    what: "containers" | "sandboxes",
    list: (signal: AbortSignal) => Promise<readonly Item[]>,
    detail: (id: Item["id"], signal: AbortSignal) => Promise<unknown>,
  ) {
    this.#what = what;
    this.#list = list;
    this.#detail = detail;
  }

  expect(ids: Iterable<Item["id"]>): void {
    for (const id of ids) this.#expected.add(id);
  }

  forget(id: Item["id"]): void {
    this.#expected.delete(id);
  }

  async read(signal: AbortSignal): Promise<readonly Item[]> {
    const listed = await this.#list(signal);
    const ids = new Set(listed.map(({ id }) => id));
    await mapBounded([...this.#expected.difference(ids)], CALLS_AT_ONCE, async (id) => {
      if ((await this.#detail(id, signal)) !== null)
        throw new RuntimeError(
          "failed",
          `the runtime's list of ${this.#what} is incomplete: it omits ${id}, which still exists; crigc removes nothing on such a list, and the next pass tries again`,
        );
      this.#expected.delete(id);
    });
    this.expect(ids);
    return listed;
  }
}
