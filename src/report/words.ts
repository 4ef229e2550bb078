/** Names, amounts and times for people: bytes as the kubelet does, durations in two units, percentages, counts, days. */

import type { ImageId } from "../model/ids.ts";
import type { Container, Image, Sandbox } from "../model/snapshot.ts";
import {
  type Duration,
  durationFromMs,
  fromRfc3339,
  type Instant,
  instant,
  since,
  toRfc3339,
} from "../model/time.ts";
import { clean } from "./terminal.ts";

/** A code in words: `pod logs`, `already gone`. */
export const kindTitle = (kind: string): string => clean(kind).replaceAll("-", " ");

const HEX_SHOWN = 12;

type NamedImage = Pick<Image, "id" | "repoTags" | "repoDigests">;

/** The best name: a tag, else `repository@sha256:…` with a short digest, else the short ID. */
export const imageName = (image: NamedImage): string =>
  givenName(image)?.replace(/(@\w+:[0-9a-f]{12})[0-9a-f]+$/, "$1") ?? shortId(image.id);

/** The same for programs: with the whole digest or ID. */
export const wholeImageName = (image: NamedImage): string => givenName(image) ?? clean(image.id);

function givenName({ repoTags, repoDigests }: NamedImage): string | undefined {
  const name = [...repoTags, ...repoDigests].find((it) => !it.startsWith("<none>"));
  return name === undefined ? undefined : clean(name);
}

/** `sha256:0123456789ab`, or the first 12 digits without an algorithm: enough for `explain`. */
export function shortId(id: ImageId | string): string {
  const text = clean(id);
  const colon = text.indexOf(":");
  return text.slice(0, colon + 1 + HEX_SHOWN);
}

export const containerName = ({
  podNamespace,
  podName,
  name,
}: Pick<Container, "podNamespace" | "podName" | "name">): string =>
  clean(podName === "" ? name : `${podNamespace}/${podName}/${name}`);

export const sandboxName = ({ namespace, name }: Pick<Sandbox, "namespace" | "name">): string =>
  clean(namespace === "" ? name : `${namespace}/${name}`);

const UNITS = ["KiB", "MiB", "GiB", "TiB"] as const;

/** `10.0 GiB`: one decimal; whole bytes below 1 KiB, TiB as the largest unit. */
export function humanBytes(bytes: bigint): string {
  if (bytes < 0n) return `-${humanBytes(-bytes)}`;
  if (bytes < 1024n) return `${bytes} B`;
  const at = UNITS.findIndex((_, index) => bytes < 1n << BigInt(10 * (index + 2)));
  const index = at < 0 ? UNITS.length - 1 : at;
  return `${(Number(bytes) / 1024 ** (index + 1)).toFixed(1)} ${UNITS[index]}`;
}

/** For a column; a dash if unknown. */
export const bytesCell = (bytes: bigint | null | undefined): string =>
  bytes === null || bytes === undefined ? "-" : humanBytes(bytes);

/** For a column about a disk, on which others write too; a dash if unknown. */
export const changeCell = (bytes: bigint | null | undefined): string =>
  bytes !== null && bytes !== undefined && bytes <= 0n ? "others wrote" : bytesCell(bytes);

const SPANS = [
  ["d", 86_400_000_000_000n],
  ["h", 3_600_000_000_000n],
  ["m", 60_000_000_000n],
  ["s", 1_000_000_000n],
] as const;

/** `3d4h`, `2m30s`, `1.5s`, `40ms`: the two largest units, rounded down. Clocks jump, so a negative span is 0s. */
export function humanDuration(span: Duration): string {
  const ns: bigint = span;
  if (ns < 1_000_000_000n)
    return ns <= 0n ? "0s" : ns < 1_000_000n ? "<1ms" : `${ns / 1_000_000n}ms`;
  if (ns < 10_000_000_000n) return `${Number(ns / 100_000_000n) / 10}s`;
  const at = SPANS.findIndex(([, size]) => ns >= size);
  const [unit, size] = SPANS[at] ?? SPANS[3];
  const next = SPANS[at + 1];
  const rest = next === undefined ? 0n : (ns % size) / next[1];
  return `${ns / size}${unit}${rest === 0n || next === undefined ? "" : `${rest}${next[0]}`}`;
}

/** A time of a document. */
export const instantOf = (time: string): Instant => fromRfc3339(time) ?? instant(0n);

export const elapsed = (later: string, earlier: string): Duration =>
  since(instantOf(later), instantOf(earlier));

/** A span of a document. */
export const humanMs = (ms: number): string => humanDuration(durationFromMs(ms));

/** The day of a time of a document, in UTC: `2026-01-31`. */
export const dayOf = (time: string): string => time.slice(0, 10);

/** `2026-01-31T12:00:00Z`: without the fraction of a second. */
export const secondOf = (at: Instant | string): string =>
  (typeof at === "string" ? at : toRfc3339(at)).replace(/\.\d+Z$/, "Z");

/** `1 image`, `3 images`; `many` for an irregular plural. */
export const plural = (count: number | bigint, one: string, many = `${one}s`): string =>
  `${count} ${BigInt(count) === 1n ? one : many}`;

/** Used percent: 100 less the whole percent available, so it is rounded up. */
export const usedPercent = (capacityBytes: bigint, availableBytes: bigint): number =>
  capacityBytes <= 0n ? 100 : 100 - Number((availableBytes * 100n) / capacityBytes);

/** `88% used, 6.0 GiB of 50.0 GiB free`. */
export const spaceWords = ({ capacityBytes, availableBytes }: Space): string =>
  capacityBytes <= 0n
    ? "no figures"
    : `${usedPercent(capacityBytes, availableBytes)}% used, ${humanBytes(availableBytes)} of ${humanBytes(capacityBytes)} free`;

interface Space {
  readonly capacityBytes: bigint;
  readonly availableBytes: bigint;
}
