/** The dependencies of removing containers, sandboxes and logs. */

import type { ContainerItem, LogItem, SandboxItem } from "../../model/outcome.ts";
import type { ContainerPlan } from "../../model/plan.ts";
import type {
  HookCaller,
  LogRemover,
  RuntimeReader,
  RuntimeWriter,
  Timer,
} from "../../model/ports.ts";
import type { Duration } from "../../model/time.ts";
import type { Listed } from "../../policy/container/ownership.ts";
import type { Backoff } from "../backoff.ts";
import type { LogUsers } from "./log-users.ts";

export interface ContainerPorts {
  readonly runtime: Pick<
    RuntimeReader,
    "listContainers" | "listSandboxes" | "containerDetail" | "sandboxDetail"
  >;
  readonly writer: Omit<RuntimeWriter, "removeImage">;
  /** `null`: the node has no log directory, so no log is touched. */
  readonly logs: LogRemover | null;
  /** State that lasts from pass to pass within a process. */
  readonly logUsers: LogUsers;
  readonly backoff: Backoff;
  readonly hooks: HookCaller;
  readonly timer: Timer;
  /** Available bytes of the filesystem that holds the containers; `null`: not measured. */
  readonly measureAvailable: (() => Promise<bigint>) | null;
}

export interface ContainerOptions {
  readonly signal: AbortSignal;
  /** Whether a hold has begun, which also stops the running pass. */
  readonly held: () => boolean;
  /** The same decision on current lists; everything else is as at the start of the pass. */
  readonly decideAgain: (lists: Listed) => ContainerPlan;
  /** Containers, sandboxes and log directories together; `null`: no limit. */
  readonly maximumRemovals: number | null;
  readonly removalInterval: Duration;
  /** The longest grace period of a container that has to be stopped. */
  readonly stopGraceMax: Duration;
  /** Sequentially and in the order of the plan, as in the kubelet. */
  readonly inOrder: boolean;
  /** When the plan's lists were requested, by the monotonic clock. */
  readonly listedNs: bigint;
  /** Called with each item as soon as it is done. */
  readonly done?: (item: ContainerItem | SandboxItem | LogItem) => void;
}
