/** Removes the log directories of pods that are gone, and links to logs of containers that are. */

import { failureCode, messageOf } from "../model/errors.ts";
import { containerId } from "../model/ids.ts";
import { containerLogLink, isWholeContainerId } from "../model/log-names.ts";
import type { LogItem, RemovalResult } from "../model/outcome.ts";
import type { LogRemoveReason } from "../model/reason.ts";
import type { Container, DanglingLogLink, PodLogDirectory } from "../model/snapshot.ts";
import type { RuntimeReader } from "../observe/ports.ts";
import type { LogUser } from "./log-users.ts";
import type { LogRemover } from "./ports.ts";

/** Never rejects. A directory that somebody listed uses by its path stays, whichever pod its name says. */
export async function removePodLogs(
  directory: PodLogDirectory,
  reason: LogRemoveReason,
  { logs, use }: { readonly logs: LogRemover; readonly use: DirectoryUse },
): Promise<LogItem> {
  const item = { kind: "pod-logs", entry: directory.entry, reason, bytes: 0n } as const;
  try {
    const what = await use.of(directory);
    if (what !== null) return { ...item, result: { kind: "skipped", what } };
    const { bytes } = await logs.removePodLogs(directory);
    return { ...item, result: { kind: "removed" }, bytes };
  } catch (thrown) {
    return { ...item, result: failed(thrown) };
  }
}

/** Who uses which log directory, in one pass: each path is resolved once. */
export class DirectoryUse {
  readonly #logs: Pick<LogRemover, "entriesUsed">;
  readonly #users: () => Promise<readonly LogUser[]>;
  readonly #resolved = new Set<string>();
  readonly #userOfEntry = new Map<string, string>();

  constructor(logs: Pick<LogRemover, "entriesUsed">, users: () => Promise<readonly LogUser[]>) {
    this.#logs = logs;
    this.#users = users;
  }

  /** Why the directory stays; `null`: nobody uses it. Throws where that cannot be told. */
  async of({ entry, uid }: PodLogDirectory): Promise<string | null> {
    const users = await this.#users();
    const unknown = users.find(
      ({ use }) => use.kind === "anywhere" || (use.kind === "pod" && use.uid === uid),
    );
    if (unknown !== undefined) return `the status of ${unknown.name} could not be read`;
    await this.#resolve(users);
    const user = this.#userOfEntry.get(entry);
    return user === undefined ? null : `${user} logs to it`;
  }

  async #resolve(users: readonly LogUser[]): Promise<void> {
    const names = new Map<string, string>();
    for (const { name, use } of users)
      if (use.kind === "path" && !this.#resolved.has(use.path)) names.set(use.path, name);
    for (const [entry, path] of await this.#logs.entriesUsed([...names.keys()]))
      this.#userOfEntry.set(entry, names.get(path) ?? "");
    for (const path of names.keys()) this.#resolved.add(path);
  }
}

/** Why the link may go, by the runtime's word on the whole container ID; `null`: it stays. */
export async function judgeLink(
  link: DanglingLogLink,
  containers: readonly Container[],
  runtime: Pick<RuntimeReader, "containerDetail">,
): Promise<LogRemoveReason | null> {
  const id = wholeId(link, containers);
  if (id === null) return null;
  const detail = await runtime.containerDetail(id, new AbortController().signal);
  if (detail === null) return { kind: "container-gone" };
  // A runtime that resolves abbreviations may speak of another container.
  if (detail.id !== id) return null;
  // While a log is rotated, the link of a container that runs leads nowhere for a moment.
  return detail.state === "exited" ? { kind: "container-exited" } : null;
}

/** Where the name was cut, only a listed container whose own link has this name can tell the rest of the ID. */
function wholeId(link: DanglingLogLink, containers: readonly Container[]): Container["id"] | null {
  if (isWholeContainerId(link.containerId)) return containerId(link.containerId);
  const named = containers.filter((container) => containerLogLink(container) === link.entry);
  return named.length === 1 ? (named[0]?.id ?? null) : null;
}

/** Never rejects. */
export async function removeLink(
  link: DanglingLogLink,
  reason: LogRemoveReason,
  logs: LogRemover,
): Promise<LogItem> {
  const item = { kind: "log-link", entry: link.entry, reason, bytes: 0n } as const;
  try {
    const removed = await logs.removeLegacyLink(link.entry);
    return { ...item, result: removed ? { kind: "removed" } : { kind: "already-gone" } };
  } catch (thrown) {
    return { ...item, result: failed(thrown) };
  }
}

const failed = (thrown: unknown): RemovalResult => ({
  kind: "failed",
  step: "remove",
  message: messageOf(thrown),
  code: failureCode(thrown),
});
