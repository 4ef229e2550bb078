// SEE src/cri/000-READ-ME-FIRST.txt (from the lead): replace this by @grpc/proto-loader.
/** Reads the subset of proto3 that `proto/runtime-v1.proto` is written in into tables for the codec. */
import { assert } from "../model/assert.ts";

export type Scalar = "string" | "bool" | "int32" | "uint32" | "int64" | "uint64";

export type FieldType =
  | { readonly kind: "scalar"; readonly scalar: Scalar }
  /** Kept as its number: a value that we do not know must not look like one that we do. */
  | { readonly kind: "enum"; readonly name: string }
  | { readonly kind: "message"; readonly message: MessageType }
  /** `map<string, string>`, the only map that CRI has. */
  | { readonly kind: "strings" };

export interface Field {
  readonly number: number;
  readonly name: string;
  readonly repeated: boolean;
  readonly type: FieldType;
}

export interface MessageType {
  readonly name: string;
  readonly fields: readonly Field[];
  readonly byNumber: ReadonlyMap<number, Field>;
}

export interface Method {
  readonly name: string;
  readonly service: string;
  /** As HTTP/2 asks for it: `/runtime.v1.ImageService/ListImages`. */
  readonly path: string;
  readonly request: MessageType;
  readonly response: MessageType;
  readonly streamed: boolean;
}

export interface Schema {
  readonly messages: ReadonlyMap<string, MessageType>;
  /** Value names by enum, with their numbers. */
  readonly enums: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly methods: ReadonlyMap<string, Method>;
}

/** The text is ours and embedded, so that anything unexpected in it is a bug: it asserts. */
export function parseSchema(text: string): Schema {
  const source = text.replaceAll(/\/\/.*$/gm, "");
  const packageName = /^package ([\w.]+);/m.exec(source)?.[1] ?? "";
  const blocks = [...source.matchAll(/^(message|enum|service) (\w+) \{([^}]*)\}/gm)].map(
    ([, keyword = "", name = "", body = ""]) => ({ keyword, name, lines: statements(body) }),
  );
  const enums = new Map<string, ReadonlyMap<string, number>>();
  const messages = new Map<string, Draft>();
  for (const { keyword, name, lines } of blocks) {
    if (keyword === "enum") enums.set(name, parseEnum(lines));
    if (keyword === "message") messages.set(name, { name, fields: [], byNumber: new Map() });
  }
  const methods = new Map<string, Method>();
  for (const { keyword, name, lines } of blocks) {
    const draft = keyword === "message" ? messages.get(name) : undefined;
    for (const line of draft === undefined ? [] : lines)
      addField(draft, parseField(line, { messages, enums }));
    if (keyword !== "service") continue;
    for (const line of lines) {
      const method = parseMethod(line, `${packageName}.${name}`, messages);
      methods.set(method.name, method);
    }
  }
  return { messages, enums, methods };
}

interface Draft extends MessageType {
  readonly fields: Field[];
  readonly byNumber: Map<number, Field>;
}

interface Names {
  readonly messages: ReadonlyMap<string, MessageType>;
  readonly enums: ReadonlyMap<string, unknown>;
}

function statements(body: string): readonly string[] {
  return body
    .split(";")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

function parseEnum(lines: readonly string[]): ReadonlyMap<string, number> {
  return new Map(
    lines.map((line) => {
      const match = /^(\w+) = (\d+)$/.exec(line);
      assert(match !== null, `this is no enum value: ${line}`);
      return [match[1] ?? "", Number(match[2])];
    }),
  );
}

function addField(draft: Draft | undefined, field: Field): void {
  assert(
    draft !== undefined && !draft.byNumber.has(field.number),
    `${field.name} is declared twice`,
  );
  draft.fields.push(field);
  draft.byNumber.set(field.number, field);
}

function parseField(line: string, names: Names): Field {
  const match = /^(repeated )?(map<string, string>|\w+) (\w+) = (\d+)$/.exec(line);
  assert(match !== null, `this is no field: ${line}`);
  const [, repeated, typeName = "", name = "", number] = match;
  const type = fieldType(typeName, names);
  // Repeated numbers are packed on the wire; CRI gives us none to read.
  const plain = type.kind === "message" || (type.kind === "scalar" && type.scalar === "string");
  assert(repeated === undefined || plain, `the codec reads no such list: ${line}`);
  return { number: Number(number), name, repeated: repeated !== undefined, type };
}

const scalars: ReadonlySet<string> = new Set<Scalar>([
  "string",
  "bool",
  "int32",
  "uint32",
  "int64",
  "uint64",
]);

const isScalar = (name: string): name is Scalar => scalars.has(name);

function fieldType(name: string, { messages, enums }: Names): FieldType {
  if (name.startsWith("map<")) return { kind: "strings" };
  if (isScalar(name)) return { kind: "scalar", scalar: name };
  if (enums.has(name)) return { kind: "enum", name };
  return { kind: "message", message: messageNamed(name, messages) };
}

function parseMethod(line: string, service: string, messages: Names["messages"]): Method {
  const match = /^rpc (\w+)\((\w+)\) returns \((stream )?(\w+)\)$/.exec(line);
  assert(match !== null, `this is no method: ${line}`);
  const [, name = "", request = "", stream, response = ""] = match;
  return {
    name,
    service,
    path: `/${service}/${name}`,
    request: messageNamed(request, messages),
    response: messageNamed(response, messages),
    streamed: stream !== undefined,
  };
}

function messageNamed(name: string, messages: Names["messages"]): MessageType {
  const message = messages.get(name);
  assert(message !== undefined, `the message ${name} is not declared`);
  return message;
}
