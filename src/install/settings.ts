/** The settings that stood behind `crigc print …`, as a configuration document and as flags, so that what is printed holds them. */
import { dashed } from "../config/field.ts";
import { fieldNames, fieldOf } from "../config/fields.ts";
import type { Merged } from "../config/merge.ts";
import { type Printed, printed, printedText } from "../config/value.ts";

export interface GivenSetting {
  /** `imageGCHighThresholdPercent`. */
  readonly name: string;
  readonly value: Printed;
  /** `--image-gc-high-threshold=70`; of a list one for each text. */
  readonly flags: readonly string[];
}

/** Only what this command line says: files and variables of this machine belong to it, not to another one. */
export function givenSettings(values: Merged): readonly GivenSetting[] {
  return fieldNames
    .filter((name) => values[name].source === "flag" && fieldOf(name).outsideFiles !== true)
    .map((name) => {
      const { type, flag } = fieldOf(name);
      const value = printed(type, values[name].value);
      const texts = Array.isArray(value) ? value : [printedText(type, values[name].value)];
      return { name, value, flags: texts.map((text) => `${dashed(flag)}=${text}`) };
    });
}

/** A whole configuration file, in JSON's notation for the values, which YAML reads. */
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
