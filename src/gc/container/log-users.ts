/** Which logs the listed containers and sandboxes write to, by their status, which is read once because it never changes. */

import { wasUnanswered } from "../../model/errors.ts";
import type { ContainerId, PodUid, SandboxId } from "../../model/ids.ts";
import type { RuntimeReader, Timer } from "../../model/ports.ts";
import type { Container, Sandbox } from "../../model/snapshot.ts";
import { type Listed, type Ownership, ownership } from "../../policy/container/ownership.ts";
import { mapBounded } from "../concurrency.ts";

const CONCURRENCY = 16;
/** After this many statuses without an answer, the rest counts as unknown. */
const UNANSWERED_MAX = 2;
/** How long to wait before reading a failed status again. */
const RETRY_NS = 60_000_000_000n;

/** A container or sandbox with the log that it writes. */
export interface LogUser {
  readonly id: ContainerId | SandboxId;
  /** `container ID` */
  readonly name: string;
  /** From its label; "" if Kubernetes did not create it, or its labels contradict its sandbox's. */
  readonly podUid: PodUid | "";
  readonly use:
    | { readonly kind: "path"; readonly path: string }
    /** Its status could not be read. Kubernetes created it, so its logs are in its own pod's directory. */
    | { readonly kind: "pod" }
    /** Its status could not be read, and it may write anywhere. */
    | { readonly kind: "anywhere" };
}

export class LogUsers {
  readonly #runtime: Pick<RuntimeReader, "containerDetail" | "sandboxLogDirectory">;
  readonly #timer: Pick<Timer, "monotonicNs">;
  /** "": none. */
  readonly #paths = new Map<ContainerId | SandboxId, string>();
  /** Since when a status is unknown although it was requested. */
  readonly #failedNs = new Map<ContainerId | SandboxId, bigint>();

  #owners: { readonly listed: Listed; readonly owners: Ownership } | null = null;

  constructor(
    runtime: Pick<RuntimeReader, "containerDetail" | "sandboxLogDirectory">,
    timer: Pick<Timer, "monotonicNs">,
  ) {
    this.#runtime = runtime;
    this.#timer = timer;
  }

  /** For some of the listed containers. */
  async ofContainers(
    containers: readonly Container[],
    listed: Listed,
    signal: AbortSignal,
  ): Promise<readonly LogUser[]> {
    const owners = this.#ownersIn(listed);
    const entries = containers.map((container) => ({
      ...named("container", container),
      foreign: owners.ofContainer(container).foreign,
      read: () => this.#pathOf(container, signal),
    }));
    return this.#users(entries);
  }

  /** For sandboxes whose runtime reports a log directory. */
  async ofSandboxes(listed: Listed, signal: AbortSignal): Promise<readonly LogUser[]> {
    const owners = this.#ownersIn(listed);
    const entries = listed.sandboxes.map((sandbox) => ({
      ...named("sandbox", sandbox),
      foreign: owners.ofSandbox(sandbox).foreign,
      read: async () => {
        const directory = await this.#runtime.sandboxLogDirectory(sandbox.id, signal);
        return directory === null || directory === "" ? directory : `${directory}/-`;
      },
    }));
    return this.#users(entries);
  }

  /** Drops IDs that are no longer listed. */
  retain(ids: ReadonlySet<string>): void {
    this.#owners = null;
    for (const known of [this.#paths, this.#failedNs])
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
  }

  /** Called for each container of one list, and computed once for it. */
  #ownersIn(listed: Listed): Ownership {
    if (this.#owners?.listed !== listed)
      this.#owners = { listed, owners: ownership(listed, "none") };
    return this.#owners.owners;
  }

  async #pathOf({ id }: Container, signal: AbortSignal): Promise<string | null> {
    const detail = await this.#runtime.containerDetail(id, signal);
    if (detail === null) return null;
    if (detail.id !== id) throw new Error(`the runtime answered for container ${detail.id}`);
    return detail.logPath;
  }

  async #users(entries: readonly Entry[]): Promise<readonly LogUser[]> {
    const gone = new Set<string>();
    await this.#ask(entries, gone);
    return entries.flatMap(({ id, name, uid, foreign }): readonly LogUser[] => {
      const path = this.#paths.get(id);
      if (path === "" || gone.has(id)) return [];
      const podUid = foreign ? "" : uid;
      if (path !== undefined) return [{ id, name, podUid, use: { kind: "path", path } }];
      return [{ id, name, podUid, use: { kind: foreign ? "anywhere" : "pod" } }];
    });
  }

  async #ask(entries: readonly Entry[], gone: Set<string>): Promise<void> {
    const nowNs = this.#timer.monotonicNs();
    const failedLately = (id: Entry["id"]): boolean => {
      const failedNs = this.#failedNs.get(id);
      return failedNs !== undefined && nowNs - failedNs < RETRY_NS;
    };
    // First those that may log anywhere, in case the runtime hangs.
    const toAsk = entries
      .filter(({ id }) => !this.#paths.has(id) && !failedLately(id))
      .toSorted((one, other) => Number(other.foreign) - Number(one.foreign));
    let unanswered = 0;
    await mapBounded(toAsk, CONCURRENCY, async ({ id, read }) => {
      try {
        if (unanswered >= UNANSWERED_MAX) throw new Error("the runtime does not answer");
        const path = await read();
        if (path === null) gone.add(id);
        else this.#paths.set(id, path);
        this.#failedNs.delete(id);
      } catch (thrown) {
        this.#failedNs.set(id, this.#timer.monotonicNs());
        if (wasUnanswered(thrown)) unanswered += 1;
      }
    });
  }
}

interface Entry {
  readonly id: ContainerId | SandboxId;
  readonly name: string;
  readonly uid: PodUid;
  readonly foreign: boolean;
  /** "": it writes no log; `null`: it no longer exists. */
  readonly read: () => Promise<string | null>;
}

const named = (
  kind: "container" | "sandbox",
  { id, podUid }: Container | Sandbox,
): Pick<Entry, "id" | "name" | "uid"> => ({ id, name: `${kind} ${id}`, uid: podUid });
