/** Which files and directories of the log directory are in use, in one pass: who logs where, with each path resolved once. */

import type { LogRemover, UsedLog } from "../model/ports.ts";
import type { Container, PodLogDirectory } from "../model/snapshot.ts";
import type { Listed } from "../policy/ownership.ts";
import type { LogUser, LogUsers } from "./log-users.ts";

export class LogUse {
  readonly #users: LogUsers;
  readonly #logs: Pick<LogRemover, "placesOf">;
  /** IDs of what this pass has removed since it was listed. */
  readonly #removed: ReadonlySet<string>;
  readonly #signal: AbortSignal;
  /** By path. */
  readonly #places = new Map<string, readonly string[]>();
  #containers: { readonly listed: Listed; readonly index: Promise<Index> } | null = null;
  #all: { readonly listed: Listed; readonly index: Promise<Index> } | null = null;

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
   * The names of files that other containers write to in the directory of this container's log. Throws where the log of one
   * that may lie there is not known.
   */
  async namesBeside(
    container: Container,
    path: string,
    listed: Listed,
  ): Promise<readonly string[]> {
    if (this.#containers?.listed !== listed)
      this.#containers = { listed, index: this.#indexOf(listed, "containers") };
    const { unknown, byDirectory, byPod } = await this.#containers.index;
    const isOther = ({ id }: LogUser): boolean => id !== container.id && !this.#removed.has(id);
    const doubt = unknown.find(
      (user) => isOther(user) && (user.use.kind !== "pod" || user.podUid === container.podUid),
    );
    if (doubt !== undefined)
      throw new Error(`its log is kept, because the status of ${doubt.name} could not be read`);
    const [own = []] = await this.#logs.placesOf([{ path, podUid: "" }]);
    const directories = new Set(own.map(directoryOf));
    const inDirectory = [...directories].flatMap((directory) => byDirectory.get(directory) ?? []);
    // A link within a pod's directory leads to it most likely.
    const siblings = (byPod.get(container.podUid) ?? []).filter(isOther);
    const linked = await this.#logs.placesOf(
      siblings.map(({ path: of }) => ({ path: of, podUid: "" })),
    );
    const places = [
      ...inDirectory.filter(({ user }) => isOther(user)).map(({ place }) => place),
      ...linked.flat().filter((place) => directories.has(directoryOf(place))),
    ];
    return [...new Set(places.map((place) => place.slice(place.lastIndexOf("/") + 1)))];
  }

  /** Who uses the directory; `null`: nobody. */
  async userOf({ entry, uid }: PodLogDirectory, listed: Listed): Promise<string | null> {
    if (this.#all?.listed !== listed) this.#all = { listed, index: this.#indexOf(listed, "all") };
    const { unknown, byEntry } = await this.#all.index;
    const isThere = ({ id }: LogUser): boolean => !this.#removed.has(id);
    const doubt = unknown.find(
      (user) => isThere(user) && (user.use.kind !== "pod" || user.podUid === uid),
    );
    if (doubt !== undefined) return `the status of ${doubt.name} could not be read`;
    const user = byEntry.get(entry)?.find(isThere);
    return user === undefined ? null : `${user.name} logs to it`;
  }

  async #indexOf(listed: Listed, of: "containers" | "all"): Promise<Index> {
    const users = [
      ...(await this.#users.ofContainers(listed, this.#signal)),
      ...(of === "all" ? await this.#users.ofSandboxes(listed, this.#signal) : []),
    ];
    const logging = users.flatMap((user) =>
      user.use.kind === "path" ? [{ ...user, path: user.use.path }] : [],
    );
    const places = await this.#placesOf(logging);
    const found = logging.flatMap((user, index) =>
      (places[index] ?? []).map((place) => ({ user, place })),
    );
    const byEntry = Map.groupBy(found, ({ place }) => place.split("/", 1)[0] ?? "");
    return {
      unknown: users.filter(({ use }) => use.kind !== "path"),
      byDirectory: Map.groupBy(found, ({ place }) => directoryOf(place)),
      byEntry: new Map([...byEntry].map(([entry, uses]) => [entry, uses.map(({ user }) => user)])),
      byPod: Map.groupBy(logging, ({ podUid }) => podUid),
    };
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
  readonly byDirectory: ReadonlyMap<
    string,
    readonly { readonly user: LogUser; readonly place: string }[]
  >;
  readonly byEntry: ReadonlyMap<string, readonly LogUser[]>;
  readonly byPod: ReadonlyMap<string, readonly (LogUser & UsedLog)[]>;
}

const directoryOf = (place: string): string => place.slice(0, Math.max(0, place.lastIndexOf("/")));
