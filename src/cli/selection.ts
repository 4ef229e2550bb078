/** Options that limit `gc`, `plan` and `rm` to a part of the node, or extend them to everything unused. */

import type { Config } from "../config/config.ts";
import { parseSize } from "../config/units.ts";
import { quoted, suggestion } from "../config/words.ts";
import { usageError } from "../model/errors.ts";
import type { ImageId } from "../model/ids.ts";
import type { Criterion, Purpose, Selection } from "../model/plan.ts";
import type { Image } from "../model/snapshot.ts";
import { duration } from "../model/time.ts";
import type { Parts } from "../policy/facts.ts";
import { indexImages, listedImages, repositoryOf } from "../policy/image/reference.ts";
import { parseKeepPattern } from "../policy/keep/keep.ts";
import { imageName } from "../report/words.ts";
import { durationFrom, parsed, valueOf, type ValueType } from "./args.ts";
import { type CommandOption, has, type Invocation, option } from "./command.ts";

export const FILTER = option(
  "filter KEY=VALUE",
  "filter by reference=GLOB, unused-for=30d (until), untagged (dangling), larger-than=1Gi, namespace=NAME; repeatable",
  {
    proposals: ["reference=", "unused-for=", "untagged", "larger-than=", "namespace="],
  },
);

export const SELECTION_OPTIONS: readonly CommandOption[] = [
  option("images", "images only (add --containers for both)"),
  option("containers", "containers, sandboxes and pod logs only (add --images for both)"),
  option("all-unused", "remove everything unused that no rule keeps, regardless of disk usage"),
  option("free SIZE", "remove until this much is available on the image filesystem, such as 20Gi"),
  FILTER,
  option("force-young", "also remove images younger than the minimum age"),
];

export interface Selected {
  readonly purpose: Purpose;
  readonly parts: Parts;
}

/** Filters select what to remove regardless of disk usage; containers only by namespace. */
export function selectedBy(invocation: Invocation): Selected {
  const only = criteriaOf(invocation);
  const images = has(invocation, "images");
  const containers = has(invocation, "containers");
  const inNamespace = only.some(({ kind }) => kind === "namespace");
  if (only.length > 0 && containers && !inNamespace)
    throw usageError("--containers", "", "containers can be filtered by namespace=NAME only");
  const both = images === containers && (only.length === 0 || inNamespace);
  const parts: Parts = {
    containers: both || containers ? "all" : "none",
    images: both || images || !containers,
  };
  const freeBytes = valueOf(invocation, "free", SIZE);
  if (freeBytes !== null) {
    if (only.length > 0 || has(invocation, "all-unused") || !parts.images)
      throw usageError(
        "--free",
        "",
        "cannot be combined with --all-unused, --filter or --containers alone",
      );
    return { purpose: { kind: "periodic", freeBytes }, parts };
  }
  if (only.length > 0) return { purpose: { kind: "all-unused", only }, parts };
  return { purpose: { kind: has(invocation, "all-unused") ? "all-unused" : "periodic" }, parts };
}

const unusedFor = (text: string): Criterion => ({
  kind: "unused-for",
  span: parsed(UNUSED_FOR, text, "--filter"),
});
const untagged = (text: string): Criterion | string =>
  text === "" || text === "true" ? { kind: "untagged" } : "untagged takes no value";

/** Their values; a string is what is wrong with one. */
const CRITERIA: Readonly<Record<string, (value: string) => Criterion | string>> = {
  reference: (pattern) => {
    const read = parseKeepPattern(pattern);
    return read.kind === "valid" ? { kind: "reference", pattern } : read.message;
  },
  "unused-for": unusedFor,
  // As docker calls them.
  until: unusedFor,
  untagged,
  dangling: untagged,
  "larger-than": (text) => ({ kind: "larger-than", bytes: parsed(SIZE, text, "--filter") }),
  namespace: (name) =>
    name === "" ? "the namespace is empty; use namespace=NAME" : { kind: "namespace", name },
};

const UNUSED_FOR = durationFrom(0n, "90m, 24h or 30d");
const SIZE: ValueType<bigint> = {
  what: "size",
  use: "500Mi or 1Gi",
  read: (text) => {
    // A bare 10, meant as GiB, would select every image.
    const bytes = /^[\d.]+$/.test(text) ? null : parseSize(text);
    return bytes !== null && bytes >= 0n ? bytes : null;
  },
};

/** Throws `ConfigError`. */
export const criteriaOf = ({ options }: Pick<Invocation, "options">): Selection =>
  (options.get("filter") ?? []).map((text) => {
    const [, key = "", value = ""] = /^([^=]*)=?(.*)$/s.exec(text) ?? [];
    const keys = Object.keys(CRITERIA);
    const criterion = keys.includes(key)
      ? (CRITERIA[key]?.(value) ?? "")
      : `unknown filter ${quoted(key)}: use ${keys.join(", ")}${suggestion(key, keys)}`;
    if (typeof criterion === "string") throw usageError("--filter", text, criterion);
    return criterion;
  });

/** Shorter prefixes match too much by accident. */
const ID_PREFIX_MIN = 6;

/** The image with this ID, ID prefix, tag, digest or name in tables. Throws `ConfigError` if several match. */
export function imageNamed(images: readonly Image[], reference: string): ImageId | null {
  const listed = listedImages(indexImages(images), reference);
  const repository = reference.includes("@") ? repositoryOf(reference) : null;
  // Another repository may have the same content; only the named image is removed.
  const isExact = ({ id, repoTags, repoDigests }: Image): boolean =>
    listed.includes(id) &&
    (repository === null ||
      [...repoTags, ...repoDigests].some((it) => repositoryOf(it) === repository));
  const exact = images.filter(isExact);
  const loose = (it: Image): boolean => isIdPrefix(it.id, reference) || imageName(it) === reference;
  const found = new Set((exact.length > 0 ? exact : images.filter(loose)).map(({ id }) => id));
  if (found.size > 1)
    throw usageError(
      "crigc rm",
      reference,
      `${quoted(reference)} names ${found.size} images: ${[...found].join(", ")}; use one of these IDs`,
    );
  return [...found][0] ?? null;
}

/** With or without the algorithm of an image's ID. */
export function isIdPrefix(id: string, reference: string): boolean {
  const start = reference.replace(/^sha256:/, "");
  const isHex = /^[0-9a-f]+$/.test(start) && start.length >= ID_PREFIX_MIN;
  return isHex && id.replace(/^sha256:/, "").startsWith(start);
}

/** The limits of this command line. Throws `ConfigError`. */
export function forced(config: Config, invocation: Invocation): Config {
  if (!has(invocation, "force-young")) return config;
  const images = { ...config.limits.images, minimumAge: duration(0n) };
  return { ...config, limits: { ...config.limits, images } };
}
