/** Which logs the listed containers and sandboxes write to, by their own status: asked once each, because it never changes. */

import { RuntimeError } from "../model/errors.ts";
import type { ContainerId, PodUid, SandboxId } from "../model/ids.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
import { mapBounded } from "../observe/concurrency.ts";
import type { RuntimeReader } from "../observe/ports.ts";
import { type Listed, ownership } from "../policy/ownership.ts";
import { isUnanswered } from "./stall.ts";

/** Statuses under way at once. */
const CONCURRENCY = 16;
/** Statuses that are not answered in time before the rest counts as unknown. */
const UNANSWERED_MAX = 2;

/** A container or a sandbox with what it writes to. */
export interface LogUser {
  readonly id: ContainerId | SandboxId;
  /** `container ID` */
  readonly name: string;
  readonly use:
    | { readonly kind: "path"; readonly path: string }
    /** Its status could not be read, and Kubernetes made it: its logs lie in its own pod's directory. */
    | { readonly kind: "pod"; readonly uid: PodUid }
    /** Its status could not be read, and it may write anywhere. */
    | { readonly kind: "anywhere" };
}

export class LogUsers {
  readonly #runtime: Pick<RuntimeReader, "containerDetail" | "sandboxLogDirectory">;
  /** "": none. */
  readonly #paths = new Map<ContainerId | SandboxId, string>();

  constructor(runtime: Pick<RuntimeReader, "containerDetail" | "sandboxLogDirectory">) {
    this.#runtime = runtime;
  }

  async ofContainers(listed: Listed, signal: AbortSignal): Promise<readonly LogUser[]> {
    const owners = ownership(listed, "none");
    const entries = listed.containers.map((container) => ({
      ...named("container", container),
      foreign: owners.ofContainer(container).foreign,
      read: () => this.#pathOf(container, signal),
    }));
    return this.#users(entries);
  }

  /** Of sandboxes whose runtime says so. */
  async ofSandboxes(listed: Listed, signal: AbortSignal): Promise<readonly LogUser[]> {
    const owners = ownership(listed, "none");
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

  /** Forgets what is no longer listed. */
  forget(listed: Listed): void {
    const ids = new Set<string>([...listed.containers, ...listed.sandboxes].map(({ id }) => id));
    for (const id of this.#paths.keys()) if (!ids.has(id)) this.#paths.delete(id);
  }

  async #pathOf({ id }: Container, signal: AbortSignal): Promise<string | null> {
    const detail = await this.#runtime.containerDetail(id, signal);
    if (detail === null) return null;
    if (detail.id !== id) throw new Error(`the runtime answered for container ${detail.id}`);
    return detail.logPath;
  }

  async #users(entries: readonly Entry[]): Promise<readonly LogUser[]> {
    // Where the runtime hangs, those of which nothing else can be assumed were asked.
    const toAsk = entries
      .filter(({ id }) => !this.#paths.has(id))
      .toSorted((one, other) => Number(other.foreign) - Number(one.foreign));
    const gone = new Set<string>();
    let unanswered = 0;
    await mapBounded(toAsk, CONCURRENCY, async ({ id, read }) => {
      if (unanswered >= UNANSWERED_MAX) return;
      try {
        const path = await read();
        if (path === null) gone.add(id);
        else this.#paths.set(id, path);
      } catch (thrown) {
        if (thrown instanceof RuntimeError && isUnanswered(thrown.kind)) unanswered += 1;
      }
    });
    return entries.flatMap(({ id, name, uid, foreign }): readonly LogUser[] => {
      const path = this.#paths.get(id);
      if (path === "" || gone.has(id)) return [];
      if (path !== undefined) return [{ id, name, use: { kind: "path", path } }];
      return [{ id, name, use: foreign ? { kind: "anywhere" } : { kind: "pod", uid } }];
    });
  }
}

interface Entry {
  readonly id: ContainerId | SandboxId;
  readonly name: string;
  readonly uid: PodUid;
  readonly foreign: boolean;
  /** "": it writes no log; `null`: it is gone. */
  readonly read: () => Promise<string | null>;
}

const named = (
  kind: "container" | "sandbox",
  { id, podUid }: Container | Sandbox,
): Pick<Entry, "id" | "name" | "uid"> => ({ id, name: `${kind} ${id}`, uid: podUid });
