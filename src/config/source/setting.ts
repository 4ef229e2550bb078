/** One value from one source, before the sources are merged. */
import { type ConfigIssue, configIssue } from "../../model/errors.ts";
import { dashed, type FieldValue } from "../field.ts";
import { type FieldName, fieldOf } from "../fields.ts";

/** From the lowest to the highest. */
export type SourceKind = "default" | "file" | "drop-in" | "environment" | "agent" | "flag";

export interface Place {
  readonly kind: Exclude<SourceKind, "default">;
  /** `/etc/crigc/crigc.yaml:12`, `CRIGC_MAX_IMAGES`, `--max-images`. */
  readonly at: string;
}

export interface Setting {
  readonly name: FieldName;
  readonly place: Place;
  /** `reset`: null in a file, which drops lower sources; `removed`: signals that a map drops. */
  readonly change:
    | { readonly kind: "set"; readonly value: FieldValue; readonly removed: readonly string[] }
    | { readonly kind: "reset" };
}

/** The content of a source: its settings, issues and warnings. */
export interface Layer {
  readonly settings: readonly Setting[];
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly string[];
}

export const emptyLayer: Layer = { settings: [], issues: [], warnings: [] };

export const joined = (layers: readonly Layer[]): Layer => ({
  settings: layers.flatMap((layer) => layer.settings),
  issues: layers.flatMap((layer) => layer.issues),
  warnings: layers.flatMap((layer) => layer.warnings),
});

export const settingOf = (name: FieldName, place: Place, value: FieldValue): Setting => ({
  name,
  place,
  change: { kind: "set", value, removed: [] },
});

/** An invalid value. The message names both field and flag, whichever was used. */
export function valueIssue(about: {
  readonly name: FieldName;
  readonly place: Place;
  readonly text: string;
  readonly message: string;
}): ConfigIssue {
  const { name, place, text, message } = about;
  const flag = `flag ${dashed(fieldOf(name).flag)}`;
  const words =
    place.kind === "flag"
      ? `${message} (${name})`
      : place.kind === "environment"
        ? `${message} (${name}, ${flag})`
        : `${name}: ${message} (${flag})`;
  return configIssue(place.at, text, words);
}
