/** The embedded CRI subset, parsed when the first call needs it. */
// oxlint-disable-next-line typescript/triple-slash-reference -- an ambient type for the bundler's own kind of import
/// <reference path="../../proto/embedded.d.ts" />
import text from "../../proto/runtime-v1.proto" with { type: "text" };
import { assert } from "../model/assert.ts";
import { encodeMessage, type Fields } from "./encode.ts";
import type { Answers } from "./messages.ts";
import { type Method, parseSchema, type Schema } from "./schema.ts";
import { decodeMessage } from "./wire.ts";

let parsed: Schema | undefined;

export function criSchema(): Schema {
  parsed ??= parseSchema(text);
  return parsed;
}

/** What HTTP/2 is asked for: `/runtime.v1.ImageService/ListImages`. */
export const pathOf = (method: keyof Answers): string => declared(method).path;

export const encodeRequest = (method: keyof Answers, request: Fields): Buffer =>
  encodeMessage(declared(method).request, request);

export function decodeAnswer<M extends keyof Answers>(method: M, bytes: Uint8Array): Answers[M] {
  const answer: unknown = decodeMessage(declared(method).response, bytes);
  // The tables that decode and the types of messages.ts say the same; a test holds them together.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return answer as Answers[M];
}

function declared(name: keyof Answers): Method {
  const method = criSchema().methods.get(name);
  assert(method !== undefined, `runtime-v1.proto declares no method ${name}`);
  return method;
}
