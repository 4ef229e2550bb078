/** Document `Plan` and the output of `crigc plan`: candidates in order, the estimated stop, and a reason for everything that is kept. */

import { assertNever } from "../model/errors.ts";
import {
  type ContainerPlan,
  type Decision,
  type ImageCandidate,
  type ImagePlan,
  type ImageTarget,
  type KeptImage,
  type Plan,
  type PlannedContainer,
  type PlannedSandbox,
} from "../model/plan.ts";
import { duration, toRfc3339 } from "../model/time.ts";
import { capitalised } from "../model/values.ts";
import { breakdownWords, printUsage, usageJson } from "./disk-usage.ts";
import {
  containerJson,
  document,
  imageJson,
  jsonOf,
  recordJson,
  runtimeJson,
  sandboxJson,
  type SeenNode,
} from "./document.ts";
import {
  imageBlock,
  imageKeep,
  imageTrigger,
  logsErrorWords,
  planNote,
  type PodReason,
  podReasons,
  podSourceWords,
  triggerTitle,
} from "./reasons.ts";
import { clean, column, type Columns, OPTIONAL, Printer, RIGHT, type Screen } from "./terminal.ts";
import {
  bytesCell,
  containerName,
  dayOf,
  humanBytes,
  humanDuration,
  humanMs,
  plural,
  sandboxName,
  secondOf,
  shortId,
} from "./words.ts";

export type PlanDocument = ReturnType<typeof planDocument>;

export const planDocument = ({
  plan,
  snapshot,
}: {
  readonly plan: Plan;
  readonly snapshot: SeenNode;
}) =>
  document("Plan", {
    observedAt: toRfc3339(snapshot.observedAt),
    runtime: runtimeJson(snapshot.runtime),
    ...planBody(plan),
  });

/** Both halves; `null` if not requested. Made when it is read, since few reports of a pass show its plan. */
export const planBody = ({ images, containers }: Plan) => ({
  get images() {
    return images === null ? null : imagePlanJson(images);
  },
  get containers() {
    return containers === null ? null : containerPlanJson(containers);
  },
});

export type ImagePlanJson = ReturnType<typeof imagePlanJson>;

const imagePlanJson = (plan: ImagePlan) => ({
  ...jsonOf(plan, "purpose", "now"),
  blocks: plan.blocks.map(imageBlock.json),
  triggers: plan.triggers.map(imageTrigger.json),
  targets: plan.targets.map((target) => ({
    ...target,
    trigger: imageTrigger.json(target.trigger),
    text: targetWords(atMountpoint(target, plan)),
  })),
  usage: plan.usage.map(usageJson),
  futility: plan.futility.map((it) => ({
    ...jsonOf(it, "filesystem", "boundBytes", "neededBytes", "futile", "breakdown"),
    boundInodes: it.inodes?.bound,
    neededInodes: it.inodes?.needed,
  })),
  notes: plan.notes.map(planNote.text),
  expectedRemovals: plan.candidates.filter((it) => it.expected).length,
  expectedFreedBytes: freedByExpected(plan),
  youngText: youngWords(plan) || null,
  candidates: plan.candidates.map((candidate, index) => candidateJson(candidate, index + 1)),
  kept: plan.kept.map(keptJson),
});

/** With the mount point instead of the path that the runtime reports, as in the usage. */
function atMountpoint(target: ImageTarget, { usage }: ImagePlan): ImageTarget {
  if (!("path" in target)) return target;
  const at = usage.find(({ filesystem }) => filesystem.path === target.path);
  return at === undefined ? target : { ...target, path: at.filesystem.mountpoint };
}

/** By the estimate; the pass measures. */
const freedByExpected = ({ candidates }: ImagePlan): bigint =>
  candidates.reduce((sum, it) => (it.expected ? sum + it.estimateBytes : sum), 0n);

export type CandidateJson = ReturnType<typeof candidateJson>;

/** `place` counts from 1 in the order of removal. */
export const candidateJson = (candidate: ImageCandidate, place: number) => ({
  place,
  ...imageJson(candidate.image),
  ...recordJson(candidate.record),
  ...jsonOf(candidate, "unusedFor"),
  triggers: candidate.triggers.map(imageTrigger.json),
  expected: candidate.expected,
  ...jsonOf(candidate, "estimateBytes"),
});

export type KeptJson = ReturnType<typeof keptJson>;

export const keptJson = (kept: KeptImage) => ({
  ...imageJson(kept.image),
  ...recordJson(kept.record),
  reason: imageKeep.json(kept.reason),
  tried: kept.tried,
});

export type ContainerPlanJson = ReturnType<typeof containerPlanJson>;

const containerPlanJson = (plan: ContainerPlan) => ({
  ...jsonOf(plan, "purpose", "now"),
  blocks: plan.blocks.map(imageBlock.json),
  podSource: { ...plan.podSource, text: podSourceWords(plan.podSource) },
  containers: plan.containers.map(plannedContainerJson),
  sandboxes: plan.sandboxes.map(plannedSandboxJson),
  podLogs: plan.podLogs.map(({ directory, decision }) => ({
    entry: directory.entry,
    podUid: directory.uid,
    ...decisionJson(decision),
  })),
  danglingLinks: plan.links.map((link) => jsonOf(link, "entry", "podUid", "name", "attempt")),
  ...jsonOf(plan, "strays", "logsError"),
});

