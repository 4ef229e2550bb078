// The bytes of a response are checked before the library decodes them; lists are cut into entries.
import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { cutEntries, decodeAnswer, MalformedError } from "../../src/cri/codec.ts";
import { methods } from "./declared.ts";

const written = (fields: object): Buffer =>
  methods.get("ListImages")?.answer(fields) ?? Buffer.alloc(0);

function cut(list: Buffer): readonly Buffer[] {
  const entries: Buffer[] = [];
  cutEntries(list, (entry) => entries.push(entry));
  return entries;
}

const unknownFields = [
  [0xa0, 0x06, 0xac, 0x02],
  [0xa0, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
  [0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8],
  [0xa2, 0x06, 3, 0x0a, 0xff, 0xff],
  [0xa5, 0x06, 1, 2, 3, 4],
].map((bytes) => Buffer.from(bytes));

test("the entries of a list, decoded one by one, equal the decoded list", () => {
  const image = fc.record({ id: fc.string(), repo_tags: fc.array(fc.string({ maxLength: 300 })) });
  const part = fc.oneof(
    image.map((it) => written({ images: [it] })),
    fc.constantFrom(...unknownFields),
  );
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const list = Buffer.concat(parts);
      expect(cut(list).flatMap((entry) => decodeAnswer("ListImages", entry).images)).toEqual([
        ...decodeAnswer("ListImages", list).images,
      ]);
    }),
  );
});

describe("a list is rejected", () => {
  test.each([
    ["that is cut off inside a tag", [0x8a]],
    ["that is cut off inside a length", [0x0a, 0x80]],
    ["that is cut off inside an entry", [0x0a, 0x05, 0x61]],
    ["whose entry is longer than the list", [0x0a, 0xff, 0xff, 0xff, 0x0f, 0x07]],
    ["whose length exceeds 32 bits", [0x0a, ...Array<number>(9).fill(0xff), 0x01]],
    ["whose entry is an integer", [0x08, 0x01]],
    ["whose integer never ends", [0xa0, 0x06, ...Array<number>(11).fill(0xff)]],
    ["whose integer is cut off", [0xa0, 0x06, 0xff]],
    ["whose fixed field is cut off", [0xa1, 0x06, 1, 2, 3]],
    ["with a group", [0xa3, 0x06, 0xa4, 0x06]],
    [
      "whose tag hides an entry in bits that the library drops",
      [0x8a, 0x80, 0x80, 0x80, 0x80, 0x01, 0],
    ],
    ["with a field of number 0", [0x02, 0]],
  ])("%s", (_, bytes) => {
    const list = Buffer.from(bytes);
    expect(() => cut(list)).toThrow(MalformedError);
    const long = Buffer.concat([written({ images: [{ id: "x".repeat(100) }] }), list]);
    expect(() => cut(long)).toThrow(MalformedError);
  });

  test("that is cut off anywhere but at the end of an entry", () => {
    const one = written({ images: [{ id: "sha256:a", repo_tags: ["a:1"] }] });
    const list = Buffer.concat([one, one]);
    for (let length = 1; length < list.length; length += 1)
      if (length !== one.length)
        expect(() => cut(list.subarray(0, length))).toThrow(MalformedError);
  });
});
