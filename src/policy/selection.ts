/** The images, containers, sandboxes and logs that a removal by hand is limited to. */
import type { ImageId } from "../model/ids.ts";
import type {
  ContainerPlan,
  Criterion,
  Decision,
  ImagePlan,
  Purpose,
  Selection,
} from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Watched } from "../model/time.ts";
import { type Ranked, unusedFor } from "./image/rank.ts";
import { usageOf } from "./image/usage.ts";
import { imageNames, matchPattern, parseKeepPattern } from "./keep/keep-pattern.ts";

const NOT_SELECTED = { kind: "not-selected" } as const;

export const selectionOf = (purpose: Purpose): Selection | null =>
  (purpose.kind === "all-unused" ? purpose.only : undefined) ?? null;

/**
 * The purpose of the rest of a pass once its containers were collected: the images selected at its start, because the
 * containers no longer show which images belong to a namespace.
 */
export function remainingPurpose(purpose: Purpose, plan: ImagePlan | null): Purpose {
  if (selectionOf(purpose) === null) return purpose;
  const kept = (plan?.kept ?? []).filter(({ reason }) => reason.kind !== NOT_SELECTED.kind);
  const selected = [...(plan?.candidates ?? []), ...kept];
  return { kind: "all-unused", only: selected.map(({ image }) => ({ kind: "id", id: image.id })) };
}

/** The selected images, in the order of removal. */
export function selectedImages(
  images: readonly Ranked[],
  selection: Selection,
  facts: { readonly snapshot: Snapshot; readonly watched: Watched },
): ReadonlySet<ImageId> {
  const kinds = Map.groupBy(selection, ({ kind }) => kind);
  const fits = [...kinds.values()].map((criteria) => {
    const tests = criteria.map((criterion) => testOf(criterion, facts));
    return (subject: Ranked): boolean => tests.some((test) => test(subject));
  });
  // Without a criterion nothing is selected, rather than everything.
  const chosen = images.filter((subject) => fits.length > 0 && fits.every((fit) => fit(subject)));
  return new Set(chosen.map(({ image }) => image.id));
}

function testOf(
  criterion: Criterion,
  facts: { readonly snapshot: Snapshot; readonly watched: Watched },
): (subject: Ranked) => boolean {
  switch (criterion.kind) {
    case "id":
      return ({ image }) => image.id === criterion.id;
    case "reference": {
      const parsed = parseKeepPattern(criterion.pattern);
      return ({ image }) =>
        parsed.kind === "valid" && matchPattern(parsed.pattern, imageNames(image)) !== null;
    }
    case "unused-for":
      return ({ record }) => unusedFor(record, facts.watched) >= criterion.span;
    case "untagged":
      return ({ image }) => image.repoTags.every((tag) => tag === "" || tag.startsWith("<none>"));
    case "larger-than":
      return ({ image }) => image.sizeBytes > criterion.bytes;
    case "namespace": {
      const used = usedIn(criterion.name, facts.snapshot);
      return ({ image }) => used.has(image.id);
    }
  }
}

function usedIn(namespace: string, snapshot: Snapshot): ReadonlySet<ImageId> {
  const containers = snapshot.containers.filter((it) => it.podNamespace === namespace);
  return new Set(usageOf({ ...snapshot, containers, sandboxes: [] }).users.keys());
}

/** The container half of a plan, limited to the named namespaces; without any, nothing of it is selected. */
export function selectedContainers(plan: ContainerPlan, selection: Selection): ContainerPlan {
  const names = new Set(selection.flatMap((it) => (it.kind === "namespace" ? [it.name] : [])));
  const limited = <Keep, Remove>(
    decision: Decision<Keep, Remove>,
    namespace: string,
  ): Decision<Keep | typeof NOT_SELECTED, Remove> =>
    decision.kind === "keep" || names.has(namespace)
      ? decision
      : { kind: "keep", reason: NOT_SELECTED, tried: [...decision.tried, NOT_SELECTED.kind] };
  return {
    ...plan,
    containers: plan.containers.map((it) => ({
      ...it,
      decision: limited(it.decision, it.container.podNamespace),
    })),
    sandboxes: plan.sandboxes.map((it) => ({
      ...it,
      decision: limited(it.decision, it.sandbox.namespace),
    })),
    podLogs: plan.podLogs.map((it) => ({
      ...it,
      decision: limited(it.decision, it.directory.entry.replace(/_.*/s, "")),
    })),
    // A link does not reliably show its namespace.
    links: [],
  };
}
