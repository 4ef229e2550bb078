/** Flags for disk pressure: the kubelet's eviction thresholds. */
import type { Field } from "../field.ts";

export const pressureFields = {
  evictionHard: {
    flag: "eviction-hard",
    type: { kind: "statements", of: "threshold" },
    default:
      "nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%",
    help: "thresholds for immediate reclaim",
    doc: "Signals are `nodefs`, `imagefs` and `containerfs`, each `.available` and `.inodesFree`; a value is a quantity or a percentage, and `0%` or `100%` drops the threshold. A value replaces the whole default. If a kubelet runs or is configured on the node, the default is 5 percent of the filesystem above the kubelet's own thresholds, so that crigc frees space before the kubelet evicts pods; `crigc config` shows it with the source `kubelet`. Memory and pid signals are accepted with a warning that crigc does not act on them.",
    commands: ["run"],
    kubelet: true,
  },
  evictionSoft: {
    flag: "eviction-soft",
    type: { kind: "statements", of: "threshold" },
    help: "thresholds for reclaim after a grace period",
    doc: "Each needs a grace period in `--eviction-soft-grace-period`.",
    commands: ["run"],
    kubelet: true,
  },
  evictionSoftGracePeriod: {
    flag: "eviction-soft-grace-period",
    type: { kind: "statements", of: "grace" },
    help: "grace periods of the soft thresholds",
    doc: "A grace period of 0s makes the threshold a hard one.",
    commands: ["run"],
    kubelet: true,
  },
  evictionMinimumReclaim: {
    flag: "eviction-minimum-reclaim",
    type: { kind: "statements", of: "reclaim" },
    help: "space to free beyond the threshold",
    doc: "A quantity, or a percentage of the capacity.",
    commands: ["run"],
    kubelet: true,
  },
  evictionPressureTransitionPeriod: {
    flag: "eviction-pressure-transition-period",
    type: { kind: "duration", minimum: "0s" },
    default: "5m",
    help: "time to report pressure after it has ended",
    doc: "Affects the reported condition only, not reclaim.",
    commands: ["run"],
    kubelet: true,
  },
} as const satisfies Readonly<Record<string, Field>>;
