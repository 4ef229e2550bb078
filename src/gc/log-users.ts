/** Which logs the listed containers and sandboxes write to, so that no log is deleted that another one uses. */

import type { ContainerId, PodUid, SandboxId } from "../model/ids.ts";
import type { LogRemover, RuntimeReader, Timer, UsedLog } from "../model/ports.ts";
import type { Container, PodLogDirectory, Sandbox } from "../model/snapshot.ts";
import { type Listed, type Ownership, ownership } from "../policy/container/ownership.ts";
import { askAll } from "./calls.ts";

/** How long to wait before reading a status again that failed, or that the runtime does not have. */
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

/** The log paths of statuses, which are read once because they never change. Lasts as long as the process. */
export class LogUsers {
  readonly #runtime: Pick<RuntimeReader, "containerDetail" | "sandboxLogDirectory">;
  readonly #timer: Pick<Timer, "monotonicNs">;
  /** "": none. */
  readonly #paths = new Map<ContainerId | SandboxId, string>();
  /** Requests of a status that are not answered yet. */
  readonly #reading = new Map<ContainerId | SandboxId, Promise<string | null>>();
  /** When a status was requested that failed, or is gone, although a runtime may go on listing it. */
  readonly #unread = new Map<Entry["id"], { readonly atNs: bigint; readonly isGone: boolean }>();

  constructor(
    runtime: Pick<RuntimeReader, "containerDetail" | "sandboxLogDirectory">,
    timer: Pick<Timer, "monotonicNs">,
  ) {
    this.#runtime = runtime;
    this.#timer = timer;
  }

  async ofContainers(
    containers: readonly Container[],
    owners: Ownership,
    signal: AbortSignal,
  ): Promise<readonly LogUser[]> {
    const entries = containers.map((container) => ({
      ...named("container", container),
      foreign: owners.ofContainer(container).foreign,
      read: () => this.#pathOf(container, signal),
    }));
    return this.#users(entries, signal);
  }

  /** For sandboxes whose runtime reports a log directory. */
  async ofSandboxes(
    sandboxes: readonly Sandbox[],
    owners: Ownership,
    signal: AbortSignal,
  ): Promise<readonly LogUser[]> {
    const entries = sandboxes.map((sandbox) => ({
      ...named("sandbox", sandbox),
      foreign: owners.ofSandbox(sandbox).foreign,
      read: async () => {
        const directory = await this.#runtime.sandboxLogDirectory(sandbox.id, signal);
        return directory === null || directory === "" ? directory : `${directory}/-`;
      },
    }));
    return this.#users(entries, signal);
  }

  /** Whether it was gone when it was asked for last. */
  isGone(id: Entry["id"]): boolean {
    return this.#unread.get(id)?.isGone === true;
  }

  /** Drops IDs that are no longer listed. */
  retain(ids: ReadonlySet<string>): void {
    for (const known of [this.#paths, this.#unread])
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id);
  }

  async #pathOf({ id }: Container, signal: AbortSignal): Promise<string | null> {
    const detail = await this.#runtime.containerDetail(id, signal);
    if (detail === null) return null;
    if (detail.id !== id) throw new Error(`the runtime answered for container ${detail.id}`);
    return detail.logPath;
  }

