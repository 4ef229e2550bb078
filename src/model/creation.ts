/** Containers that the kubelet is creating, and when they were looked for. */

import type { PodUid, SandboxId } from "./ids.ts";
import type { Instant } from "./time.ts";

/** A container that the kubelet is creating, by the mark that it makes just before it calls the runtime. */
export interface ContainerCreation {
  readonly podUid: PodUid;
  readonly sandboxId: SandboxId;
  /** "": the pod's directory cannot be read, and its ready sandbox has no container. */
  readonly name: string;
  /** The time of the mark; of the sandbox if `name` is "". */
  readonly markedAt: Instant;
}

/** The kubelet's directory of a container, which holds a file. */
export interface ContainerMark {
  readonly podUid: PodUid;
  readonly name: string;
  /** Its last change: the kubelet makes a file in it just before it creates each instance. */
  readonly at: Instant;
}

export interface MarkReading {
  readonly marks: readonly ContainerMark[];
  /** Pods whose marks cannot be read. */
  readonly unreadable: ReadonlySet<PodUid>;
}
