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

/** An image of a plan or a report; of what is told of candidates alone, those that are kept have nothing. */
export interface ImageEntry {
  readonly id: string;
  readonly name: string;
  readonly sizeBytes: number;
  readonly reason: Coded;
  readonly expected?: boolean;
  /** Absent where its layers are not known. */
  readonly freesBytes?: number;
  readonly freesAtLeastBytes?: number;
  readonly freesAtMostBytes?: number;
}

export interface ImagePlanDocument {
  readonly blocks: readonly Coded[];
  readonly triggers: readonly Coded[];
  readonly futility: readonly {
    readonly boundBytes: number;
    readonly neededBytes: number;
    readonly futile: boolean;
    readonly breakdown: Record<"capacityBytes" | "imagesBytes" | "otherBytes", number>;
  }[];
  readonly candidates: readonly ImageEntry[];
  readonly kept: readonly ImageEntry[];
}

export interface PlanDocument {
  readonly images: ImagePlanDocument | null;
  readonly containers: {
    readonly podSource: { readonly kind: string };
    readonly strays: readonly string[];
  } | null;
}

export interface ImageItem extends ImageEntry {
  readonly result: {
    readonly kind: "removed" | "ghost" | "skipped" | "failed";
    readonly measuredBytes?: number;
    readonly reason?: Coded;
  };
}

export interface GcReport {
  readonly tookMs: number;
  readonly images: {
    readonly end: string;
    readonly reportedFreedBytes: number;
    readonly measuredFreedBytes: number;
    readonly estimatedFreedBytes: number | null;
    readonly availableAfterBytes: number;
    readonly items: readonly ImageItem[];
  } | null;
  readonly containers: object | null;
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
