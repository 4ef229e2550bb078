// What parsers are fed: right texts with mistakes, words of their languages in any order, endless repetition, and noise.

import fc from "fast-check";

const encoder = new TextEncoder();
export const encoded = (text: string): Uint8Array => encoder.encode(text);

/** Each sign by itself. */
export const signs = (text: string): readonly string[] => text.split("");

/** What is dangerous anywhere: names of prototypes, ends of ranges, escapes, marks that no eye sees. */
const DANGEROUS = [
  ..."__proto__ constructor toString hasOwnProperty .. / %00 %s $(id) ' ` <script>".split(" "),
  ..."-1 0 1e999 NaN Infinity null true 4294967296 9007199254740993".split(" "),
  ..."9223372036854775807 9223372036854775808 -9223372036854775809".split(" "),
  ..."18446744073709551616 99999999999999999999999999".split(" "),
  "",
  "\u001b[2J",
  "💥",
  ...signs('\0\r\n\t \u0085\u2028\u202e\u200b\ufeff\ufffdſİ٣１é\\"'),
];

const noise = fc.oneof(
  fc.constantFrom(...DANGEROUS),
  fc.string({ maxLength: 6 }),
  fc.string({ unit: "binary", maxLength: 4 }),
);

export interface Language {
  /** Words and signs of the language. */
  readonly words: readonly string[];
  /** Texts that are right. */
  readonly samples: readonly string[];
}

/** At most so many characters by repetition. */
const REPEATED_MAX = 64 * 1024;

/** A count that is mostly small. */
const often = fc.tuple(fc.nat(16), fc.nat(99)).map(([bits, more]) => 2 ** bits + more);

export function textOf({ words, samples }: Language): fc.Arbitrary<string> {
  const word = fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...words) },
    { weight: 1, arbitrary: noise },
  );
  const fromWords = fc.array(word, { maxLength: 12 }).map((parts) => parts.join(""));
  const sample = fc.constantFrom(...samples);
  const repeated = fc
    .tuple(fc.oneof(fromWords, sample), word, often, fc.oneof(word, fc.constant("")), fromWords)
    .map(([before, one, count, two, after]) => {
      const unit = one + two;
      const times = Math.min(count, Math.floor(REPEATED_MAX / Math.max(1, unit.length)));
      return before + unit.repeat(times) + after;
    });
  return fc.oneof(
    { weight: 4, arbitrary: fromWords },
    { weight: 6, arbitrary: damaged(sample, word) },
    { weight: 1, arbitrary: repeated },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
  );
}

/** Right bytes with some of them changed, cut, doubled or moved; and noise. */
export function bytesOf(samples: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  const sample = fc.constantFrom(...samples.map((it) => Buffer.from(it).toString("latin1")));
  const byte = fc.oneof(fc.constantFrom(0, 0x20, 0x30, 0x37, 0x7f, 0x80, 0xff), fc.nat(255));
  const filled = fc
    .tuple(byte, fc.constantFrom(1, 1, 4, 64))
    .map(([value, times]) => String.fromCodePoint(value).repeat(times));
  const bytes = fc.oneof(
    { weight: 8, arbitrary: damaged(sample, filled) },
    { weight: 1, arbitrary: sample },
    {
      weight: 1,
      arbitrary: fc.string({ unit: byte.map((it) => String.fromCodePoint(it)), maxLength: 300 }),
    },
  );
  return bytes.map((text) => new Uint8Array(Buffer.from(text, "latin1")));
}

const edit = fc.record({
  kind: fc.constantFrom("insert", "delete", "replace", "double", "cut", "splice"),
  /** Where, as a share of the text. */
  from: fc.nat(65_535),
  length: fc.oneof(fc.nat(3), fc.nat(1_024)),
});

/** Samples with a few mistakes. */
const damaged = (sample: fc.Arbitrary<string>, word: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .tuple(sample, fc.array(fc.tuple(edit, word, sample), { minLength: 1, maxLength: 6 }))
    .map(([whole, edits]) =>
      edits.reduce((text, [{ kind, from, length }, added, other]) => {
        const at = Math.floor((from / 65_536) * (text.length + 1));
        const [before, end] = [text.slice(0, at), text.slice(at + length)];
        const rest = {
          insert: added + text.slice(at),
          delete: end,
          replace: added + end,
          double: text.slice(at, at + length) + text.slice(at),
          cut: "",
          splice: other.slice(Math.min(at, other.length)),
        };
        return before + rest[kind];
      }, whole),
    );

/** JSON whose shape is nearly right: the values of samples put in other places, and fields taken away or made something else. */
export function jsonOf(
  samples: readonly unknown[],
  fields: readonly string[],
): fc.Arbitrary<string> {
  const scalar = fc.oneof(
    fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 2 ** 53, "", [], {}, "x"),
    noise,
  );
  const step = fc.record({
    at: fc.nat(4_095),
    value: fc.oneof(scalar, fc.constantFrom(...samples), fc.jsonValue({ maxDepth: 2 })),
    key: fc.oneof(fc.constantFrom(...fields), noise),
    kind: fc.constantFrom<Step["kind"]>("set", "drop", "rename", "wrap"),
  });
  return fc
    .tuple(fc.constantFrom(...samples), fc.array(step, { maxLength: 4 }))
    .map(([sample, steps]) => steps.reduce(changed, JSON.stringify(sample)));
}

interface Step {
  readonly at: number;
  readonly value: unknown;
  readonly key: string;
  readonly kind: "set" | "drop" | "rename" | "wrap";
}

/** One node of the document, counted from its leaves, is changed. */
function changed(text: string, { at, value, key, kind }: Step): string {
  let nodes = 0;
  JSON.parse(text, () => void (nodes += 1));
  let left = at % nodes;
  const next: unknown = JSON.parse(text, (_, node: unknown) => {
    if ((left -= 1) !== -1) return node;
    if (kind === "drop") return undefined;
    if (kind === "wrap") return [node];
    if (kind === "set" || typeof node !== "object" || node === null) return value;
    const [first, ...rest] = Object.entries(node);
    return Object.fromEntries([...rest, [key, first?.[1]]]);
  });
  return JSON.stringify(next) ?? "null";
}
