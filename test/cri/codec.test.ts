// What is made of bytes is what the collector relies on: exact integers, visible unknowns, refused garbage; and what the library makes of them.
import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { decodeAnswer, MalformedError } from "../../src/cri/codec.ts";
import type { Answers, ContainerMessage, ImageMessage } from "../../src/cri/messages.ts";
import { methods } from "./declared.ts";

/** An answer as a runtime would write it. */
const written = (method: string, fields: object): Buffer =>
  methods.get(method)?.answer(fields) ?? Buffer.alloc(0);

const readImage = (fields: object): ImageMessage | undefined =>
  decodeAnswer("ListImages", written("ListImages", { images: [fields] })).images[0];

const readContainer = (fields: object): ContainerMessage | undefined =>
  decodeAnswer("ListContainers", written("ListContainers", { containers: [fields] })).containers[0];

describe("decoding", () => {
  test("timestamps and sizes beyond 2^53 are exact", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        expect(readContainer({ created_at: String(value) })?.created_at).toBe(value);
      }),
    );
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (value) => {
        expect(readImage({ size: String(value) })?.size).toBe(value);
      }),
    );
  });

  test("an undeclared enum value is returned as its number", () => {
    expect(readContainer({ state: 4 })?.state).toBe(4);
    expect(readContainer({ state: -1 })?.state).toBe(-1);
  });

  test("an absent field has its default, and an absent message is null", () => {
    expect(readContainer({ id: "a" })).toEqual({
      id: "a",
      pod_sandbox_id: "",
      metadata: null,
      image: null,
      image_ref: "",
      state: 0,
      created_at: 0n,
      labels: {},
      image_id: "",
    });
    expect(decodeAnswer("ImageFsInfo", Buffer.alloc(0))).toEqual({
      image_filesystems: [],
      container_filesystems: [],
    });
  });

  test("undeclared fields of every wire type are skipped", () => {
    const unknown = [
      [0xa0, 0x06, 0xac, 0x02],
      [0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8],
      [0xa2, 0x06, 3, 0x0a, 0xff, 0xff],
      [0xa5, 0x06, 1, 2, 3, 4],
    ].flat();
    const bytes = Buffer.concat([
      Buffer.from(unknown),
      written("ListImages", { images: [{ id: "sha256:a" }] }),
    ]);
    expect(decodeAnswer("ListImages", bytes).images[0]?.id).toBe("sha256:a");
  });

  test("a label named like an object property is kept", () => {
    const labels = Object.fromEntries([
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
    const read =
      decodeAnswer("ContainerStatus", written("ContainerStatus", { status: { labels } })).status
        ?.labels ?? {};
    expect(Object.entries(read)).toEqual([
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });

  test.each([
    ["is cut off inside a string", [0x0a, 0x05, 0x61]],
    ["is cut off inside a tag", [0x8a]],
    ["has a length beyond its end", [0x0a, 0xff, 0xff, 0xff, 0x0f, 0x07]],
    ["has a group", [0xa3, 0x06, 0xa4, 0x06]],
    ["has a field of the number 0", [0x00, 0x00]],
    ["has an ID that is an integer", [0x0a, 0x02, 0x08, 0x01]],
    ["has a size that is a text", [0x0a, 0x03, 0x22, 0x01, 0x61]],
    ["has a name that passes the end of its image", [0x0a, 0x03, 0x12, 0x02, 0x61, 0x0a, 0x00]],
    ["has a wire type that is not there", [0xa7, 0x06]],
    ["ends inside a skipped field", [0xa1, 0x06, 1, 2]],
    ["has an image that ends inside its ID", [0x0a, 0x03, 0x0a, 0x04, 0x61, 0x62, 0x63, 0x64]],
    [
      "has an integer of more than 64 bits",
      [0x0a, 0x0c, 0x20, ...Array<number>(10).fill(0xff), 0x01],
    ],
  ])("a message that %s is refused", (_, bytes) => {
    expect(() => decodeAnswer("ListImages", Buffer.from(bytes))).toThrow(MalformedError);
  });

  test("any bytes are either a message or refused", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          decodeAnswer("ListContainers", Buffer.from(bytes));
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(MalformedError);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("a response truncated anywhere is refused rather than losing a container", () => {
    const ids = ["a", "b", "c"];
    const containers = ids.map((id) => ({ id, labels: { key: "value" }, created_at: "1" }));
    const bytes = written("ListContainers", { containers });
    const whole = new Set([0, 1, 2, 3].map((count) => bytes.length - (bytes.length / 3) * count));
    for (let length = 0; length <= bytes.length; length += 1) {
      const read = (): number =>
        decodeAnswer("ListContainers", bytes.subarray(0, length)).containers.length;
      if (whole.has(length)) expect(read()).toBe((length / bytes.length) * 3);
      else expect(read).toThrow(MalformedError);
    }
  });
});

describe("the library", () => {
  const fields = fc.record({
    id: fc.string({ unit: "grapheme" }),
    pod_sandbox_id: fc.string(),
    metadata: fc.option(fc.record({ name: fc.string(), attempt: fc.nat() })),
    image_ref: fc.string({ minLength: 120, maxLength: 200 }),
    state: fc.nat(5),
    created_at: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  });

  test("decodes a runtime's responses to the same values", () => {
    fc.assert(
      fc.property(fc.array(fields), (containers) => {
        expectSame("ListContainers", written("ListContainers", { containers }));
      }),
    );
  });

  test("decodes any other accepted bytes to the same values", () => {
    const status = {
      labels: { a: "b" },
      annotations: { c: "d" },
      mounts: [{ image: { image: "e" } }],
    };
    const whole = written("ContainerStatus", {
      status: { id: "id", finished_at: "123456789", ...status },
    });
    const spoilt = fc
      .array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 })
      .map((changes) => {
        const bytes = Buffer.from(whole);
        for (const [at, byte] of changes) bytes[at] = byte;
        return bytes;
      });
    let read = 0;
    fc.assert(
      fc.property(spoilt, (bytes) => {
        try {
          decodeAnswer("ContainerStatus", bytes);
        } catch {
          return;
        }
        read += 1;
        expectSame("ContainerStatus", bytes);
      }),
      { numRuns: 3000 },
    );
    expect(read).toBeGreaterThan(300);
  });

  function expectSame(method: "ListContainers" | "ContainerStatus", bytes: Buffer): void {
    const read: Answers[typeof method] = decodeAnswer(method, bytes);
    expect(withTexts(read)).toEqual(methods.get(method)?.read(bytes));
  }

  /** The library writes integers of 64 bits as text. */
  const withTexts = (answer: object): unknown =>
    JSON.parse(
      JSON.stringify(answer, (_, it: unknown) => (typeof it === "bigint" ? String(it) : it)),
    );
});
