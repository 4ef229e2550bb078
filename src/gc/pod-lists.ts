/**
 * Lists of containers and sandboxes that may lack only what no longer exists. A runtime may return an empty or
 * shortened list without an error, which makes live pods look deleted and used images unused.
 */

import { RuntimeError } from "../model/errors.ts";
import type { ContainerId, SandboxId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Sandbox } from "../model/snapshot.ts";
import { mapBounded } from "../model/values.ts";
import type { Listed } from "../policy/container/pods.ts";
import { CALLS_AT_ONCE } from "./calls.ts";

export type ListedRuntime = Pick<
  RuntimeReader,
  "listContainers" | "listSandboxes" | "containerDetail" | "sandboxDetail"
>;

/** The lists of one pass or one observation: what one of its parts has seen, the next one expects. */
export class PodLists {
  readonly #runtime: ListedRuntime;
  readonly #containers = new Set<ContainerId>();
  readonly #sandboxes = new Set<SandboxId>();

  constructor(runtime: ListedRuntime) {
    this.#runtime = runtime;
  }

  /** From now on a list may lack what is in the ledger only if it no longer exists. */
  expect({ containers, sandboxes }: Pick<Ledger, "containers" | "sandboxes">): void {
    for (const id of containers.keys()) this.#containers.add(id);
    for (const id of sandboxes) this.#sandboxes.add(id);
  }

  /**
   * Rejects if the runtime still has what a list lacks, or does not answer for it. Sequential: on a large node the
   * responses take more memory than anything else, and a runtime answers them no faster in parallel. Containers come
   * last, because their freshness matters most.
   */
  async read(signal: AbortSignal): Promise<Listed> {
    const sandboxes = await this.#listSandboxes(signal);
    const listed = await this.#runtime.listContainers(signal);
    const containers = await complete(listed, {
      what: "containers",
      expected: this.#containers,
      detail: (id) => this.#runtime.containerDetail(id, signal),
    });
    const lacking = sandboxesLacking({ containers, sandboxes });
    if (lacking.length === 0) return { containers, sandboxes };
    // A pod may have started between the two lists.
    for (const id of lacking) this.#sandboxes.add(id);
    return { containers, sandboxes: await this.#listSandboxes(signal) };
  }

  async #listSandboxes(signal: AbortSignal): Promise<readonly Sandbox[]> {
    const listed = await this.#runtime.listSandboxes(signal);
    return complete(listed, {
      what: "sandboxes",
      expected: this.#sandboxes,
      detail: (id) => this.#runtime.sandboxDetail(id, signal),
    });
  }

  /** Its removal was answered, so a list may lack it. */
  containerRemoved(id: ContainerId): void {
    this.#containers.delete(id);
  }

  sandboxRemoved(id: SandboxId): void {
    this.#sandboxes.delete(id);
  }
}

/** The sandboxes that containers name and the list lacks. */
function sandboxesLacking({ containers, sandboxes }: Listed): readonly SandboxId[] {
  const listed = new Set<string>(sandboxes.map(({ id }) => id));
  const named = containers.flatMap(({ sandboxId }) =>
    sandboxId === "" || listed.has(sandboxId) ? [] : [sandboxId],
  );
  return [...new Set(named)];
}

interface Checking<Id> {
  readonly what: "containers" | "sandboxes";
  readonly expected: Set<Id>;
  readonly detail: (id: Id) => Promise<unknown>;
}

/** The list, if all that is expected and that it lacks no longer exists; the next one is expected to have the same. */
async function complete<Item extends { readonly id: string }>(
  listed: readonly Item[],
  { what, expected, detail }: Checking<Item["id"]>,
): Promise<readonly Item[]> {
  const ids = new Set(listed.map(({ id }) => id));
  await mapBounded([...expected.difference(ids)], CALLS_AT_ONCE, async (id) => {
    if ((await detail(id)) !== null)
      throw new RuntimeError(
        "failed",
        `the runtime's list of ${what} is incomplete: it omits ${id}, which still exists; crigc removes nothing on such a list, and the next pass tries again`,
      );
    expected.delete(id);
  });
  for (const id of ids) expected.add(id);
  return listed;
}
