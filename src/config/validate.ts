/** Validates values against each other. Each issue names both values and their sources. */
import type { ConfigIssue } from "../model/errors.ts";
import { dashed } from "./field.ts";
import { type FieldName, fieldOf, namedInFull, type Values } from "./fields.ts";
import { bareValues, type Merged } from "./source/merge.ts";
import { thresholdsOf, type ThresholdsRead } from "./value/eviction.ts";
import { shownText } from "./value/printed.ts";

export interface Validated {
  readonly values: Values;
  readonly thresholds: ThresholdsRead;
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly string[];
}

export function validated(merged: Merged): Validated {
  const values = bareValues(merged);
  const thresholds = thresholdsOf({
    hard: values.evictionHard,
    soft: values.evictionSoft,
    grace: values.evictionSoftGracePeriod,
    reclaim: values.evictionMinimumReclaim,
  });
  const issues = [
    ...ORDERS.filter(({ holds }) => !holds(values)).map((order) => orderIssue(merged, order)),
    ...inodeIssues(merged, values),
    ...graceIssues(merged, thresholds),
    ...kubeletClientIssues(merged, values),
    ...compatIssues(merged, values),
  ];
  return { values, thresholds, issues, warnings: warningsOf(merged, thresholds) };
}

interface Order {
  readonly name: FieldName;
  readonly must: string;
  readonly other: FieldName;
  readonly holds: (values: Values) => boolean;
}

const ORDERS: readonly Order[] = [
  {
    name: "imageGCLowThresholdPercent",
    must: "be below",
    other: "imageGCHighThresholdPercent",
    holds: (it) => it.imageGCLowThresholdPercent < it.imageGCHighThresholdPercent,
  },
  {
    name: "imageMaximumGCAge",
    must: "be 0s or above",
    other: "imageMinimumGCAge",
    holds: ({ imageMaximumGCAge: maximum, imageMinimumGCAge: minimum }) =>
      maximum === 0n || maximum > minimum,
  },
  {
    name: "imageGCInodeLowThresholdPercent",
    must: "be below",
    other: "imageGCInodeHighThresholdPercent",
    holds: ({ imageGCInodeHighThresholdPercent: high, imageGCInodeLowThresholdPercent: low }) =>
      high === null || low === null || low < high,
  },
];

function inodeIssues(merged: Merged, values: Values): readonly ConfigIssue[] {
  const { imageGCInodeHighThresholdPercent: high, imageGCInodeLowThresholdPercent: low } = values;
  if (high !== null || low === null) return [];
  const needed = namedInFull("imageGCInodeHighThresholdPercent");
  return [
    issueOf(merged, "imageGCInodeLowThresholdPercent", `has no effect without ${needed}; set both`),
  ];
}

const graceIssues = (merged: Merged, { withoutGrace }: ThresholdsRead): readonly ConfigIssue[] =>
  withoutGrace.map((signal) => ({
    source: placeOf(merged, "evictionSoft"),
    text: signal,
    message: `the soft threshold ${signal} has no grace period; set one with ${namedInFull("evictionSoftGracePeriod")}`,
  }));

function kubeletClientIssues(merged: Merged, values: Values): readonly ConfigIssue[] {
  const { kubeletClientCert: cert, kubeletClientKey: key } = values;
  if ((cert === null) === (key === null)) return [];
  const [given, missing]: readonly [FieldName, FieldName] =
    cert === null
      ? ["kubeletClientKey", "kubeletClientCert"]
      : ["kubeletClientCert", "kubeletClientKey"];
  return [issueOf(merged, given, `has no effect without ${namedInFull(missing)}; set both`)];
}

/** Settings that contradict `--compat kubelet`. */
function compatIssues(merged: Merged, values: Values): readonly ConfigIssue[] {
  if (values.compat !== "kubelet") return [];
  const contradicting: readonly (readonly [FieldName, boolean])[] = [
    ["spaceAccounting", values.spaceAccounting !== "reported"],
    ["whenFutile", values.whenFutile !== "collect"],
    ["bootGrace", values.bootGrace !== 0n],
    ["collectForeign", !values.collectForeign],
    ["imageGCInodeHighThresholdPercent", values.imageGCInodeHighThresholdPercent !== null],
    ["imageStoreBudget", values.imageStoreBudget !== null],
    ["maxImages", values.maxImages !== null],
  ];
  return contradicting
    .filter(([name, contradicts]) => contradicts && merged[name].source !== "default")
    .map(([name]) =>
      issueOf(
        merged,
        name,
        `contradicts ${nameOf(merged, "compat")} kubelet${fromOf(merged, "compat")}; leave one of them out`,
      ),
    );
}

function warningsOf(merged: Merged, { notOurs }: ThresholdsRead): readonly string[] {
  const eviction: readonly FieldName[] = [
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMinimumReclaim",
  ];
  return notOurs.map((signal) => {
    const name = eviction.find((it) => Object.hasOwn(Object(merged[it].value), signal));
    return `${placeOf(merged, name ?? "evictionHard")}: ${signal} is not a disk signal; crigc ignores it and leaves it to the kubelet`;
  });
}

function orderIssue(merged: Merged, { name, must, other }: Order): ConfigIssue {
  const message = `must ${must} ${nameOf(merged, other)}, which is ${textOf(merged, other)}${fromOf(merged, other)}`;
  // Blames the value that was set; a default is not to blame.
  if (merged[name].source !== "default" || merged[other].source === "default")
    return issueOf(merged, name, message);
  return {
    source: placeOf(merged, other),
    text: textOf(merged, other),
    message: `${name} is ${textOf(merged, name)} by default and must ${must} ${textOf(merged, other)}`,
  };
}

const issueOf = (merged: Merged, name: FieldName, message: string): ConfigIssue => ({
  source: placeOf(merged, name),
  text: textOf(merged, name),
  message: `${name} is ${textOf(merged, name)} and ${message}`,
});

/** As the operator wrote it, or may write it. */
const nameOf = (merged: Merged, name: FieldName): string =>
  ["flag", "default"].includes(merged[name].source) ? dashed(fieldOf(name).flag) : name;

/** Where the value is from, unless its name says it. */
function fromOf(merged: Merged, name: FieldName): string {
  const { source } = merged[name];
  if (source === "flag") return "";
  return source === "default" ? " by default" : ` (${placeOf(merged, name)})`;
}

const placeOf = (merged: Merged, name: FieldName): string => merged[name].from.at(-1) ?? "default";

const textOf = (merged: Merged, name: FieldName): string =>
  shownText(fieldOf(name).type, merged[name].value);
