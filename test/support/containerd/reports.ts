// Runs one pass or one plan of the built program on a test node and reads its JSON document.
import type { ContainerdNode } from "./node.ts";
import { runProgram } from "./program.ts";
import { until } from "./until.ts";

/** A document of crigc, as the test looks into it. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Document = any;

export interface GcRun {
  readonly exitCode: number;
  readonly report: Document;
}

/** Images that were first seen a second ago may go, so that a test need not wait two minutes. */
export const youngAge = "--minimum-image-ttl-duration=1s";

export async function gc(node: ContainerdNode, ...flags: readonly string[]): Promise<GcRun> {
  const { exitCode, stdout, stderr } = await runProgram(node, "gc", "-o", "json", ...flags);
  if (!stdout.startsWith("{")) throw new Error(`gc ended with ${exitCode}: ${stderr}`);
  return { exitCode, report: JSON.parse(stdout) };
}

/** What `plan` says; it must end with 0. */
export async function plan(node: ContainerdNode, ...flags: readonly string[]): Promise<Document> {
  const { exitCode, stdout, stderr } = await runProgram(node, "plan", "-o", "json", ...flags);
  if (exitCode !== 0) throw new Error(`plan ended with ${exitCode}: ${stderr}`);
  return JSON.parse(stdout);
}

export const planImages = async (
  node: ContainerdNode,
  ...flags: readonly string[]
): Promise<Document> => (await plan(node, ...flags)).images;

export const namesOf = (images: readonly Document[]): readonly string[] =>
  images.map(({ name }) => name);

/** The code of the reason for which each image is kept, by name. */
export const keepCodes = (images: Document): Readonly<Record<string, string>> =>
  Object.fromEntries(images.kept.map(({ name, reason }: Document) => [name, reason.code]));

/** Names of the images that went, in order. */
export const removedImages = ({ images }: Document): readonly string[] =>
  namesOf((images?.items ?? []).filter(({ result }: Document) => result.kind === "removed"));

/** Has the images of now remembered, waits out `youngAge`, and answers with the plan of that moment. */
export async function ripen(node: ContainerdNode, ...flags: readonly string[]): Promise<Document> {
  await gc(node, "--containers");
  return until("no image is too young", 10_000, async () => {
    const images = await planImages(node, youngAge, ...flags);
    return !Object.values(keepCodes(images)).includes("too-young") && images;
  });
}
