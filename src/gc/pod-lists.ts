/**
 * Lists of containers and sandboxes that may lack only what no longer exists. A runtime may return an empty or
 * shortened list without an error, which makes live pods look deleted and used images unused.
 */

import { RuntimeError } from "../model/errors.ts";
import type { ContainerId, SandboxId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { RuntimeReader } from "../model/ports.ts";
import { mapBounded } from "../model/values.ts";
import { byParts } from "../policy/by-object.ts";
import type { Listed } from "../policy/container/ownership.ts";
import { CALLS_AT_ONCE } from "./calls.ts";

export type ListedRuntime = Pick<
  RuntimeReader,
  "listContainers" | "listSandboxes" | "containerDetail" | "sandboxDetail"
>;

/** The lists of one pass or one observation: what one of its parts has seen, the next one expects. */
export class PodLists {
  readonly #containers: CheckedList<ContainerId>;
  readonly #sandboxes: CheckedList<SandboxId>;
  readonly #runtime: ListedRuntime;
  /** Containers that this pass has removed, so that they did not vanish. */
  readonly removed = new Set<ContainerId>();

  constructor(runtime: ListedRuntime) {
    this.#runtime = runtime;
    this.#containers = new CheckedList("containers", (id, signal) =>
      runtime.containerDetail(id, signal),
    );
    this.#sandboxes = new CheckedList("sandboxes", (id, signal) =>
      runtime.sandboxDetail(id, signal),
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
    const list = () => this.#sandboxes.read(() => this.#runtime.listSandboxes(signal), signal);
    const sandboxes = await list();
    const containers = await this.#containers.read(
      () => this.#runtime.listContainers(signal),
      signal,
    );
    if (sandboxesLacking({ containers, sandboxes }).length === 0) return { containers, sandboxes };
    // A pod may have started between the two lists.
    const newer = await list();
    const newerIds = new Set(newer.map(({ id }) => id));
    const all = [...newer, ...sandboxes.filter(({ id }) => !newerIds.has(id))];
    await this.#sandboxes.checkGone(sandboxesLacking({ containers, sandboxes: all }), signal);
    return { containers, sandboxes: all };
  }

  /** Its removal was answered, so a list may lack it. */
  containerRemoved(id: ContainerId): void {
    this.#containers.forget([id]);
    this.removed.add(id);
  }

  sandboxRemoved(id: SandboxId): void {
    this.#sandboxes.forget([id]);
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

class CheckedList<Id extends string> {
  readonly #what: "containers" | "sandboxes";
  readonly #detail: (id: Id, signal: AbortSignal) => Promise<unknown>;
  readonly #expected = new Set<Id>();
  /** An older list that arrives late does not bring these back. */
  readonly #gone = new Set<Id>();
  /** The last list, if it has all that is expected. */
  #complete: readonly unknown[] | null = null;

  constructor(
    what: "containers" | "sandboxes",
    detail: (id: Id, signal: AbortSignal) => Promise<unknown>,
  ) {
    this.#what = what;
    this.#detail = detail;
  }

  expect(ids: Iterable<Id>): void {
    this.#complete = null;
    for (const id of ids) if (!this.#gone.has(id)) this.#expected.add(id);
  }

  async read<Item extends { readonly id: Id }>(
    list: () => Promise<readonly Item[]>,
    signal: AbortSignal,
  ): Promise<readonly Item[]> {
    // Two parts of a pass may list at once: what only the other has seen may be newer than this list.
    const before = [...this.#expected];
    const complete = this.#complete;
    const listed = await list();
    // An unchanged list is the same array.
    if (listed === complete) return listed;
    const ids = new Set(listed.map(({ id }) => id));
    await this.checkGone(
      before.filter((id) => !ids.has(id) && this.#expected.has(id)),
      signal,
    );
    this.expect(ids);
    // Not if the other part has seen more meanwhile: the next list must have that too.
    if (this.#expected.isSubsetOf(ids)) this.#complete = listed;
    return listed;
  }

  async checkGone(ids: readonly Id[], signal: AbortSignal): Promise<void> {
    const asked = ids.filter((id) => !this.#gone.has(id));
    await mapBounded(asked, CALLS_AT_ONCE, async (id) => {
      if ((await this.#detail(id, signal)) === null) return;
      throw new RuntimeError(
        "failed",
        `the runtime's list of ${this.#what} is incomplete: it omits ${id}, which still exists; crigc removes nothing on such a list, and the next pass tries again`,
      );
    });
    this.forget(asked);
  }

  forget(ids: readonly Id[]): void {
    for (const id of ids) {
      this.#expected.delete(id);
      this.#gone.add(id);
    }
  }
}
