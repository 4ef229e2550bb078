/** A KubeletConfiguration as crigc's own file, and the default thresholds beside a kubelet. */
import { isMap } from "../model/values.ts";
import type { Entry } from "./document.ts";
import { isDiskSignal, isKnownSignal } from "./eviction.ts";
import { type FieldName, fieldNames, fieldOf, isFieldName, type Values } from "./fields.ts";
import { type Settings, shown, type Source } from "./settings.ts";
import { parseDuration } from "./units.ts";

const ADOPTED: readonly string[] = fieldNames.filter((name) => fieldOf(name).kubelet === true);

/** The entries of a KubeletConfiguration that crigc adopts; in it null, "" and a duration of zero count as missing. */
export const fromKubelet = (entries: readonly Entry[]): readonly Entry[] =>
  entries
    .filter(({ name, value }) => ADOPTED.includes(name) && value !== null && value !== "")
    .flatMap((entry) => {
      const { name, value } = entry;
      if (!isFieldName(name)) return [];
      const { kind } = fieldOf(name).type;
      if (kind === "duration" && parseDuration(String(value)) === 0n) return [];
      return [kind === "statements" && isMap(value) ? { ...entry, value: disksOf(value) } : entry];
    });

/** Without the kubelet's signals that are not about disks. */
const disksOf = (
  statements: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(statements).filter(([signal]) => isDiskSignal(signal) || !isKnownSignal(signal)),
  );

/** Reached before a kubelet's defaults, so that crigc frees space before the kubelet collects images or evicts pods. */
const BESIDE = {
  imageGCHighThresholdPercent: 75,
  imageGCLowThresholdPercent: 70,
  evictionHard: {
    "nodefs.available": "15%",
    "nodefs.inodesFree": "10%",
    "imagefs.available": "20%",
    "imagefs.inodesFree": "10%",
  },
} as const satisfies Partial<Values>;

/** With the default thresholds beside a kubelet. */
export function besideKubelet(settings: Settings): Settings {
  const { values, sources } = settings;
  const isOwn = (name: FieldName): boolean =>
    fieldOf(name).ownDefaults?.includes(shown(settings, name)) === true;
  if (fieldNames.some(isOwn)) return settings;
  const source: Source = { kind: "kubelet", from: ["beside a kubelet"] };
  const unset = Object.entries(BESIDE).filter(
    ([name]) => isFieldName(name) && sources[name].kind === "default",
  );
  return {
    values: { ...values, ...Object.fromEntries(unset) },
    sources: { ...sources, ...Object.fromEntries(unset.map(([name]) => [name, source])) },
  };
}
