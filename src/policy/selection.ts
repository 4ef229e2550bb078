/** The images, containers, sandboxes and logs that a removal by hand is limited to. */
import type { ImageId } from "../model/ids.ts";
import type { ContainerPlan, Criterion, Purpose, Selection } from "../model/plan.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { keptFor, type Plannable } from "./container/container-rules.ts";
import type { Facts } from "./facts.ts";
import { type Ranked, unusedFor } from "./image/rank.ts";
import { imageNames } from "./image/reference.ts";
import { usageOf } from "./image/usage.ts";
import { matchPattern, parseKeepPattern } from "./keep/keep.ts";

const NOT_SELECTED = { kind: "not-selected" } as const;

export const selectionOf = (purpose: Purpose): Selection | null =>
  (purpose.kind === "all-unused" ? purpose.only : undefined) ?? null;

/** Whether the operator named each image, so that one is removed although others have all of its layers. */
export const isByName = (purpose: Purpose): boolean =>
  purpose.kind === "all-unused" && purpose.isByName === true;

type SelectionFacts = Pick<Facts, "snapshot" | "ledger">;

/** The selected images. */
export function selectedImages(
  images: readonly Ranked[],
  selection: Selection,
  facts: SelectionFacts,
): ReadonlySet<ImageId> {
  const tests = selection.map((criterion) => ({ ...criterion, fits: testOf(criterion, facts) }));
  const kinds = [...Map.groupBy(tests, ({ kind }) => kind).values()];
  // Without a criterion nothing is selected, rather than everything.
  const chosen = images.filter(
    (subject) =>
      kinds.length > 0 && kinds.every((those) => those.some(({ fits }) => fits(subject))),
  );
  return new Set(chosen.map(({ image }) => image.id));
}

function testOf(criterion: Criterion, facts: SelectionFacts): (subject: Ranked) => boolean {
  switch (criterion.kind) {
    case "id":
      return ({ image }) => image.id === criterion.id;
    case "reference": {
      const parsed = parseKeepPattern(criterion.pattern);
      return ({ image }) =>
        parsed.kind === "valid" && matchPattern(parsed.pattern, imageNames(image)) !== null;
    }
    case "unused-for":
      return ({ record }) => unusedFor(record, facts.ledger.totalUptime) >= criterion.span;
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
  return new Set(usageOf({ ...snapshot, containers }).users.keys());
}

/** The container half of a plan, limited to the named namespaces; without any, nothing of it is selected. */
export function selectedContainers(plan: ContainerPlan, selection: Selection): ContainerPlan {
  const names = new Set(selection.flatMap((it) => (it.kind === "namespace" ? [it.name] : [])));
  const unless = <Planned extends Plannable>(one: Planned, namespace: string) =>
    names.has(namespace) ? one : keptFor(one, NOT_SELECTED);
  return {
    ...plan,
    containers: plan.containers.map((one) => unless(one, one.container.podNamespace)),
    sandboxes: plan.sandboxes.map((one) => unless(one, one.sandbox.namespace)),
    podLogs: plan.podLogs.map((one) => unless(one, one.directory.entry.replace(/_.*/s, ""))),
    // A link does not reliably show its namespace.
    links: [],
  };
}
