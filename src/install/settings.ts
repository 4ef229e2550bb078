/** The settings given to `crigc print …`, as a configuration document and as flags. */
import { dashed, variablesOf } from "../config/field.ts";
import { fieldNames, fieldOf } from "../config/fields.ts";
import type { Settings } from "../config/settings.ts";
import { type Printed, printed, printedText } from "../config/values.ts";

export interface GivenSetting {
  /** `imageGCHighThresholdPercent`. */
  readonly name: string;
  readonly value: Printed;
  /** `--image-gc-high-threshold=70`; for a list, one per item. */
  readonly flags: readonly string[];
  /** `CRIGC_IMAGE_GC_HIGH_THRESHOLD`. */
  readonly variable: string;
  /** In the syntax of flags and variables; for a list, one per item. */
  readonly texts: readonly string[];
}

/** Settings of this command line and of the files that it names, not of this machine. */
export function givenSettings({ values, sources }: Settings): readonly GivenSetting[] {
  return fieldNames
    .filter((name) => GIVEN.includes(sources[name].kind) && fieldOf(name).outsideFiles !== true)
    .map((name) => {
      const field = fieldOf(name);
      const value = printed(field.type, values[name]);
      const texts = Array.isArray(value) ? value : [printedText(field.type, values[name])];
      const flags = texts.map((text) => `${dashed(field.flag)}=${text}`);
      return { name, value, flags, variable: variablesOf(field)[0] ?? "", texts };
    });
}

const GIVEN: readonly string[] = ["flag", "file", "drop-in"];

/** A whole configuration file, with values in JSON, which is valid YAML. */
export function settingsDocument(settings: readonly GivenSetting[]): string {
  const groups = new Map<string, string[]>();
  for (const { name, value } of settings) {
    const [outer = "", inner] = name.split(".");
    const text = JSON.stringify(value ?? "off");
    if (inner === undefined) groups.set(outer, [`${outer}: ${text}`]);
    else groups.set(outer, [...(groups.get(outer) ?? [`${outer}:`]), `  ${inner}: ${text}`]);
  }
  return [
    "apiVersion: crigc/v1",
    "kind: CrigcConfiguration",
    ...[...groups.values()].flat(),
    "",
  ].join("\n");
}
