/** The input of the decision on containers, sandboxes and logs. */
import type { ContainerLimits } from "../../model/limits.ts";
import type { Purpose } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Instant } from "../../model/time.ts";
import type { PodJudgement } from "./pods.ts";

export interface ContainerInput {
  readonly snapshot: Pick<Snapshot, "containers" | "sandboxes" | "containerEnds" | "logs">;
  readonly pods: PodJudgement;
  readonly limits: ContainerLimits;
  /** `all-unused` and `pressure` are the kubelet's reclaim: everything of terminated pods is removed. */
  readonly purpose: Purpose["kind"];
  readonly now: Instant;
  /** What blocks the whole pass: a hold, or the grace period after a boot. */
  readonly blocks: readonly ImageBlock[];
}
