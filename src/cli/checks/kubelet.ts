/** Whether a kubelet belongs to the node, and which of its thresholds collide with ours. */

import type { FlagText } from "../../config/arguments.ts";
import type { Config } from "../../config/config.ts";
import { formatDuration } from "../../config/duration.ts";
import { isFieldName } from "../../config/fields.ts";
import { loadConfig } from "../../config/load.ts";
import { ConfigError } from "../../model/errors.ts";
import type { Threshold } from "../../model/limits.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import type { DoctorCheck } from "../../report/table/doctor.ts";
import type { KubeletFact } from "../openers.ts";
import { ok, warning } from "./check.ts";

export interface KubeletFacts {
  readonly kubelet: KubeletFact;
  readonly ours: Config;
  /** `null`: the node could not be looked at. */
  readonly imageFilesystem: Filesystem | null;
}

export function kubeletChecks(facts: KubeletFacts): readonly DoctorCheck[] {
  const { signs, running, settings, problems } = facts.kubelet;
  const [sign] = [...running.map((pid) => `process ${pid}`), ...signs];
  if (sign === undefined) return [ok("kubelet", "there is no sign of a kubelet on this node")];
  const theirs = problems.length > 0 ? problems.join("; ") : theirConfig(settings);
  if (typeof theirs === "string")
    return [
      warning(
        "kubelet",
        `a kubelet belongs to this node (${sign}), and what it collects at cannot be read: ${theirs}`,
        null,
      ),
    ];
  const from = new Set(settings.map(({ source }) => source));
  const where =
    from.size === 0
      ? "and no setting of it was found, so it is taken to have its defaults"
      : `configured by ${[...from].join(", ")}`;
  return [
    ok("kubelet", `a kubelet belongs to this node (${sign}), ${where}`),
    ...collectionChecks(theirs),
    ...evictionChecks(theirs, facts),
  ];
}

/** What the kubelet has is read as our own flags are; a text says why it cannot be. */
function theirConfig(settings: KubeletFact["settings"]): Config | string {
  try {
    const flags = settings.flatMap(({ field, source, text }): readonly FlagText[] =>
      isFieldName(field) ? [{ name: field, written: source, text }] : [],
    );
    return loadConfig({ flags, env: {}, reader: { file: () => null, names: () => null } });
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.message.replaceAll("\n", "; ");
    throw thrown;
  }
}

/** Two collectors on one node: the kubelet's knows no keep rule, and forgets with each restart. */
function collectionChecks(theirs: Config): readonly DoctorCheck[] {
  const { highPercent, lowPercent, maximumAge } = theirs.limits.images;
  return [
    highPercent === 100
      ? ok("kubelet-image-gc", "the kubelet's own image collection is off")
      : warning(
          "kubelet-image-gc",
          `the kubelet collects images too, from ${highPercent}% down to ${lowPercent}%, and knows no keep rules`,
          "set imageGCHighThresholdPercent: 100 in its configuration and restart it",
        ),
    ...(maximumAge > 0n
      ? [
          warning(
            "kubelet-image-age",
            `the kubelet removes images that were unused for ${formatDuration(maximumAge)}, and knows no keep rules`,
            "take imageMaximumGCAge out of its configuration; crigc has --image-maximum-gc-age",
          ),
        ]
      : []),
  ];
}

/** Eviction that comes before collection evicts pods for space that unused images take. */
function evictionChecks(theirs: Config, facts: KubeletFacts): readonly DoctorCheck[] {
  const high = facts.ours.limits.images.highPercent;
  const nearest = theirs.limits.pressure.thresholds
    .filter((it) => signalsOf(facts.imageFilesystem).includes(it.signal))
    .flatMap((threshold) => {
      const percent = percentOf(threshold, facts.imageFilesystem);
      return percent === null ? [] : [{ threshold, percent }];
    })
    .toSorted((one, other) => other.percent - one.percent)[0];
  if (nearest === undefined || nearest.percent < 100 - high)
    return [
      ok("kubelet-eviction", `crigc starts at ${high}%, before the kubelet evicts for images`),
    ];
  const met = Math.round((100 - nearest.percent) * 10) / 10;
  return [
    warning(
      "kubelet-eviction",
      `the kubelet evicts for ${nearest.threshold.signal} at ${met}% used, and crigc starts at ${high}%: pods may go, and every unused image, before crigc has freed anything`,
      `set --image-gc-high-threshold to ${Math.max(1, Math.floor(met) - MARGIN_PERCENT)} or less`,
    ),
  ];
}

/** Room for what is written between two looks. */
const MARGIN_PERCENT = 5;

const signalsOf = (filesystem: Filesystem | null): readonly Threshold["signal"][] =>
  filesystem?.roles.includes("nodefs") === true
    ? ["imagefs.available", "nodefs.available"]
    : ["imagefs.available"];

/** Percent of the filesystem that has to be available; `null`: it cannot be told. */
function percentOf({ amount }: Threshold, filesystem: Filesystem | null): number | null {
  if (amount.kind === "fraction") return Math.round(amount.value * 10_000) / 100;
  if (filesystem === null || filesystem.capacityBytes <= 0n) return null;
  return Number((amount.value * 10_000n) / filesystem.capacityBytes) / 100;
}
