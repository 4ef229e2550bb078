/** Validates values against each other. Each issue names both values and their sources. */
import type { ConfigIssue } from "../model/errors.ts";
import { whyIgnored, withoutGrace } from "./eviction.ts";
import { dashed } from "./field.ts";
import {
  type FieldName,
  fieldNames,
  fieldOf,
  isFieldName,
  namedInFull,
  type Values,
} from "./fields.ts";
import { type Settings, shown } from "./settings.ts";

export function contradictions(settings: Settings): readonly ConfigIssue[] {
  const { values } = settings;
  return [
    ...ordersOf(values).flatMap((order) => (order[3] ? [] : [orderIssue(settings, order)])),
    ...COMPANIONS.filter(([name, other]) => values[name] !== null && values[other] === null).map(
      ([name, other]) =>
        issueOf(settings, name, `has no effect without ${namedInFull(other)}; set both`),
    ),
    ...withoutGrace(values).map((signal) => ({
      source: placeOf(settings, "evictionSoft"),
      text: signal,
      message: `the soft threshold ${signal} has no grace period; set one with ${namedInFull("evictionSoftGracePeriod")}`,
    })),
    ...impliedIssues(settings),
  ];
}

/** `name must … other`, and whether it does. */
type Order = readonly [name: FieldName, must: string, other: FieldName, holds: boolean];

function ordersOf(values: Values): readonly Order[] {
  const { imageGCLowThresholdPercent: low, imageGCHighThresholdPercent: high } = values;
  const { imageMaximumGCAge: maximum, imageMinimumGCAge: minimum } = values;
  return [
    ["imageGCLowThresholdPercent", "be below", "imageGCHighThresholdPercent", low < high],
    [
      "imageMaximumGCAge",
      "be 0s or above",
      "imageMinimumGCAge",
      maximum === 0n || maximum > minimum,
    ],
  ];
}

/** The first has no effect without the second. */
const COMPANIONS: readonly (readonly [FieldName, FieldName])[] = [
  ["kubeletClientCert", "kubeletClientKey"],
  ["kubeletClientKey", "kubeletClientCert"],
];

/** What the values of some fields imply of others. */
export const impliedBy = (settings: Settings) =>
  fieldNames.flatMap((by) =>
    Object.entries(fieldOf(by).implies?.[shown(settings, by)] ?? {}).flatMap(([name, value]) =>
      isFieldName(name) ? [{ by, name, value }] : [],
    ),
  );

const impliedIssues = (settings: Settings): readonly ConfigIssue[] =>
  impliedBy(settings)
    .filter(({ name, value }) => !isDefault(settings, name) && settings.values[name] !== value)
    .map(({ by, name }) => {
      const other = `${nameOf(settings, by)} ${shown(settings, by)}${fromOf(settings, by)}`;
      return issueOf(settings, name, `contradicts ${other}; leave one of them out`);
    });

const EVICTION = [
  "evictionHard",
  "evictionSoft",
  "evictionSoftGracePeriod",
  "evictionMinimumReclaim",
] as const;

/** Signals that crigc ignores, each with its first place. */
export function warningsOf(settings: Settings): readonly string[] {
  const places = EVICTION.flatMap((name) =>
    Object.keys(settings.values[name]).map((signal) => [signal, placeOf(settings, name)] as const),
  );
  return [...new Map(places.toReversed())].toReversed().flatMap(([signal, place]) => {
    const why = whyIgnored(signal);
    return why === null ? [] : [`${place}: ${signal} ${why}`];
  });
}

function orderIssue(settings: Settings, [name, must, other]: Order): ConfigIssue {
  const [text, than] = [shown(settings, name), shown(settings, other)];
  // Blames the value that was set; a default is not to blame.
  if (!isDefault(settings, name) || isDefault(settings, other)) {
    const bound = `${nameOf(settings, other)}, which is ${than}${fromOf(settings, other)}`;
    return issueOf(settings, name, `must ${must} ${bound}`);
  }
  const message = `${name} is ${text} by default and must ${must} ${than}`;
  return { source: placeOf(settings, other), text: than, message };
}

function issueOf(settings: Settings, name: FieldName, message: string): ConfigIssue {
  const text = shown(settings, name);
  return { source: placeOf(settings, name), text, message: `${name} is ${text} and ${message}` };
}

/** As the operator wrote it, or may write it. */
const nameOf = ({ sources }: Settings, name: FieldName): string =>
  ["flag", "default"].includes(sources[name].kind) ? dashed(fieldOf(name).flag) : name;

/** Where the value is from, unless its name says it. */
function fromOf(settings: Settings, name: FieldName): string {
  if (settings.sources[name].kind === "flag") return "";
  return isDefault(settings, name) ? " by default" : ` (${placeOf(settings, name)})`;
}

const isDefault = ({ sources }: Settings, name: FieldName): boolean =>
  ["default", "kubelet"].includes(sources[name].kind);

const placeOf = ({ sources }: Settings, name: FieldName): string =>
  sources[name].from.at(-1) ?? "default";