export const plannedContainerJson = (planned: PlannedContainer) => ({
  ...containerJson(planned.container),
  stopFirst: planned.container.state === "unknown",
  ...decisionJson(planned.decision),
});

export const plannedSandboxJson = ({ sandbox, decision }: PlannedSandbox) => ({
  ...sandboxJson(sandbox),
  ...decisionJson(decision),
});

export type DecisionJson = ReturnType<typeof decisionJson>;

const decisionJson = ({ kind, reason, tried }: Decision<PodReason, PodReason>) => ({
  decision: kind,
  reason: podReasons.json(reason),
  tried,
});

/** A target of a pass as an imperative: what to free, and why. */
function targetWords(target: ImageTarget): string {
  const why = imageTrigger.text(target.trigger);
  switch (target.kind) {
    case "available-bytes":
      return `free ${humanBytes(target.wantedBytes)} on ${clean(target.path)} (to ${humanBytes(target.availableBytes)} available): ${why}`;
    case "free-inodes":
      return `free ${plural(target.wantedInodes, "inode")} on ${clean(target.path)} (to ${target.inodesFree} free): ${why}`;
    case "store-bytes":
      return `shrink the image store by ${humanBytes(target.wantedBytes)} (to ${humanBytes(target.maximumBytes)}): ${why}`;
    case "everything":
      return `remove every candidate: ${why}`;
    default:
      return assertNever(target);
  }
}

/** `39 images (4.1 GiB) become removable in 1m48s`, for images that are only too young; "" if there are none. */
export function youngWords({ kept }: ImagePlan): string {
  const young = kept.flatMap(({ image, reason }) =>
    reason.kind === "too-young"
      ? [{ sizeBytes: image.sizeBytes, left: reason.minimumAge - reason.age }]
      : [],
  );
  if (young.length === 0) return "";
  const bytes = young.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  const last = young.reduce((most, { left }) => (left > most ? left : most), 0n);
  const become = young.length === 1 ? "becomes" : "become";
  const together = young.every(({ left }) => left === last);
  return `${plural(young.length, "image")} (${humanBytes(bytes)}) ${become} removable ${together ? "in" : "within"} ${humanDuration(duration(last))}`;
}

export function planTable(plan: PlanDocument, screen: Screen): string {
  const printer = new Printer(screen);
  const { runtime: it, observedAt } = plan;
  const at = `${it.name} ${it.version} at ${it.endpoint}, as of ${secondOf(observedAt)}`;
  printer.line(clean(at), "dim");
  printer.gap();
  printPlan(printer, plan);
  printer.gap();
  printer.say(`Next: ${nextWords(plan)}.`);
  return printer.text();
}

function nextWords({ images }: PlanDocument): string {
  if (images !== null && images.blocks.length > 0) return "crigc doctor checks the node";
  return images === null || images.expectedRemovals > 0
    ? "crigc gc removes what would be removed; crigc explain REF shows the rules for one"
    : "crigc plan --all-unused shows all that may go; crigc explain REF shows the rules for one";
}

/** Both halves. */
export function printPlan(
  printer: Printer,
  { images, containers }: Pick<PlanDocument, "images" | "containers">,
): void {
  if (images !== null) printImagePlan(printer, images);
  const explained = images?.blocks.map(({ code }) => code);
  if (containers !== null) printContainerPlan(printer, containers, explained);
}

function printImagePlan(printer: Printer, plan: ImagePlanJson): void {
  for (const { text } of plan.blocks) printer.say(`No image is removed now: ${text}.`, "red");
  printer.gap();
  for (const usage of plan.usage) {
    printUsage(printer, usage);
    printer.gap();
  }
  printTargets(printer, plan);
  // Several thresholds of one filesystem may be out of reach.
  const fills = plan.futility
    .filter((it) => it.futile)
    .map((it) => `What fills ${clean(it.filesystem)}: ${breakdownWords(it.breakdown)}.`);
  for (const line of new Set(fills)) printer.say(line);
  printer.gap();
  if (plan.candidates.length > 0) printCandidates(printer, plan);
  if (plan.kept.length > 0) {
    printer.line(`${plural(plan.kept.length, "image")} kept:`);
    printer.table(KEPT_COLUMNS, plan.kept);
    printer.gap();
  }
  for (const note of plan.notes) printer.say(`Note: ${note}`);
}

export const KEPT_COLUMNS: Columns<KeptJson> = [
  column("KEPT", ({ name }) => name),
  column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
  column("WHY", ({ reason }) => reason.text),
];

function printTargets(printer: Printer, plan: ImagePlanJson): void {
  for (const { text } of plan.targets) printer.say(`Target: ${text}.`);
  // A block names its trigger itself.
  if (plan.targets.length === 0 && plan.triggers.length === 0)
    printer.line("No threshold that images can relieve is exceeded, so no image is removed.");
  if (plan.targets.length > 0 && isShort(plan) && plan.youngText !== null)
    printer.say(`${plan.youngText}.`);
  printer.gap();
}

