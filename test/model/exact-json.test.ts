// JSON with exact integers: what is read is what was written, and a terminal that is sent it cannot be misled.

import { expect, test } from "bun:test";

import fc from "fast-check";

import { exactJson } from "../../src/model/exact-json.ts";
import { yamlOfJson } from "../../src/report/document.ts";
import { clean } from "../../src/report/terminal.ts";

test("exact JSON round-trips integers, and reads other numbers as JSON does", () => {
  fc.assert(
    fc.property(fc.bigInt(), fc.double({ noNaN: true, noDefaultInfinity: true }), (big, float) => {
      const text = exactJson({ big, float });
      expect(text).toStartWith(`{"big":${big},`);
      expect(JSON.parse(text).float).toBe(float === 0 ? 0 : float);
      expect(yamlOfJson(text)).toStartWith(`big: ${big}\n`);
    }),
  );
});

test.each([0x7f, 0x9b, 0xad, 0x61c, 0x200b, 0x202e, 0x2066, 0x206a, 0xfeff, 0xfff9])(
  "character %d, which misleads a terminal, is escaped in JSON and stripped from printed text",
  (code) => {
    const name = `a${String.fromCharCode(code)}b`;
    expect(exactJson({ name })).toBe(`{"name":"a\\u${code.toString(16).padStart(4, "0")}b"}`);
    expect(JSON.parse(exactJson({ name }))).toEqual({ name });
    expect(clean(name)).toBe("ab");
  },
);
