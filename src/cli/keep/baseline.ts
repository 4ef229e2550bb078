/** `crigc keep baseline`: write today's images, or those of archives, to a keep list. */

import { quoted } from "../../config/words.ts";
import { ConfigError, type ConfigIssue, HostError, usageError } from "../../model/errors.ts";
import { toRfc3339 } from "../../model/time.ts";
import { parseKeepPattern } from "../../policy/keep/keep-pattern.ts";
import { keepFileHeader } from "../../policy/keep/keep.ts";
import { counted } from "../../report/bytes.ts";
import { clean } from "../../report/terminal.ts";
import { command, type CommandContext, has, type Invocation, option } from "../command.ts";
import { exit } from "../exit.ts";
import type { KeepFile } from "../openers.ts";
import { rulesIn } from "./edit.ts";

export const keepBaseline = command({
  name: "keep baseline",
  summary: "write today's images to baseline.list in the keep directory",
  doc: "Each image is listed by its ID and its tags, so it is kept when a tag moves, and so is what the tag moves to. Keeps the existing entries of baseline.list unless --replace is given, and fails if it cannot read them. If the runtime lists no image, it writes nothing. With --once it runs only on the first boot of a node, as recorded by a stamp in the state directory, and exits 3 while the runtime lists no image, so that the service waits for the first one. With --from it writes the images of archives made by docker save or ctr images export (tar, also gzip or zstd) and needs no runtime.",
  operands: [
    {
      name: "ARCHIVE",
      completes: "file",
      required: false,
      repeated: true,
      help: "more archives after --from ARCHIVE",
    },
  ],
  options: [
    option("from ARCHIVE", "use the images of this archive; repeatable", { completes: "file" }),
    option("once", "do nothing if already done on this node"),
    option("replace", "drop the existing entries of baseline.list"),
  ],
  readOnly: false,
  run: async (context, invocation) => {
    const archives = archivesOf(invocation);
    const file = context.open.keepFile(context.config, "baseline.list");
    const once = has(invocation, "once");
    const stamp = once ? context.open.stamp(context.config) : null;
    if (stamp !== null) {
      context.stdout(`Baseline already written at ${clean(stamp)}; nothing to do.\n`);
      return exit.done;
    }
    const replace = has(invocation, "replace");
    // Check for a damaged list before any call to the runtime.
    if (!replace) patternsIn(file.read(), file.path);
    const images =
      archives.length === 0 ? await listedImages(context) : await archived(context, archives);
    if (images.length === 0) return nothingListed(context, { path: file.path, once });
    write(context, { file, images, replace, once });
    return exit.done;
  },
});

/**
 * A stamp now would never protect images that are loaded later; continuing without one would start an
 * agent, and make a baseline of whatever is pulled by its next start. So the service waits, as for the runtime.
 */
function nothingListed(
  context: CommandContext,
  { path, once }: { readonly path: string; readonly once: boolean },
): number {
  const left = `the runtime lists no image; ${clean(path)} is unchanged`;
  const advice =
    "the baseline waits for the first image; remove keep baseline --once from the service if the node has none";
  context.stderr(`crigc: ${left}${once ? `, and ${advice}` : ""}\n`);
  return once ? exit.runtime : exit.done;
}

interface Writing {
  readonly file: KeepFile;
  readonly images: readonly BaselineImage[];
  readonly replace: boolean;
  readonly once: boolean;
}

function write(context: CommandContext, { file, images, replace, once }: Writing): void {
  const writtenAt = toRfc3339(context.open.now());
  const next = (text: string | null) => {
    const before = replace ? [] : patternsIn(text, file.path);
    const answer = baselineList(images, before, writtenAt);
    return { text: answer.text, answer };
  };
  const { patterns, unnamed } = context.dryRun ? next(file.read()).answer : file.change(next);
  for (const image of unnamed)
    context.stderr(
      `crigc: warning: image ${clean(image.id)} is not in the baseline: its ID is not a digest and it has no tag\n`,
    );
  // After the list: with a stamp but no list, the node would never get a baseline.
  if (once && !context.dryRun) context.open.setStamp(context.config, writtenAt);
  const named = images.length - unnamed.length;
  const names = context.dryRun ? "would list" : "now lists";
  context.stdout(
    `${context.dryRun ? "Dry run: " : ""}${clean(file.path)} ${names} ${counted(named, "image")} in ${counted(patterns, "pattern")}.\n`,
  );
}

/** `--from A --from B`, and `--from *.tar` as the shell expands it. */
function archivesOf(invocation: Invocation): readonly string[] {
  const from = invocation.options.get("from") ?? [];
  const [first] = invocation.operands;
  if (first !== undefined && from.length === 0) {
    const message = `${quoted(first)} is unexpected; use --from ARCHIVE`;
    throw usageError("crigc keep baseline", first, message);
  }
  return [...from, ...invocation.operands];
}

function patternsIn(text: string | null, path: string): readonly string[] {
  const advice = "repair the file, or replace it with --replace";
  return text === null ? [] : rulesIn(text, path, advice).map(({ pattern }) => pattern);
}

async function listedImages(context: CommandContext): Promise<readonly BaselineImage[]> {
  using node = await context.open.node(context.config, context.signal);
  const images = await node.engine.observe.runtime.listImages(context.signal);
  return images.map(({ id, repoTags }) => ({ id, names: repoTags }));
}

/** Every archive is read before anything is written. */
async function archived(
  context: CommandContext,
  paths: readonly string[],
): Promise<readonly BaselineImage[]> {
  const images: BaselineImage[] = [];
  const issues: ConfigIssue[] = [];
  for (const path of paths) {
    try {
      images.push(...(await context.open.archivedImages(path)));
    } catch (thrown) {
      if (!(thrown instanceof HostError)) throw thrown;
      issues.push({ source: "--from", text: path, message: thrown.message });
    }
  }
  if (issues.length > 0) throw new ConfigError(issues);
  return images;
}

/** An image of the node or of an archive. */
export interface BaselineImage {
  readonly id: string;
  readonly names: readonly string[];
}

export interface BaselineList {
  readonly text: string;
  readonly patterns: number;
  /** Images that no pattern can match: their IDs are not digests, and they have no tags. */
  readonly unnamed: readonly BaselineImage[];
}

/** `before`: earlier patterns, kept even if they match no image today. */
export function baselineList(
  images: readonly BaselineImage[],
  before: readonly string[],
  writtenAt: string,
): BaselineList {
  const groups = images.map((image) => [image.id, ...image.names].filter(isPattern));
  const today = new Set(groups.flat());
  const stay = before.filter((pattern) => !today.has(pattern));
  const patterns = today.size + stay.length;
  const lines = [
    keepFileHeader(patterns),
    `# Written by crigc keep baseline at ${writtenAt}. crigc never removes these images. You can edit this file.`,
    ...today,
    ...(stay.length === 0 ? [] : ["# Earlier entries:", ...stay]),
  ];
  return {
    text: `${lines.join("\n")}\n`,
    patterns,
    unnamed: images.filter((_, at) => groups[at]?.length === 0),
  };
}

const isPattern = (name: string): boolean => parseKeepPattern(name).kind === "valid";
