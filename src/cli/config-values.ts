/** Configured values by their configuration-file names, for the documents `Config` and `Status`. */

import type { Config } from "../config/config.ts";
import { fieldNames, fieldOf } from "../config/fields.ts";
import { printed } from "../config/values.ts";
import type { ValueStatus } from "../report/status.ts";

export const valuesOf = (
  config: Config,
): readonly (ValueStatus & { readonly from: readonly string[] })[] =>
  fieldNames.map((field) => {
    const { kind: source, from } = config.sources[field];
    const value = printed(fieldOf(field).type, config.values[field]);
    return { field, value, source, from };
  });
