// The methods of the proto: what a runtime writes and reads, as the library does it.
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { loadSync } from "@grpc/proto-loader";
import protobuf from "protobufjs";

const PROTO = join(import.meta.dir, "../../proto/runtime-v1.proto");

export interface Method {
  readonly path: string;
  readonly streamed: boolean;
  /** Writes an answer, as a runtime would. */
  readonly answer: (fields: object) => Buffer;
  /** Reads an answer as the library does. */
  readonly read: (bytes: Buffer) => object;
  /** Reads a request, as a runtime would. */
  readonly asked: (bytes: Buffer) => object;
}

export const declared: ReadonlyMap<string, Method> = new Map(
  Object.values(loadSync(PROTO, { keepCase: true, longs: String, defaults: true })).flatMap(
    (definition) =>
      "format" in definition
        ? []
        : Object.entries(definition).map(([name, method]) => [
            name,
            {
              path: method.path,
              streamed: method.responseStream,
              answer: method.responseSerialize,
              read: method.responseDeserialize,
              asked: method.requestDeserialize,
            },
          ]),
  ),
);

const { root } = protobuf.parse(readFileSync(PROTO, "utf8"), { keepCase: true });
root.resolveAll();

/** The response of a method. */
export function responseOf(path: string): protobuf.Type | null {
  const [, service = "", name = ""] = path.split("/");
  return root.lookupService(service).methods[name]?.resolvedResponseType ?? null;
}
