/** A few words for the code of a removal's reason, as the history has it. */

import type {
  ContainerRemoveReason,
  ImageTrigger,
  LogRemoveReason,
  SandboxRemoveReason,
} from "../model/reason.ts";

type RemovalCode =
  | ImageTrigger["kind"]
  | ContainerRemoveReason["kind"]
  | SandboxRemoveReason["kind"]
  | LogRemoveReason["kind"];

const TITLES: Readonly<Record<RemovalCode, string>> = {
  space: "disk over its high threshold",
  inodes: "inodes over their high threshold",
  budget: "over the store's budget",
  count: "over the maximum number of images",
  age: "unused for longer than the maximum age",
  pressure: "disk pressure",
  "all-unused": "all unused were asked for",
  "pod-gone": "its pod is gone",
  "pod-evicted": "its pod was evicted",
  "pod-terminated": "its pod has ended",
  "over-per-container-limit": "newer dead ones of its name fill the limit",
  "over-total-limit": "too many dead containers on the node",
  "foreign-dead": "dead and not made by Kubernetes",
  superseded: "its pod has a newer sandbox",
  "container-gone": "its container is gone",
  "container-exited": "its container has exited",
};

/** A word of a later version stands for itself. */
export const reasonTitle = (code: string): string =>
  Object.entries(TITLES).find(([known]) => known === code)?.[1] ?? code;
