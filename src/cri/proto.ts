/** The embedded CRI subset and the codec that it describes, loaded when the first call needs them. */
// oxlint-disable-next-line typescript/triple-slash-reference -- an ambient type for the bundler's own kind of import
/// <reference path="../../proto/embedded.d.ts" />
import type { MethodDefinition, PackageDefinition } from "@grpc/proto-loader";

import path from "../../proto/runtime-v1.proto" with { type: "file" };
import { assert } from "../model/assert.ts";
import { messageOf } from "../model/errors.ts";
import { MalformedError } from "./malformed.ts";
import type { Answers, ListMethod } from "./messages.ts";

/** Fields by name; what is absent or `null` is not sent. */
export type Fields = Readonly<Record<string, unknown>>;

export interface Codec {
  /** What HTTP/2 is asked for: `/runtime.v1.ImageService/ListImages`. */
  pathOf(method: keyof Answers): string;
  encode(method: keyof Answers, request: Fields): Buffer;
  /** Every declared field is set: absent ones to the default of proto3, absent messages to `null`. Throws `MalformedError`. */
  decode<M extends keyof Answers>(method: M, bytes: Buffer): Answers[M];
  /** The number of the field that holds the entries of a list. */
  entriesField(method: ListMethod): number;
}

let loading: Promise<Codec> | undefined;

/** One for all connections. Reading the schema takes longer than any call: commands that make none do not pay for it. */
export async function criCodec(): Promise<Codec> {
  return (loading ??= load());
}

async function load(): Promise<Codec> {
  const { loadSync } = await import("@grpc/proto-loader");
  const methods = methodsIn(loadSync(path, asDeclared));
  const declared = (name: keyof Answers): Method => {
    const method = methods.get(name);
    assert(method !== undefined, `runtime-v1.proto declares no method ${name}`);
    return method;
  };
  return {
    pathOf: (name) => declared(name).path,
    encode: (name, request) => encoded(declared(name), request),
    decode: <M extends keyof Answers>(name: M, bytes: Buffer) =>
      // The proto and the types of messages.ts say the same; a test holds them together.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      decoded(declared(name), bytes) as Answers[M],
    entriesField: (name) => entriesField(name, declared(name)),
  };
}

/** What messages.ts has types for: names as in the file, integers of 64 bits as text, enums as numbers, no field missing. */
const asDeclared = { keepCase: true, longs: String, defaults: true, arrays: true, objects: true };

type Method = MethodDefinition<object, object>;

function methodsIn(definition: PackageDefinition): ReadonlyMap<string, Method> {
  const services = ["runtime.v1.RuntimeService", "runtime.v1.ImageService"];
  return new Map(services.flatMap((name) => Object.entries(definition[name] ?? {})));
}

/** A message without fields has no bytes, and the library need not make a coder for it: most requests are empty. */
function encoded(method: Method, request: Fields): Buffer {
  return Object.keys(request).length === 0 ? Buffer.alloc(0) : method.requestSerialize(request);
}

function decoded(method: Method, bytes: Buffer): object {
  try {
    return method.responseDeserialize(bytes);
  } catch (thrown) {
    throw new MalformedError(messageOf(thrown), { cause: thrown });
  }
}

/** The only field of a list's answer. */
function entriesField(name: ListMethod, method: Method): number {
  // The loader's type says no more of a descriptor than that it is an object.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { field } = method.responseType.type as { readonly field: readonly { number: number }[] };
  const [entries, ...others] = field;
  assert(entries !== undefined && others.length === 0, `the answer of ${name} is no list`);
  return entries.number;
}
