// Entries are cut out of an answer exactly where the whole answer has them, and what is no answer is refused.
import { describe, expect, spyOn, test } from "bun:test";

import fc from "fast-check";

import { decodeAnswer } from "../../src/cri/messages.ts";
import { EntryCutter, MalformedError } from "../../src/cri/wire.ts";
import { methods } from "./declared.ts";

const written = (fields: object): Buffer =>
  methods.get("ListImages")?.answer(fields) ?? Buffer.alloc(0);

/** Of an answer that comes in these pieces. */
function cut(...pieces: readonly Buffer[]): readonly Buffer[] {
  const entries: Buffer[] = [];
  const cutter = new EntryCutter(1, (entry) => entries.push(Buffer.from(entry)));
  for (const [index, piece] of pieces.entries()) {
    // Its memory is used for something else once it was pushed.
    const lent = Buffer.from(piece);
    cutter.push(lent, index === pieces.length - 1);
    lent.fill(0xff);
  }
  return entries;
}

function piecesOf(bytes: Buffer, at: readonly number[]): readonly Buffer[] {
  const ends = [...at.map((it) => it % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

const unknownFields = [
  [0xa0, 0x06, 0xac, 0x02],
  [0xa0, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
  [0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8],
  [0xa2, 0x06, 3, 0x0a, 0xff, 0xff],
  [0xa5, 0x06, 1, 2, 3, 4],
].map((bytes) => Buffer.from(bytes));

test("the entries of a list, read one by one, are what is read of the whole answer", () => {
  const image = fc.record({ id: fc.string(), repo_tags: fc.array(fc.string({ maxLength: 300 })) });
  const part = fc.oneof(
    image.map((it) => written({ images: [it] })),
    fc.constantFrom(...unknownFields),
  );
  fc.assert(
    fc.property(fc.array(part), fc.array(fc.nat()), (parts, at) => {
      const answer = Buffer.concat(parts);
      const entries = cut(answer);
      expect(cut(...piecesOf(answer, at))).toEqual(entries);
      expect(entries.flatMap((entry) => decodeAnswer("ListImages", entry).images)).toEqual([
        ...decodeAnswer("ListImages", answer).images,
      ]);
    }),
  );
});

describe("an answer is refused", () => {
  test.each([
    ["that is cut off inside a tag", [0x8a]],
    ["that is cut off inside a length", [0x0a, 0x80]],
    ["that is cut off inside an entry", [0x0a, 0x05, 0x61]],
    ["whose entry is longer than the answer", [0x0a, 0xff, 0xff, 0xff, 0x0f, 0x07]],
    ["whose length is longer than any", [0x0a, ...Array<number>(9).fill(0xff), 0x01]],
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
    const answer = Buffer.from(bytes);
    expect(() => cut(answer)).toThrow(MalformedError);
    expect(() => cut(...Array.from(bytes, (byte) => Buffer.of(byte)))).toThrow(MalformedError);
    const long = Buffer.concat([written({ images: [{ id: "x".repeat(100) }] }), answer]);
    expect(() => cut(long.subarray(0, 50), long.subarray(50))).toThrow(MalformedError);
  });

  test("cut off at any byte but the end of an entry", () => {
    const one = written({ images: [{ id: "sha256:a", repo_tags: ["a:1"] }] });
    const answer = Buffer.concat([one, one]);
    for (let length = 1; length < answer.length; length += 1)
      if (length !== one.length)
        for (const at of [0, 1, length - 1])
          expect(() => cut(...piecesOf(answer.subarray(0, length), [at]))).toThrow(MalformedError);
  });
});

test("an entry of many pieces is put together a few times, and not for each of them", () => {
  const answer = written({ images: [{ id: "x".repeat(4_000_000) }] });
  const pieces = Array.from({ length: 1000 }, (_, index) =>
    answer.subarray(index * 4096, (index + 1) * 4096),
  );
  const concat = spyOn(Buffer, "concat");
  expect(cut(...pieces)).toEqual([answer]);
  expect(concat.mock.calls.length).toBeLessThan(20);
  concat.mockRestore();
});

test("of entries that come in two pieces only the one between them is put together", () => {
  const entry = written({ images: [{ id: "x".repeat(1000) }] });
  const answer = Buffer.concat(Array.from({ length: 100 }, () => entry));
  const concat = spyOn(Buffer, "concat");
  expect(cut(answer.subarray(0, 50_000), answer.subarray(50_000))).toHaveLength(100);
  expect(concat.mock.results.map(({ value }) => (value as Buffer).length)).toEqual([entry.length]);
  concat.mockRestore();
});
