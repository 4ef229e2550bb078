// Names, numbers and types of CRI, as crigc's messages and the proto declare them apart from each other.
import { expect, test } from "bun:test";

import protobuf from "protobufjs";

import { cutEntries, encode, ENTRIES_FIELD, type Fields } from "../../src/cri/codec.ts";
import { methods } from "../../src/cri/messages.ts";
import { declared, typesOf } from "./declared.ts";

test.each(Object.entries(methods))("%s is declared as in CRI", (name, method) => {
  const theirs = declared.get(name)!;
  const { path, isStream } = method;
  expect({ name: method.name, path, isStream }).toEqual({
    name,
    path: theirs.path,
    isStream: theirs.streamed,
  });
  const [request, response] = typesOf(path);

  const asked = sampleOf(method.request.fields, request);
  expect(theirs.asked(encode(method.request.fields, asked))).toMatchObject(asLibrary(asked));

  if (!/^(?:List(?!ContainerStats)|Stream)/.test(name)) {
    const answer = sampleOf(method.answer.fields, response);
    expect(method.answer.decode(theirs.answer(asLibrary(answer))) as object).toEqual(answer);
    return;
  }
  const [entries, ...others] = response?.fieldsArray ?? [];
  expect([entries?.id, entries?.repeated, others]).toEqual([ENTRIES_FIELD, true, []]);
  const entry = sampleOf(method.answer.fields, entries?.resolvedType);
  const read: object[] = [];
  cutEntries(theirs.answer(asLibrary({ [entries?.name ?? ""]: [entry, entry] })), (bytes) =>
    read.push(method.answer.decode(bytes)),
  );
  expect(read).toEqual([entry, entry]);
});

const SAMPLES: Readonly<Record<string, unknown>> = {
  string: "text",
  bool: true,
  int32: -5,
  uint32: 2 ** 32 - 1,
  int64: -(2n ** 62n),
  uint64: 2n ** 64n - 1n,
};

/** A message with a value in each of our fields, by the types that the proto gives them. */
function sampleOf(ours: Fields, theirs: unknown): object {
  if (!(theirs instanceof protobuf.Type)) throw new Error("the proto has no such message");
  const samples = Object.entries(ours).map(([name, { absent, fields }]) => {
    const field = theirs.fields[name];
    if (field === undefined) throw new Error(`${theirs.name} has no field ${name}`);
    if (field instanceof protobuf.MapField) return [name, { key: "value" }];
    const { resolvedType, repeated, type } = field.resolve();
    if (resolvedType instanceof protobuf.Enum) return [name, 1];
    // Seconds of requests are numbers.
    const isSeconds = type === "int64" && absent === 0;
    const plain = isSeconds ? 2 ** 40 : SAMPLES[type];
    const sample = fields === undefined ? plain : sampleOf(fields, resolvedType);
    return [name, repeated ? [sample] : sample];
  });
  return Object.fromEntries(samples) as object;
}

/** As the library takes and gives it: integers of 64 bits as text. */
const asLibrary = (value: object): object =>
  JSON.parse(
    JSON.stringify(value, (_, it: unknown) =>
      typeof it === "bigint" || (typeof it === "number" && it >= 2 ** 40) ? `${it}` : it,
    ),
  ) as object;
