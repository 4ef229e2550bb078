/** Encodes requests and decodes responses by the schema, with `@grpc/proto-loader`. */
import { type AnyDefinition, fromJSON, type MessageTypeDefinition } from "@grpc/proto-loader";

import { assert } from "../model/assert.ts";
import type { Answers } from "./messages.ts";
import { readSchema, type Schema } from "./schema.ts" with { type: "macro" };
import { BYTES, checkMessage, MalformedError, type Shape, VARINT } from "./wire.ts";

const { messages, methods }: Schema = readSchema();

type Message = Schema["messages"][string];

export type Method = keyof Answers;

/** The HTTP/2 path of a call: `/runtime.v1.ImageService/ListImages`. */
export const pathOf = (method: Method): string => declared(method).path;

/** The response is any number of messages. */
export const isStream = (method: Method): boolean => declared(method).responseStream;

const NO_FIELDS = Buffer.alloc(0);

export const encodeRequest = (method: Method, request: object): Buffer =>
  Object.keys(request).length === 0
    ? NO_FIELDS
    : messageOf(declared(method).requestType).serialize(request);

/** Throws `MalformedError`. */
export function decodeAnswer<M extends Method>(method: M, bytes: Buffer): Answers[M] {
  const { responseType } = declared(method);
  checkMessage(bytes, shapeOf(responseType));
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- tests compare the types with the proto
    return messageOf(responseType).deserialize(bytes) as Answers[M];
  } catch (thrown) {
    throw new MalformedError(thrown instanceof Error ? thrown.message : String(thrown), {
      cause: thrown,
    });
  }
}

function declared(method: Method): Schema["methods"][string] {
  const found = methods[method];
  assert(found !== undefined, `the proto declares no method ${method}`);
  return found;
}

/** Absent messages are `null`, other absent fields have their default, and integers of 64 bits are exact. */
const OPTIONS = { keepCase: true, longs: BigInt, defaults: true };

type Codec = MessageTypeDefinition<object, object>;

const codecs = new Map<string, Codec>();

/** The library prepares one message at a time: a command needs few of them, and all take 8 ms. */
function messageOf(name: string): Codec {
  const known = codecs.get(name);
  if (known !== undefined) return known;
  const codec = fromJSON({ nested: withNested(name) }, OPTIONS)[name];
  assert(codec !== undefined && isMessage(codec), `the proto declares no message ${name}`);
  codecs.set(name, codec);
  return codec;
}

function withNested(name: string, found: Record<string, Message> = {}): typeof found {
  const message = messages[name];
  if (message === undefined || found[name] !== undefined) return found;
  found[name] = message;
  for (const { type } of Object.values(message.fields)) withNested(type, found);
  return found;
}

const isMessage = (definition: AnyDefinition): definition is Codec =>
  definition["format"] === "Protocol Buffer 3 DescriptorProto";

const shapes = new Map<string, Shape>();

function shapeOf(name: string): Shape {
  const known = shapes.get(name);
  if (known !== undefined) return known;
  const shape: Shape[number][] = [];
  for (const { id, type, keyType } of Object.values(messages[name]?.fields ?? {}))
    shape[id] =
      keyType === undefined ? fieldShape(type) : [undefined, fieldShape(keyType), fieldShape(type)];
  shapes.set(name, shape);
  return shape;
}

function fieldShape(type: string): Shape[number] {
  if (messages[type] !== undefined) return shapeOf(type);
  return type === "string" || type === "bytes" ? BYTES : VARINT;
}
