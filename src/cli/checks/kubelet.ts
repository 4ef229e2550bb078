/** Doctor's checks of a kubelet on this node: what it removes by itself, and whether it evicts pods before crigc frees space. */

import type { Config } from "../../config/config.ts";
import { fieldOf } from "../../config/fields.ts";
import { loadConfig } from "../../config/load.ts";
import { shownText } from "../../config/types.ts";
import { formatDuration } from "../../config/units.ts";
import { ConfigError } from "../../model/errors.ts";
import type { Threshold } from "../../model/limits.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import type { KubeletFact } from "../../node/kubelet/pods.ts";
import { ok, type Verdict, type Verdicts, warning } from "../../report/doctor.ts";
import { present } from "../../report/terminal.ts";

/** `images`: the image filesystem; `null`: the node could not be read. */
export function kubeletChecks(
  { sign, file }: KubeletFact,
  ours: Config,
  images: Filesystem | null,
): Verdicts {
  if (sign === null) return [["kubelet", ok("no sign of a kubelet on this node")]];
  const here = `this node has a kubelet (${sign})`;
  const theirs = theirConfig(file);
  if (typeof theirs === "string")
    return [["kubelet", warning(`${here}, but its settings cannot be read: ${theirs}`)]];
  const where =
    file === null
      ? "whose configuration file was not found; crigc assumes the kubelet's defaults"
      : `configured by ${file.path}`;
  return [
    ["kubelet", ok(`${here}, ${where}`)],
    ["kubelet-image-gc", imageGcCheck(theirs)],
    ["kubelet-eviction", images && evictionCheck(theirs, ours, images)],
  ];
}

/** The kubelet's file, read like our own; a string says why it is invalid. */
function theirConfig(file: KubeletFact["file"]): Config | string {
  if (file?.text === null) return `${file.path}: ${file.why}`;
  const flags = file === null ? [] : [{ name: "config", written: "", text: file.path } as const];
  const reader = { file: () => file?.text ?? null, names: () => null };
  try {
    return loadConfig({ flags, env: {}, reader });
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.message.replaceAll("\n", "; ");
    throw thrown;
  }
}

/** With two collectors on a node, the kubelet knows no keep rule and forgets on restart. */
function imageGcCheck({ limits: { images } }: Config): Verdict {
  const removes = present([
    images.highPercent < 100 && `from ${images.highPercent}% down to ${images.lowPercent}%`,
    images.maximumAge > 0n && `unused for ${formatDuration(images.maximumAge)}`,
  ]);
  if (removes.length === 0) return ok("the kubelet's own image GC is off");
  return warning(
    `the kubelet also removes images, ${removes.join(" and ")}, and ignores keep rules`,
    "set imageGCHighThresholdPercent: 100 in its configuration, replace its imageMaximumGCAge by --image-maximum-gc-age, and restart it",
  );
}

const MARGIN_PERCENT = 5;

/** The kubelet evicts pods, for space that unused images take, unless crigc frees it first. */
function evictionCheck(theirs: Config, ours: Config, images: Filesystem): Verdict {
  const nearest = nearestOf(theirs, images);
  const first = nearestOf(ours, images);
  if (nearest === null) return ok("the kubelet evicts no pods for disk usage of images");
  const evicts = `the kubelet evicts pods at ${wordsOf(nearest)}`;
  if (first !== null && first.percent > nearest.percent)
    return ok(`crigc frees space at ${wordsOf(first)}, before ${evicts}`);
  // All of crigc's thresholds, because a value replaces the others.
  const amount = `${Math.min(99, Math.ceil(nearest.percent) + MARGIN_PERCENT)}%`;
  const all = { ...ours.values.evictionHard, [nearest.signal]: amount };
  return warning(
    `${evicts}; crigc ${first === null ? "does not free space before, because --eviction-hard is off" : `frees space no earlier, at ${wordsOf(first)}`}`,
    `set --eviction-hard to ${shownText(fieldOf("evictionHard").type, all)}`,
  );
}

/** A threshold with the percent of the filesystem that must be free. */
type Nearest = Pick<Threshold, "signal"> & { readonly percent: number };

const wordsOf = ({ signal, percent }: Nearest): string =>
  `${signal}<${Math.round(percent * 10) / 10}%`;

/** The threshold on the image filesystem that is met first as it fills. */
function nearestOf({ limits }: Config, { roles, capacityBytes }: Filesystem): Nearest | null {
  const signals = ["imagefs.available", ...(roles.includes("nodefs") ? ["nodefs.available"] : [])];
  const found = limits.pressure.thresholds.filter(({ signal }) => signals.includes(signal));
  return (
    found
      .map(({ signal, amount }) => {
        const share =
          amount.kind === "fraction" ? amount.value : Number(amount.value) / Number(capacityBytes);
        return { signal, percent: Math.round(share * 10_000) / 100 };
      })
      .toSorted((one, other) => other.percent - one.percent)[0] ?? null
  );
}
