// Runs one pass or one plan of the built program on a test node and reads its JSON document.
import type { ContainerdNode } from "./node.ts";
import { runProgram } from "./program.ts";
import { until } from "./until.ts";

/** What a reason, a trigger or a block says, with its data beside the code. */
export interface Coded {
  readonly code: string;
  readonly text: string;
  readonly [data: string]: unknown;
}

export interface ImageEntry {
  readonly id: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly pinned: boolean;
}

export interface KeptEntry extends ImageEntry {
  readonly reason: Coded;
  readonly tried: readonly string[];
}

export interface CandidateEntry extends ImageEntry {
  readonly place: number;
  /** Absent where its layers are not known. */
  readonly freesBytes?: number;
  readonly freesAtLeastBytes?: number;
  readonly freesAtMostBytes?: number;
  readonly triggers: readonly Coded[];
  readonly expected: boolean;
}

export interface Breakdown {
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly imagesBytes: number;
  readonly logsBytes: number | null;
  readonly otherBytes: number;
}

export interface Target {
  readonly kind: string;
  readonly trigger: Coded;
  readonly availableBytes?: number;
  readonly wantedBytes?: number;
}

export interface ImagePlanDocument {
  readonly blocks: readonly Coded[];
  readonly triggers: readonly Coded[];
  readonly targets: readonly Target[];
  readonly futility: readonly {
    readonly boundBytes: number;
    readonly neededBytes: number;
    readonly futile: boolean;
    readonly breakdown: Breakdown;
  }[];
  readonly candidates: readonly CandidateEntry[];
  readonly kept: readonly KeptEntry[];
  readonly notes: readonly string[];
}

export interface DecidedEntry {
  readonly decision: "keep" | "remove";
  readonly reason: Coded;
}

export interface ContainerPlanDocument {
  readonly blocks: readonly Coded[];
  readonly podSource: { readonly kind: string; readonly text: string };
  readonly containers: readonly (DecidedEntry & { readonly id: string })[];
  readonly sandboxes: readonly (DecidedEntry & { readonly id: string })[];
  readonly podLogs: readonly (DecidedEntry & { readonly entry: string })[];
  readonly strays: readonly string[];
}

export interface PlanDocument {
  readonly images: ImagePlanDocument | null;
  readonly containers: ContainerPlanDocument | null;
}

export interface ImageItem extends Omit<ImageEntry, "pinned"> {
  /** Absent where its layers are not known. */
  readonly freesBytes?: number;
  readonly freesAtLeastBytes?: number;
  readonly freesAtMostBytes?: number;
  readonly trigger: Coded;
  readonly result: {
    readonly kind: "removed" | "ghost" | "skipped" | "failed";
    readonly measuredBytes?: number;
    readonly settled?: string;
    readonly reason?: Coded;
  };
  readonly tookMs: number;
}

export interface GcReport {
  readonly dryRun: boolean;
  readonly error: string | null;
  readonly tookMs: number;
  readonly images: {
    readonly end: string;
    readonly wantedBytes: number | null;
    readonly reportedFreedBytes: number;
    readonly measuredFreedBytes: number;
    readonly estimatedFreedBytes: number | null;
    readonly availableBeforeBytes: number;
    readonly availableAfterBytes: number;
    readonly items: readonly ImageItem[];
  } | null;
  readonly containers: {
    readonly end: string;
    readonly errors: readonly string[];
    readonly containers: readonly { readonly id: string; readonly result: { kind: string } }[];
    readonly sandboxes: readonly { readonly id: string; readonly result: { kind: string } }[];
    readonly logs: readonly { readonly entry: string; readonly result: { kind: string } }[];
  } | null;
  readonly events: readonly { readonly reason: string; readonly message: string }[];
  readonly plan: PlanDocument;
}

export interface GcRun {
  readonly exitCode: number;
  readonly report: GcReport;
  readonly stderr: string;
}

/** Images that were first seen a second ago may go, so that a test need not wait two minutes. */
export const youngAge = "--minimum-image-ttl-duration=1s";

export async function gc(node: ContainerdNode, ...flags: readonly string[]): Promise<GcRun> {
  const { exitCode, stdout, stderr } = await runProgram(node, "gc", "-o", "json", ...flags);
  if (!stdout.startsWith("{")) throw new Error(`gc ended with ${exitCode}: ${stderr}`);
  return { exitCode, report: JSON.parse(stdout) as GcReport, stderr };
}

/** What `plan` says of the images; it must end with 0. */
export async function planImages(
  node: ContainerdNode,
  ...flags: readonly string[]
): Promise<ImagePlanDocument> {
  const { images } = await plan(node, ...flags);
  if (images === null) throw new Error("the plan has no images");
  return images;
}

export async function plan(
  node: ContainerdNode,
  ...flags: readonly string[]
): Promise<PlanDocument> {
  const { exitCode, stdout, stderr } = await runProgram(node, "plan", "-o", "json", ...flags);
  if (exitCode !== 0) throw new Error(`plan ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout) as PlanDocument;
}

/** The code of the reason for which each image is kept, by name. */
export const keepCodes = (images: ImagePlanDocument): Readonly<Record<string, string>> =>
  Object.fromEntries(images.kept.map(({ name, reason }) => [name, reason.code]));

/** Names of the images that went, in order. */
export const removedImages = ({ images }: GcReport): readonly string[] =>
  (images?.items ?? []).filter(({ result }) => result.kind === "removed").map(({ name }) => name);

/** Has the images of now remembered, waits out `youngAge`, and answers with the plan of that moment. */
export async function ripen(
  node: ContainerdNode,
  ...flags: readonly string[]
): Promise<ImagePlanDocument> {
  await gc(node, "--containers");
  return until("no image is too young", 10_000, async () => {
    const images = await planImages(node, youngAge, ...flags);
    return images.kept.every(({ reason }) => reason.code !== "too-young") && images;
  });
}
