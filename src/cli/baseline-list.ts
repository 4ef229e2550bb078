/** The text of a baseline list: a pattern for each image's ID and for each of its tags, in the form that keep files have. */

import { keepFileHeader } from "../policy/keep-file.ts";
import { parseKeepPattern } from "../policy/keep-pattern.ts";

/** An image of the node or of an archive. */
export interface BaselineImage {
  readonly id: string;
  readonly names: readonly string[];
}

export interface BaselineList {
  readonly text: string;
  /** How many patterns are in it. */
  readonly patterns: number;
  /** Images that no pattern can name: their IDs are no digests, and they have no tags. */
  readonly unnamed: readonly BaselineImage[];
}

/** `before`: patterns that stay although today's images do not ask for them. */
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
    `# Written by crigc keep baseline at ${writtenAt}. None of these images is removed; edit it as you like.`,
    ...today,
    ...(stay.length === 0 ? [] : ["# From before:", ...stay]),
  ];
  return {
    text: `${lines.join("\n")}\n`,
    patterns,
    unnamed: images.filter((_, at) => groups[at]?.length === 0),
  };
}

const isPattern = (name: string): boolean => parseKeepPattern(name).kind === "valid";
