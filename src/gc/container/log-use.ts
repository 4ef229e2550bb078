/** Which files and directories of the log directory are in use during one pass. Resolves each path once. */

import type { LogRemover, UsedLog } from "../../model/ports.ts";
import type { Container, PodLogDirectory } from "../../model/snapshot.ts";
import { type Listed, ownership } from "../../policy/container/ownership.ts";
import type { LogUser, LogUsers } from "./log-users.ts";

export class LogUse {
  readonly #users: LogUsers;
  readonly #logs: Pick<LogRemover, "placesOf">;
  /** IDs removed by this pass since they were listed. */
  readonly #removed: ReadonlySet<string>;
  readonly #signal: AbortSignal;
  /** By path. */
  readonly #places = new Map<string, readonly string[]>();
  #near: { readonly listed: Listed; readonly neighbours: Neighbours } | null = null;
  #directories: { readonly listed: Listed; readonly index: Promise<Index> } | null = null;

  constructor(
    ports: { readonly users: LogUsers; readonly logs: Pick<LogRemover, "placesOf"> },
    removed: ReadonlySet<string>,
    signal: AbortSignal,
  ) {
    this.#users = ports.users;
    this.#logs = ports.logs;
    this.#removed = removed;
    this.#signal = signal;
  }

  /**
   * Names of files in this container's log directory that other containers write to: those of its pod, and foreign
   * ones. Throws if the log of one is unknown.
   */
  async namesBeside(
    container: Container,
    path: string,
    listed: Listed,
  ): Promise<readonly string[]> {
    if (this.#near?.listed !== listed) this.#near = { listed, neighbours: neighboursIn(listed) };
    const others = this.#near
      .neighbours(container)
      .filter(({ id }) => id !== container.id && !this.#removed.has(id));
    const users = await this.#users.ofContainers(others, listed, this.#signal);
    const doubt = users.find(({ use }) => use.kind !== "path");
    if (doubt !== undefined)
      throw new Error(`its log is kept, because the status of ${doubt.name} could not be read`);
    const [own = [], ...places] = await this.#placesOf(
      [path, ...users.flatMap(({ use }) => (use.kind === "path" ? [use.path] : []))].map(
        (each) => ({ path: each, podUid: "" }),
      ),
    );
    const directories = new Set(own.map(directoryOf));
    const beside = places.flat().filter((place) => directories.has(directoryOf(place)));
    return [...new Set(beside.map((place) => place.slice(place.lastIndexOf("/") + 1)))];
  }

  /** What uses the directory; `null` if nothing does. */
  async userOf({ entry, uid }: PodLogDirectory, listed: Listed): Promise<string | null> {
    if (this.#directories?.listed !== listed)
      this.#directories = { listed, index: this.#indexOf(listed) };
    const { unknown, byEntry } = await this.#directories.index;
    const isThere = ({ id }: LogUser): boolean => !this.#removed.has(id);
    const doubt = unknown.find(
      (user) => isThere(user) && (user.use.kind !== "pod" || user.podUid === uid),
    );
    if (doubt !== undefined) return `the status of ${doubt.name} could not be read`;
    const user = byEntry.get(entry)?.find(isThere);
    return user === undefined ? null : `${user.name} logs to it`;
  }

  async #indexOf(listed: Listed): Promise<Index> {
    const users = [
      ...(await this.#users.ofContainers(listed.containers, listed, this.#signal)),
      ...(await this.#users.ofSandboxes(listed, this.#signal)),
    ];
    const logging = users.flatMap((user) =>
      user.use.kind === "path" ? [{ ...user, path: user.use.path }] : [],
    );
    const places = await this.#placesOf(logging);
    const byEntry = new Map<string, LogUser[]>();
    for (const [index, user] of logging.entries()) {
      for (const place of places[index] ?? []) {
        const entry = place.split("/", 1)[0] ?? "";
        const others = byEntry.get(entry);
        if (others === undefined) byEntry.set(entry, [user]);
        else others.push(user);
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

interface Index {
  readonly unknown: readonly LogUser[];
  /** By entry of the log directory. */
  readonly byEntry: ReadonlyMap<string, readonly LogUser[]>;
}

/** Containers that may log to the same directory: those of the same pod or sandbox, and those that may log anywhere. */
type Neighbours = (container: Container) => readonly Container[];

function neighboursIn(listed: Listed): Neighbours {
  const { containers } = listed;
  const owners = ownership(listed, "none");
  const byPod = Map.groupBy(containers, ({ podUid }) => podUid);
  const bySandbox = Map.groupBy(containers, ({ sandboxId }) => sandboxId);
  const foreign = containers.filter((container) => owners.ofContainer(container).foreign);
  return ({ podUid, sandboxId }) => [
    ...new Set([...(byPod.get(podUid) ?? []), ...(bySandbox.get(sandboxId) ?? []), ...foreign]),
  ];
}

const directoryOf = (place: string): string => place.slice(0, Math.max(0, place.lastIndexOf("/")));
