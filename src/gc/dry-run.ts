/** The outcome of a plan that is not executed, and of containers if the pass was stopped before it had a plan. */

import type { ContainerOutcome, ImageOutcome } from "../model/outcome.ts";
import type { ContainerPlan, Plan } from "../model/plan.ts";
import { unjudged } from "../policy/container/containers.ts";

export const dryContainers = (plan: ContainerPlan): ContainerOutcome => ({
  ...STOPPED_CONTAINERS,
  end: "dry-run",
  errors: unjudged(plan),
});

export const STOPPED_CONTAINERS: ContainerOutcome = {
  end: "stopped",
  containers: [],
  sandboxes: [],
  logs: [],
  measuredFreedBytes: null,
  errors: [],
};

export function dryImages(plan: Plan): ImageOutcome {
  const wanted = (plan.images?.targets ?? []).flatMap((target) =>
    "wantedBytes" in target ? [target.wantedBytes] : [],
  );
  const [usage] = plan.images?.usage ?? [];
  const available = usage?.filesystem.availableBytes ?? null;
  return {
    end: "dry-run",
    items: [],
    wantedBytes: wanted[0] ?? null,
    reportedFreedBytes: 0n,
    measuredFreedBytes: 0n,
    availableBefore: available,
    availableAfter: available,
    capacityBytes: usage?.filesystem.capacityBytes ?? null,
    error: null,
    ghosts: [],
  };
}
