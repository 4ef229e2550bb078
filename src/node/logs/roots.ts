// The two log directories, resolved once: they stay what they were then, and no link below them is followed.

import { realpath } from "node:fs/promises";
import { basename, dirname, normalize, resolve } from "node:path";

import { HostError } from "../../model/errors.ts";
import { Directory } from "../files/directory.ts";
import { codeOf, reasonOf } from "../files/errno.ts";

export interface LogPaths {
  readonly podLogsDir: string;
  /** `--container-logs-dir`: links to logs, in the kubelet's old layout. */
  readonly containerLogsDir: string;
}

export interface LogRoots {
  readonly podLogs: LogRoot;
  readonly containerLogs: LogRoot;
}

export const rootsOf = ({ podLogsDir, containerLogsDir }: LogPaths): LogRoots => ({
  podLogs: new LogRoot(podLogsDir),
  containerLogs: new LogRoot(containerLogsDir),
});

export const logRootAdvice =
  "make it a readable directory, or set --pod-logs-dir or --container-logs-dir";

const NOTHING_THERE = ["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ERR_INVALID_ARG_VALUE"];

export class LogRoot {
  /** As given, which is how the runtime spells its paths. */
  readonly given: string;
  #resolved: string | null = null;

  constructor(path: string) {
    this.given = resolve(path);
  }

  /** `null` while it does not exist. */
  async open(): Promise<Directory | null> {
    try {
      this.#resolved ??= await realpath(this.given);
      return await Directory.open(this.#resolved);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return null;
      throw new HostError(
        "read",
        `cannot open the log directory ${this.given}: ${reasonOf(error)}; ${logRootAdvice}`,
        {
          cause: error,
        },
      );
    }
  }

  /**
   * Where a path leads below this directory: by its text, and by the links on its way. Both count, because a link may
   * change at any time. Throws `HostError` if that cannot be determined.
   */
  async placesOf(path: string): Promise<readonly (readonly string[])[]> {
    if (!path.startsWith("/")) return [];
    this.#resolved ??= await this.#realPath(this.given);
    const directory = await this.#realPath(dirname(path));
    const file = directory === null ? null : await this.#realPath(path);
    const named = directory === null ? null : `${directory}/${basename(path)}`;
    return [normalize(path), named, file].flatMap((each) => {
      const parts = each === null ? null : this.below(each);
      return parts === null ? [] : [parts];
    });
  }

  /** `null` if nothing is there, or can be: the name is too long, or has a zero byte. */
  async #realPath(path: string): Promise<string | null> {
    try {
      return await realpath(path);
    } catch (error) {
      if (NOTHING_THERE.includes(codeOf(error))) return null;
      throw new HostError("read", `cannot resolve the log path ${path}: ${reasonOf(error)}`, {
        cause: error,
      });
    }
  }

  /** The components of a path below this directory, however it is spelled; `null` for any other path. */
  below(path: string): readonly string[] | null {
    for (const root of [this.given, this.#resolved]) {
      if (root === null || !path.startsWith(`${root}/`)) continue;
      const parts = path.slice(root.length + 1).split("/");
      const plain = parts.every((part) => part !== "" && part !== "." && part !== "..");
      return plain && !path.includes("\0") ? parts : null;
    }
    return null;
  }
}
