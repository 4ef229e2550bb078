/** Configured values by their configuration-file names, for the documents `Config` and `Status`. */

import type { Config } from "../config/config.ts";
import { fieldNames, fieldOf } from "../config/fields.ts";
import { printed } from "../config/value/printed.ts";
import type { ValueStatus } from "../report/status.ts";

export const valuesOf = (
  config: Config,
): readonly (ValueStatus & { readonly from: readonly string[] })[] =>
  fieldNames.map((field) => {
    const { value, source, from } = config.values[field];
    return { field, value: printed(fieldOf(field).type, value), source, from };
  });
