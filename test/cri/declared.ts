// What proto/runtime-v1.proto declares, as tables that tests compare: messages, enums and methods.
import { join } from "node:path";

import { type AnyDefinition, loadSync, type MethodDefinition } from "@grpc/proto-loader";

export type FieldType =
  | { readonly kind: "scalar"; readonly scalar: string }
  | { readonly kind: "enum" | "message"; readonly name: string }
  /** `map<string, string>`, the only map that CRI has. */
  | { readonly kind: "strings" };

export interface Field {
  readonly number: number;
  readonly name: string;
  readonly repeated: boolean;
  readonly type: FieldType;
}

export interface Method {
  readonly service: string;
  readonly name: string;
  readonly path: string;
  readonly request: string;
  readonly response: string;
  readonly streamed: boolean;
  /** Writes an answer, as a runtime would. */
  readonly answer: (fields: object) => Buffer;
  /** Reads an answer as the library does. */
  readonly read: (bytes: Buffer) => object;
  /** Reads a request, as a runtime would. */
  readonly asked: (bytes: Buffer) => object;
}

const definitions = Object.entries(
  loadSync(join(import.meta.dir, "../../proto/runtime-v1.proto"), {
    keepCase: true,
    longs: String,
    defaults: true,
    arrays: true,
    objects: true,
  }),
).map(([name, definition]) => [name.replace("runtime.v1.", ""), definition] as const);

export const messages: ReadonlyMap<string, readonly Field[]> = new Map(
  definitions.flatMap(([name, definition]) =>
    isOf(definition, "DescriptorProto") ? [[name, fieldsOf(definition.type as Described)]] : [],
  ),
);

export const enums: ReadonlyMap<string, Readonly<Record<string, number>>> = new Map(
  definitions.flatMap(([name, definition]) => {
    if (!isOf(definition, "EnumDescriptorProto")) return [];
    const { value } = definition.type as { value: readonly { name: string; number: number }[] };
    return [[name, Object.fromEntries(value.map((it) => [it.name, it.number]))]];
  }),
);

export const methods: ReadonlyMap<string, Method> = new Map(
  definitions.flatMap(([service, definition]) =>
    "format" in definition
      ? []
      : Object.entries(definition).map(([name, method]) => [name, methodOf(service, name, method)]),
  ),
);

export function fieldsOfMessage(name: string): readonly Field[] {
  const fields = messages.get(name);
  if (fields === undefined) throw new Error(`the proto declares no message ${name}`);
  return fields;
}

function isOf(
  definition: AnyDefinition,
  format: string,
): definition is Extract<AnyDefinition, { format: string }> {
  return "format" in definition && definition.format === `Protocol Buffer 3 ${format}`;
}

interface Described {
  readonly name: string;
  readonly field: readonly {
    readonly name: string;
    readonly number: number;
    readonly label: string;
    readonly type: string;
    readonly typeName: string;
  }[];
  readonly nestedType: readonly (Described & { readonly options: { mapEntry?: boolean } | null })[];
}

function fieldsOf({ field: fields, nestedType }: Described): readonly Field[] {
  const maps = nestedType
    .filter(({ options, field }) => options?.mapEntry === true && field.every(isString))
    .map((it) => it.name);
  return fields.map(({ name, number, label, type, typeName }) => {
    const words = type.replace("TYPE_", "").toLowerCase();
    if (maps.includes(typeName))
      return { name, number, repeated: false, type: { kind: "strings" } };
    const repeated = label === "LABEL_REPEATED";
    if (words === "message" || words === "enum")
      return { name, number, repeated, type: { kind: words, name: typeName } };
    return { name, number, repeated, type: { kind: "scalar", scalar: words } };
  });
}

function isString({ type }: { readonly type: string }): boolean {
  return type === "TYPE_STRING";
}

function methodOf(service: string, name: string, method: MethodDefinition<object, object>): Method {
  return {
    service,
    name,
    path: method.path,
    request: (method.requestType.type as Described).name,
    response: (method.responseType.type as Described).name,
    streamed: method.responseStream,
    answer: method.responseSerialize,
    read: method.responseDeserialize,
    asked: method.requestDeserialize,
  };
}