/** By the estimate; the pass measures. */
const isShort = ({ targets, expectedFreedBytes, candidates }: ImagePlanJson): boolean =>
  targets.some((it) => it.kind === "available-bytes" && it.wantedBytes > expectedFreedBytes) ||
  candidates.length === 0;

function printCandidates(printer: Printer, plan: ImagePlanJson): void {
  const { expectedRemovals: at, targets } = plan;
  const stop = `estimated stop${targets.length === 0 ? "" : "; the disk is measured after each removal"}`;
  const words = at === 0 ? "nothing is removed now" : stop;
  printer.say(headline(plan));
  printer.table(candidateColumns(plan), plan.candidates, { stop: { at, words } });
  printer.gap();
}

function headline(plan: ImagePlanJson): string {
  const { expectedRemovals: expected, expectedFreedBytes } = plan;
  const total = plural(plan.candidates.length + plan.kept.length, "image");
  if (expected === 0) return `None of ${total} would be removed now. Order of removal:`;
  return `${expected} of ${total} would be removed, in this order, freeing about ${humanBytes(expectedFreedBytes)}${isShort(plan) ? ", less than the target" : ""}:`;
}

/** WHY: only triggers that are not those of the targets above. */
const candidateColumns = ({ targets }: Pick<ImagePlanJson, "targets">): Columns<CandidateJson> => [
  column("#", ({ place }) => String(place), RIGHT),
  column("IMAGE", ({ name }) => name),
  column("SIZE", ({ sizeBytes }) => humanBytes(sizeBytes), RIGHT),
  // Estimated by layers.
  column("FREES", ({ estimateBytes }) => bytesCell(estimateBytes), OPTIONAL),
  column("UNUSED FOR", ({ unusedForMs }) => humanMs(unusedForMs), RIGHT),
  // An image that was never seen in use is unused since crigc first saw it.
  column("LAST USED", ({ lastUsedAt }) => (lastUsedAt === null ? "-" : dayOf(lastUsedAt)), {
    optional: true,
  }),
  column("WHY", ({ triggers }) => ownTriggers(triggers, targets).join(", ") || "-", {
    optional: true,
  }),
];

function ownTriggers(
  triggers: CandidateJson["triggers"],
  targets: ImagePlanJson["targets"],
): readonly string[] {
  const above = new Set(targets.map(({ trigger }) => triggerTitle(trigger)));
  return triggers.map(triggerTitle).filter((title) => !above.has(title));
}

/** `explained`: blocks that the image half has explained. */
function printContainerPlan(
  printer: Printer,
  plan: ContainerPlanJson,
  explained: readonly string[] = [],
): void {
  const { blocks, logsError, danglingLinks: links, strays, podSource } = plan;
  const nothing = "No container, sandbox or log is removed now";
  for (const { code, text } of blocks)
    printer.say(explained.includes(code) ? `${nothing} either.` : `${nothing}: ${text}.`, "red");
  if (logsError !== null) printer.say(`${capitalised(logsErrorWords(logsError))}.`, "red");
  printer.say(`${capitalised(podSource.text)}.`);
  const containers = plan.containers.map((it) => ({ ...it, shown: containerName(it) }));
  const sandboxes = plan.sandboxes.map((it) => ({ ...it, shown: sandboxName(it) }));
  const podLogs = plan.podLogs.map((it) => ({ ...it, shown: clean(it.entry) }));
  printDecisions(printer, containers, ["container", "containers"]);
  printDecisions(printer, sandboxes, ["sandbox", "sandboxes"]);
  printDecisions(printer, podLogs, ["pod log directory", "pod log directories"]);
  printer.gap();
  if (links.length > 0) printer.say(`${plural(links.length, "dangling log link")} to delete.`);
  if (strays.length > 0) printer.say(`Not pod logs, kept: ${strays.map(clean).join(", ")}.`);
  printer.gap();
}

/** A container, a sandbox or pod logs; the latter have neither ID nor state. */
interface DecisionRow extends DecisionJson {
  /** The name in a table. */
  readonly shown: string;
  readonly id?: string;
  readonly state?: string;
  readonly stopFirst?: boolean;
}

const DECISION_COLUMNS: Columns<DecisionRow> = [
  column("ID", ({ id = "-" }) => shortId(id), { optional: true }),
  column("NAME", ({ shown }) => shown),
  column(
    "STATE",
    ({ state = "-", stopFirst = false }) => state + (stopFirst ? ", stopped first" : ""),
    { optional: true },
  ),
  column("WHY", ({ reason }) => reason.text),
];

function printDecisions(
  printer: Printer,
  items: readonly DecisionRow[],
  words: readonly [one: string, many: string],
): void {
  for (const [decision, done] of [
    ["remove", "would be removed"],
    ["keep", "kept"],
  ] as const) {
    const rows = items.filter((it) => it.decision === decision);
    if (rows.length === 0) continue;
    printer.gap();
    printer.line(`${rows.length} of ${plural(items.length, ...words)} ${done}:`);
    printer.table(DECISION_COLUMNS, rows);
  }
}
