import { describe, expect, test } from "bun:test";
import { join } from "node:path";

// Our codec and an independent implementation of protobuf agree on every message that is read or sent.
import { loadSync, type MessageTypeDefinition } from "@grpc/proto-loader";
import fc from "fast-check";

import { encodeMessage } from "../../src/cri/encode.ts";
import { criSchema } from "../../src/cri/proto.ts";
import type { Field, MessageType } from "../../src/cri/schema.ts";
import { decodeMessage, WireError } from "../../src/cri/wire.ts";

const schema = criSchema();
const reference = loadSync(join(import.meta.dir, "../support/fake-runtime/cri.proto"), {
  keepCase: true,
  longs: String,
  defaults: true,
});

/** Messages that the fake runtime's proto knows by the same name. */
const shared = [...schema.messages.values()].flatMap((type) => {
  const known = reference[`runtime.v1.${type.name}`];
  return known === undefined || !("serialize" in known)
    ? []
    : [[type.name, type, known as MessageTypeDefinition<object, object>] as const];
});

describe("decoding", () => {
  test.each(shared)("%s is read as it was written by another implementation", (_, type, known) => {
    fc.assert(
      fc.property(messageOf(type), (fields) => {
        expect(comparable(decodeMessage(type, known.serialize(fields)))).toEqual(fields);
      }),
      { numRuns: 50 },
    );
  });

  test("covers the messages that carry something", () => {
    expect(shared.length).toBeGreaterThan(25);
  });

  test("timestamps and sizes beyond 2^53 are exact", () => {
    const container = message("Container");
    const bytes = other("Container").serialize({ created_at: "1767225600123456789" });
    expect(decodeMessage(container, bytes)["created_at"]).toBe(1_767_225_600_123_456_789n);
    const image = other("Image").serialize({ size: "18446744073709551615" });
    expect(decodeMessage(message("Image"), image)["size"]).toBe(2n ** 64n - 1n);
    const zeroTime = other("ContainerStatus").serialize({ finished_at: "-6795364578871345152" });
    expect(decodeMessage(message("ContainerStatus"), zeroTime)["finished_at"]).toBe(
      -6_795_364_578_871_345_152n,
    );
  });

  test("fields that are not declared are skipped, of every wire type", () => {
    const unknown = [
      [0xa0, 0x06, 0xac, 0x02],
      [0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8],
      [0xa2, 0x06, 3, 0x0a, 0xff, 0xff],
      [0xa5, 0x06, 1, 2, 3, 4],
    ].flat();
    const bytes = Buffer.concat([
      Buffer.from(unknown),
      other("Image").serialize({ id: "sha256:a" }),
    ]);
    expect(decodeMessage(message("Image"), bytes)["id"]).toBe("sha256:a");
  });

  test("a label named like a property of objects is a label", () => {
    const labels = Object.fromEntries([
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
    const bytes = other("Container").serialize({ labels });
    expect(decodeMessage(message("Container"), bytes)["labels"]).toEqual(
      new Map([
        ["__proto__", "x"],
        ["constructor", "y"],
      ]),
    );
  });

  test.each([
    ["is cut off inside a string", [0x0a, 0x05, 0x61]],
    ["is cut off inside a tag", [0x8a]],
    ["has a length beyond its end", [0x0a, 0xff, 0xff, 0xff, 0x0f, 0x07]],
    ["has a field of number 0", [0x00, 0x00]],
    ["has a group", [0xa3, 0x06, 0xa4, 0x06]],
    ["has a string where a number belongs", [0x22, 0x01, 0x61]],
    ["has an integer of more than 64 bits", [0x20, ...Array<number>(10).fill(0xff), 0x01]],
    ["has a tag of more than 32 bits", [0x88, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00]],
    ["ends inside a skipped field", [0xa1, 0x06, 1, 2]],
  ])("a message that %s is refused", (_, bytes) => {
    expect(() => decodeMessage(message("Image"), Buffer.from(bytes))).toThrow(WireError);
  });

  test("a message inside that runs past its own end is refused", () => {
    // metadata of 3 bytes whose name claims 4, followed by enough bytes of the container to fill it.
    const bytes = Buffer.from([0x1a, 0x03, 0x0a, 0x04, 0x61, 0x32, 0x02, 0x62, 0x62]);
    expect(() => decodeMessage(message("Container"), bytes)).toThrow(WireError);
  });

  test("whatever the bytes are, they are a message or refused", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          decodeMessage(message("ListContainersResponse"), bytes);
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(WireError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("encoding", () => {
  test.each(shared.filter(([name]) => name.endsWith("Request") || name.endsWith("Filter")))(
    "%s is understood by another implementation",
    (_, type, known) => {
      fc.assert(
        fc.property(messageOf(type), (fields) => {
          const read = known.deserialize(encodeMessage(type, native(type, fields)));
          expect(read).toMatchObject(fields);
        }),
        { numRuns: 50 },
      );
    },
  );

  test.each<[string, object]>([
    ["a field that is not declared", { nonsense: 1 }],
    ["a number for a string", { pod_sandbox_id: 1 }],
    ["a text for a message", { state: "x" }],
  ])("%s is a bug that stops us", (_, fields) => {
    expect(() => encodeMessage(message("ContainerFilter"), { ...fields })).toThrow();
  });
});

function message(name: string): MessageType {
  const found = schema.messages.get(name);
  if (found === undefined) throw new Error(`no message ${name}`);
  return found;
}

function other(name: string): MessageTypeDefinition<object, object> {
  return reference[`runtime.v1.${name}`] as MessageTypeDefinition<object, object>;
}

type Plain = Readonly<Record<string, unknown>>;

/** Any value of a message, in the form that both implementations can be compared in: integers of 64 bits as text. */
function messageOf(type: MessageType): fc.Arbitrary<Plain> {
  return fc.record(
    Object.fromEntries(type.fields.map((field) => [field.name, fieldOf(field)])),
  ) as fc.Arbitrary<Plain>;
}

function fieldOf(field: Field): fc.Arbitrary<unknown> {
  const value = valueOf(field);
  if (field.repeated) return fc.array(value, { maxLength: 3 });
  return field.type.kind === "message" ? fc.option(value) : value;
}

function valueOf({ type }: Field): fc.Arbitrary<unknown> {
  if (type.kind === "message") return messageOf(type.message);
  if (type.kind === "strings")
    return fc.dictionary(fc.string(), fc.string(), { maxKeys: 3, noNullPrototype: true });
  if (type.kind === "enum") return fc.integer({ min: 0, max: 2 });
  switch (type.scalar) {
    case "string":
      return fc.string({ unit: "binary" });
    case "bool":
      return fc.boolean();
    case "int32":
      return fc.integer();
    case "uint32":
      return fc.integer({ min: 0, max: 2 ** 32 - 1 });
    case "int64":
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String);
    case "uint64":
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);
  }
}

/** Integers of 64 bits as requests have them. */
function native(type: MessageType, fields: Plain): Plain {
  return Object.fromEntries(
    type.fields.map(({ name, type: kind }) => {
      const value = fields[name];
      const isLong = kind.kind === "scalar" && kind.scalar.endsWith("int64");
      return [name, isLong ? BigInt(String(value)) : value];
    }),
  );
}

function comparable(value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Map) return Object.fromEntries(value as Map<string, string>);
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, comparable(inner)]));
}
