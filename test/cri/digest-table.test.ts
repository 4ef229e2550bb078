// A table by digests says what a map by the same digests says.
import { expect, test } from "bun:test";

import fc from "fast-check";

import { DigestTable } from "../../src/cri/digest-table.ts";

/** Digests that differ in one number only, wherever that is. */
const digest = fc
  .tuple(fc.nat(7), fc.nat(40))
  .map(([place, value]) => Int32Array.from({ length: 8 }, (_, at) => (at === place ? value : 7)));

test("a table of digests finds what was added, and nothing else", () => {
  fc.assert(
    fc.property(fc.array(digest, { maxLength: 300 }), fc.array(digest), (added, others) => {
      const table = new DigestTable<string>();
      const map = new Map<string, string>();
      for (const each of added) {
        const index = table.indexOf(each);
        expect(table.at(index)).toBe(map.get(each.join()));
        if (index >= 0) continue;
        table.add(each, each.join());
        map.set(each.join(), each.join());
      }
      expect(table.size).toBe(map.size);
      for (const each of [...added, ...others])
        expect(table.at(table.indexOf(each))).toBe(map.get(each.join()));
    }),
  );
});

test("what is marked in a table of digests is all that another one takes from it", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(digest, { selector: (it) => it.join() }),
      fc.nat(),
      (digests, bits) => {
        const table = new DigestTable<string>();
        for (const each of digests) table.add(each, each.join());
        const isMarked = (index: number): boolean => ((bits >> (index % 31)) & 1) === 1;
        const other = new DigestTable<string>();
        other.addMarked(
          table,
          Uint8Array.from(digests, (_, index) => Number(isMarked(index))),
        );
        const found = digests.map((each) => other.at(other.indexOf(each)));
        expect(found).toEqual(
          digests.map((each, index) => (isMarked(index) ? each.join() : undefined)),
        );
      },
    ),
  );
});
