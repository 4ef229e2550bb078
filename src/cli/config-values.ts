/** Configured values by their names in the configuration file, for the documents `Config` and `Status`. */

import type { Config } from "../config/config.ts";
import { fieldNames, fieldOf } from "../config/fields.ts";
import { printed } from "../config/value/value.ts";
import type { ValueStatus } from "../report/document/status.ts";

export const valuesOf = (config: Config): readonly ValueStatus[] =>
  fieldNames.map((field) => {
    const { value, source } = config.values[field];
    return { field, value: printed(fieldOf(field).type, value), source };
  });
