/** What the removal of containers, sandboxes and logs is given. */

import type { ContainerItem, LogItem, SandboxItem } from "../model/outcome.ts";
import type { ContainerPlan } from "../model/plan.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
import type { Duration } from "../model/time.ts";
import type { RuntimeReader } from "../observe/ports.ts";
import type { LogUsers } from "./log-users.ts";
import type { HookCaller, LogRemover, RuntimeWriter, Timer } from "./ports.ts";

export interface ContainerPorts {
  readonly runtime: Pick<
    RuntimeReader,
    "listContainers" | "listSandboxes" | "containerDetail" | "sandboxDetail"
  >;
  readonly writer: Omit<RuntimeWriter, "removeImage">;
  /** `null`: the node has no log directory, so no log is touched. */
  readonly logs: LogRemover | null;
  readonly logUsers: LogUsers;
  readonly hooks: HookCaller;
  readonly timer: Timer;
  /** Available bytes of the filesystem that holds the containers; `null`: not measured. */
  readonly measureAvailable: (() => Promise<bigint>) | null;
}

export interface FreshLists {
  readonly containers: readonly Container[];
  readonly sandboxes: readonly Sandbox[];
}

export interface ContainerOptions {
  readonly signal: AbortSignal;
  /** The same decision on the lists as they are now; everything else is that of the pass. */
  readonly decideAgain: (lists: FreshLists) => ContainerPlan;
  /** Containers, sandboxes and log directories together; `null`: no limit. */
  readonly maximumRemovals: number | null;
  readonly removalInterval: Duration;
  /** Told of each item as soon as it is done. */
  readonly done?: (item: ContainerItem | SandboxItem | LogItem) => void;
}
