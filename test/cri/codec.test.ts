// Decoding gives exact integers and visible unknowns, and rejects garbage; lists are cut into entries without loss.
import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { cutEntries, MalformedError } from "../../src/cri/codec.ts";
import { methods } from "../../src/cri/messages.ts";
import { declared } from "./declared.ts";

/** An answer as a runtime would write it. */
const written = (method: string, fields: object): Buffer =>
  declared.get(method)?.answer(fields) ?? Buffer.alloc(0);

function cut(list: Buffer): readonly Buffer[] {
  const entries: Buffer[] = [];
  cutEntries(list, (entry) => entries.push(Buffer.from(entry)));
  return entries;
}

const readImages = (bytes: Buffer) => cut(bytes).map((it) => methods.ListImages.answer.decode(it));
const readImage = (fields: object) => readImages(written("ListImages", { images: [fields] }))[0];

const readContainers = (bytes: Buffer) =>
  cut(bytes).map((it) => methods.ListContainers.answer.decode(it));
const readContainer = (fields: object) =>
  readContainers(written("ListContainers", { containers: [fields] }))[0];

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
  expect(methods.ImageFsInfo.answer.decode(Buffer.alloc(0))).toEqual({
    image_filesystems: [],
    container_filesystems: [],
  });
});

test("a label named like an object property is kept", () => {
  const labels = Object.fromEntries([
    ["__proto__", "x"],
    ["constructor", "y"],
  ]);
  const read =
    methods.ContainerStatus.answer.decode(written("ContainerStatus", { status: { labels } })).status
      ?.labels ?? {};
  expect(Object.entries(read)).toEqual([
    ["__proto__", "x"],
    ["constructor", "y"],
  ]);
  expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
});

test("a response truncated anywhere is refused rather than losing a container", () => {
  const ids = ["a", "b", "c"];
  const containers = ids.map((id) => ({ id, labels: { key: "value" }, created_at: "1" }));
  const bytes = written("ListContainers", { containers });
  const whole = new Set([0, 1, 2, 3].map((count) => bytes.length - (bytes.length / 3) * count));
  for (let length = 0; length <= bytes.length; length += 1) {
    const read = (): number => readContainers(bytes.subarray(0, length)).length;
    if (whole.has(length)) expect(read()).toBe((length / bytes.length) * 3);
    else expect(read).toThrow(MalformedError);
  }
});

const images = (fields: object): Buffer => written("ListImages", fields);

describe("a message is rejected", () => {
  const long = images({ images: [{ id: "x".repeat(100) }] });
  const ones = (count: number) => Array<number>(count).fill(0xff);

  test.each([
    ["cut off inside a tag", [0x8a]],
    ["cut off inside a length", [0x0a, 0x80]],
    ["cut off inside an entry", [0x0a, 0x05, 0x61]],
    ["whose entry is longer than the list", [0x0a, 0xff, 0xff, 0xff, 0x0f, 0x07]],
    ["whose length exceeds 32 bits", [0x0a, ...ones(9), 0x01]],
    ["whose entry is an integer", [0x08, 0x01]],
    ["whose integer never ends", [0xa0, 0x06, ...ones(11)]],
    ["whose integer is cut off", [0xa0, 0x06, 0xff]],
    ["whose fixed field is cut off", [0xa1, 0x06, 1, 2, 3]],
    ["with a group", [0xa3, 0x06, 0xa4, 0x06]],
    ["with an unknown wire type", [0xa7, 0x06]],
    ["whose tag has bits that the library drops", [0x8a, 0x80, 0x80, 0x80, 0x80, 0x01, 0]],
    ["with a field of number 0", [0x02, 0]],
  ])("%s", (_, bytes) => {
    const list = Buffer.from(bytes);
    expect(() => cut(list)).toThrow(MalformedError);
    expect(() => cut(Buffer.concat([long, list]))).toThrow(MalformedError);
  });

  test.each([
    ["with an ID that is an integer", [0x0a, 0x02, 0x08, 0x01]],
    ["with a size that is a text", [0x0a, 0x03, 0x22, 0x01, 0x61]],
    ["with a name that passes its image's end", [0x0a, 0x03, 0x12, 0x02, 0x61, 0x0a, 0x00]],
    ["that ends inside an ID", [0x0a, 0x03, 0x0a, 0x04, 0x61, 0x62, 0x63, 0x64]],
    ["with an integer of more than 64 bits", [0x0a, 0x0c, 0x20, ...ones(10), 0x01]],
    ["with an ID that is not UTF-8", [0x0a, 0x04, 0x0a, 0x02, 0x61, 0xff]],
    ["with a tag that is half a character", [0x0a, 0x03, 0x12, 0x01, 0xc3]],
  ])("%s, once its entry is decoded", (_, bytes) => {
    expect(() => readImages(Buffer.from(bytes))).toThrow(MalformedError);
  });

  test("with the second part of a message", () => {
    const part = (image: object): Buffer =>
      written("ContainerStatus", { status: { id: "a", image } });
    const named = part({ image: "r.example/a:1" });
    expect(() => methods.ContainerStatus.answer.decode(Buffer.concat([named, part({})]))).toThrow(
      MalformedError,
    );
  });
});

test("a bool of several bytes is read whole", () => {
  const image = Buffer.from([0x40, 0x80, 0x80, 0x80, 0x80, 0x10]);
  expect(methods.ListImages.answer.decode(image).pinned).toBe(true);
});
