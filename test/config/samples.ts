// For every entry of the table: a value that is not its default, written for each source, and what it is then.

import { type FieldName, fieldNames, fieldOf } from "../../src/config/fields.ts";
import type { FieldType, Printed } from "../../src/config/types.ts";

export interface Sample {
  readonly name: FieldName;
  /** Behind the flag and in the variable. */
  readonly text: string;
  /** In a file, as JSON. */
  readonly inFile: unknown;
  /** As `crigc config` prints it. */
  readonly printed: Printed;
}

type Written = readonly [text: string, printed: Printed, inFile?: unknown];

/** Other values would contradict another field or its default. */
const OF_FIELD: Readonly<Partial<Record<FieldName, Written>>> = {
  imageGCHighThresholdPercent: ["90", 90],
};

const OF_KIND: Readonly<Record<Exclude<FieldType["kind"], "choice" | "statements">, Written>> = {
  integer: ["3", 3],
  duration: ["1w", "7d", "168h"],
  size: ["20GiB", "20Gi", 21_474_836_480],
  boolean: ["1", true],
  endpoint: ["/run/a.sock", "unix:///run/a.sock"],
  url: ["http://127.0.0.1:10255", "http://127.0.0.1:10255"],
  address: ["127.0.0.1:9419", "127.0.0.1:9419"],
  path: ["/srv/x/", "/srv/x", "/srv//x"],
  list: ["registry.local/**", ["registry.local/**"], "registry.local/**"],
};

const STATEMENTS: Readonly<Record<NonNullable<FieldType["statements"]>, Written>> = {
  threshold: ["nodefs.available<20Gi", { "nodefs.available": "20Gi" }],
  grace: ["nodefs.available=1m30s", { "nodefs.available": "1m30s" }],
  reclaim: ["nodefs.available=500Mi", { "nodefs.available": "500Mi" }],
};

function writtenFor({ kind, choices, statements = "grace" }: FieldType): Written {
  const choice = choices?.at(-1) ?? "";
  if (kind === "choice") return choice === "text" ? ["json", "json"] : [choice, choice];
  return kind === "statements" ? STATEMENTS[statements] : OF_KIND[kind];
}

export const SAMPLES: readonly Sample[] = fieldNames
  .filter((name) => fieldOf(name).outsideFiles !== true)
  .map((name) => {
    const [text, printed, inFile = printed] = OF_FIELD[name] ?? writtenFor(fieldOf(name).type);
    return { name, text, printed, inFile };
  });

/** Fields without which another one is refused. */
export const COMPANIONS: Readonly<Partial<Record<FieldName, FieldName>>> = {
  kubeletClientCert: "kubeletClientKey",
  kubeletClientKey: "kubeletClientCert",
  evictionSoft: "evictionSoftGracePeriod",
};