  async #users(entries: readonly Entry[], signal: AbortSignal): Promise<readonly LogUser[]> {
    await this.#ask(entries, signal);
    return entries.flatMap(({ id, name, uid, foreign }): readonly LogUser[] => {
      const path = this.#paths.get(id);
      if (path === "" || this.isGone(id)) return [];
      const podUid = foreign ? "" : uid;
      if (path !== undefined) return [{ id, name, podUid, use: { kind: "path", path } }];
      return [{ id, name, podUid, use: { kind: foreign ? "anywhere" : "pod" } }];
    });
  }

  /** A status that the signal cuts off has not failed, unless it hung. */
  async #ask(entries: readonly Entry[], signal: AbortSignal): Promise<void> {
    const nowNs = this.#timer.monotonicNs();
    const isRecent = ({ id }: Entry): boolean =>
      nowNs - (this.#unread.get(id)?.atNs ?? nowNs - RETRY_NS) < RETRY_NS;
    // First those that may log anywhere, in case the runtime hangs.
    const toAsk = entries
      .filter((entry) => !this.#paths.has(entry.id) && !isRecent(entry))
      .toSorted((one, other) => Number(other.foreign) - Number(one.foreign));
    const askedNs = new Map<string, bigint>();
    await askAll(
      toAsk,
      async ({ id, read }) => {
        askedNs.set(id, this.#timer.monotonicNs());
        const reading = this.#reading.get(id) ?? read().finally(() => this.#reading.delete(id));
        this.#reading.set(id, reading);
        const path = await reading;
        this.#unread.delete(id);
        if (path !== null) this.#paths.set(id, path);
        else this.#unread.set(id, { atNs: this.#timer.monotonicNs(), isGone: true });
      },
      ({ id }) => {
        const endNs = this.#timer.monotonicNs();
        const hung = endNs - (askedNs.get(id) ?? endNs) >= HANGING_NS;
        if (!signal.aborted || hung) this.#unread.set(id, { atNs: endNs, isGone: false });
      },
    );
  }
}

/** A status of another container is not worth a longer wait. */
const HANGING_MS = 5_000;
const HANGING_NS = BigInt(HANGING_MS) * 1_000_000n;

/** Waits until the work has ended or failed (`true`), or hangs. */
async function unlessHanging(work: Promise<unknown>, timer: Timer): Promise<boolean> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  await Promise.race([work.then(end, end), timer.sleep(HANGING_MS, ended.signal)]);
  return ended.signal.aborted;
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

/** What is derived from one set of lists. */
interface OfLists {
  readonly listed: Listed;
  readonly owners: Ownership;
  /** Containers that may log to the same directory: those of the same pod or sandbox, and those that may log anywhere. */
  readonly neighbours: (container: Container) => readonly Container[];
  /** What was gone before these lists, and yet is on them. */
  readonly gone: ReadonlySet<Container>;
  directories: Promise<Directories> | null;
}

interface Directories {
  readonly unknown: readonly LogUser[];
  /** By entry of the log directory. */
  readonly byEntry: ReadonlyMap<string, readonly LogUser[]>;
}

/** Which files and directories of the log directory are in use during one pass. Resolves each path once. */
export class LogUse {
  readonly #users: LogUsers;
  readonly #logs: Pick<LogRemover, "placesOf">;
  readonly #timer: Timer;
  /** IDs removed by this pass since they were listed. */
  readonly #removed: ReadonlySet<string>;
  readonly #signal: AbortSignal;
  /** By path. */
  readonly #places = new Map<string, readonly string[]>();
  #ofLists: OfLists | null = null;

  constructor(
    ports: {
      readonly users: LogUsers;
      readonly logs: Pick<LogRemover, "placesOf">;
      readonly timer: Timer;
    },
    removed: ReadonlySet<string>,
    signal: AbortSignal,
  ) {
    this.#users = ports.users;
    this.#logs = ports.logs;
    this.#timer = ports.timer;
    this.#removed = removed;
    this.#signal = signal;
  }

  /** Names of files in this container's log directory that others write to. Throws if the log of one is unknown. */
  async namesBeside(
    container: Container,
    path: string,
    listed: Listed,
  ): Promise<readonly string[]> {
    const { owners } = this.#derived(listed);
    const others = this.#beside(container, listed);
    const users = await this.#users.ofContainers(others, owners, this.#signal);
    const paths = users.map(({ use, name }) => {
      if (use.kind === "path") return use.path;
      throw new Error(`its log is kept, because the status of ${name} could not be read`);
    });
    const [own = [], ...places] = await this.#placesOf(
      [path, ...paths].map((each) => ({ path: each, podUid: "" })),
    );
    const directories = new Set(own.map(directoryOf));
    const beside = places.flat().filter((place) => directories.has(directoryOf(place)));
    return [...new Set(beside.map((place) => place.slice(place.lastIndexOf("/") + 1)))];
  }

  /**
   * Reads what `namesBeside` needs, unless that hangs. After the removal of the container a stop of the pass would cut the
   * statuses off, and its log would stay for good. A foreign container has none here. Returns whether all are as listed.
   */
  async readBeside(container: Container, listed: Listed): Promise<boolean> {
    if (container.podUid === "") return true;
    const { owners, gone } = this.#derived(listed);
    const others = this.#beside(container, listed);
    const reading = this.#users.ofContainers(others, owners, this.#signal);
    const hasEnded = await unlessHanging(reading, this.#timer);
    return !hasEnded || others.every((one) => gone.has(one) || !this.#users.isGone(one.id));
  }

  /** The containers that may log to this container's directory: those of its pod, and foreign ones. */
  #beside(container: Container, listed: Listed): readonly Container[] {
    return this.#derived(listed)
      .neighbours(container)
      .filter(({ id }) => id !== container.id && !this.#removed.has(id));
  }

  /** What uses the directory; `null` if nothing does. */
  async userOf({ entry, uid }: PodLogDirectory, listed: Listed): Promise<string | null> {
    const derived = this.#derived(listed);
    derived.directories ??= this.#directoriesOf(derived);
    const { unknown, byEntry } = await derived.directories;
    const isThere = ({ id }: LogUser): boolean => !this.#removed.has(id);
    const doubt = unknown.find(
      (user) => isThere(user) && (user.use.kind !== "pod" || user.podUid === uid),
    );
    if (doubt !== undefined) return `the status of ${doubt.name} could not be read`;
    const user = byEntry.get(entry)?.find(isThere);
    return user === undefined ? null : `${user.name} logs to it`;
  }

  #derived(listed: Listed): OfLists {
    if (this.#ofLists?.listed !== listed) {
      const owners = ownership(listed, "none");
      const neighbours = neighboursIn(listed, owners);
      const gone = new Set(listed.containers.filter(({ id }) => this.#users.isGone(id)));
      this.#ofLists = { listed, owners, neighbours, gone, directories: null };
    }
    return this.#ofLists;
  }

  async #directoriesOf({ listed, owners }: OfLists): Promise<Directories> {
    const users = [
      ...(await this.#users.ofContainers(listed.containers, owners, this.#signal)),
      ...(await this.#users.ofSandboxes(listed.sandboxes, owners, this.#signal)),
    ];
    const logging = users.flatMap((user) =>
      user.use.kind === "path" ? [{ ...user, path: user.use.path }] : [],
    );
    const places = await this.#placesOf(logging);
    const byEntry = new Map<string, LogUser[]>();
    for (const [index, user] of logging.entries()) {
      for (const place of places[index] ?? []) {
        const entry = place.split("/", 1)[0] ?? "";
        const its = byEntry.get(entry);
        if (its === undefined) byEntry.set(entry, [user]);
        else its.push(user);
      }
    }
    return { unknown: users.filter(({ use }) => use.kind !== "path"), byEntry };
  }

  async #placesOf(logs: readonly UsedLog[]): Promise<readonly (readonly string[])[]> {
    const unresolved = logs.filter(({ path }) => !this.#places.has(path));
    const places = await this.#logs.placesOf(unresolved);
    for (const [index, { path }] of unresolved.entries())
      this.#places.set(path, places[index] ?? []);
    return logs.map(({ path }) => this.#places.get(path) ?? []);
  }
}

function neighboursIn({ containers }: Listed, owners: Ownership): OfLists["neighbours"] {
  const byPod = Map.groupBy(containers, ({ podUid }) => podUid);
  const bySandbox = Map.groupBy(containers, ({ sandboxId }) => sandboxId);
  const foreign = containers.filter((container) => owners.ofContainer(container).foreign);
  return ({ podUid, sandboxId }) => [
    ...new Set([...(byPod.get(podUid) ?? []), ...(bySandbox.get(sandboxId) ?? []), ...foreign]),
  ];
}

const directoryOf = (place: string): string => place.slice(0, Math.max(0, place.lastIndexOf("/")));
