/** Reads `proto/runtime-v1.proto`. A macro: it runs while crigc is built, and the binary contains only its result. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import protobuf from "protobufjs";

/** As JSON, in the shape that protobufjs gives it. */
interface SchemaField {
  readonly id: number;
  readonly type: string;
  readonly rule?: "repeated";
  /** For maps, whose values have `type`. */
  readonly keyType?: string;
}

interface SchemaMethod {
  /** The HTTP/2 path: `/runtime.v1.ImageService/ListImages`. */
  readonly path: string;
  readonly requestType: string;
  readonly responseType: string;
  /** The response is any number of messages. */
  readonly responseStream: boolean;
}

export interface Schema {
  readonly messages: Readonly<
    Record<string, { readonly fields: Readonly<Record<string, SchemaField>> }>
  >;
  readonly methods: Readonly<Record<string, SchemaMethod>>;
}

const PACKAGE = "runtime.v1";

/** Enums become `int32` and services a table of methods: both load faster, and unknown enum values stay visible. */
export function readSchema(): Schema {
  const file = join(import.meta.dir, "../../proto/runtime-v1.proto");
  const { root } = protobuf.parse(readFileSync(file, "utf8"), { keepCase: true });
  root.resolveAll();
  const declared = root.lookup(PACKAGE);
  const all = declared instanceof protobuf.Namespace ? declared.nestedArray : [];
  const messages = all.flatMap((it) =>
    it instanceof protobuf.Type ? [[it.name, { fields: fieldsOf(it) }] as const] : [],
  );
  const methods = all.flatMap((it) => (it instanceof protobuf.Service ? methodsOf(it) : []));
  return { messages: Object.fromEntries(messages), methods: Object.fromEntries(methods) };
}

const fieldsOf = (message: protobuf.Type): Readonly<Record<string, SchemaField>> =>
  Object.fromEntries(
    message.fieldsArray.map((field) => {
      const type = field.resolvedType instanceof protobuf.Enum ? "int32" : field.type;
      const map = field instanceof protobuf.MapField ? { keyType: field.keyType } : {};
      const rule = field.repeated ? { rule: "repeated" as const } : {};
      return [field.name, { id: field.id, type, ...map, ...rule }];
    }),
  );

const methodsOf = (service: protobuf.Service): (readonly [string, SchemaMethod])[] =>
  service.methodsArray.map(({ name, requestType, responseType, responseStream = false }) => [
    name,
    { path: `/${PACKAGE}.${service.name}/${name}`, requestType, responseType, responseStream },
  ]);
