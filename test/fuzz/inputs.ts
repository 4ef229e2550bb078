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
  const damaged = fc
    .tuple(sample, fc.array(fc.tuple(edit, word, sample), { minLength: 1, maxLength: 4 }))
    .map(([text, edits]) =>
      edits.reduce((so, [how, added, other]) => edited(so, { how, added, other }), text),
    );
  const repeated = fc
    .tuple(fc.oneof(fromWords, sample), word, often, fc.oneof(word, fc.constant("")), fromWords)
    .map(([before, one, count, two, after]) => {
      const unit = one + two;
      const times = Math.min(count, Math.floor(REPEATED_MAX / Math.max(1, unit.length)));
      return before + unit.repeat(times) + after;
    });
  return fc.oneof(
    { weight: 4, arbitrary: fromWords },
    { weight: 6, arbitrary: damaged },
    { weight: 1, arbitrary: repeated },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
  );
}

interface Edit {
  readonly kind: "insert" | "delete" | "replace" | "double" | "cut" | "splice";
  /** Where, as shares of the text. */
  readonly from: number;
  readonly length: number;
}

const edit: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constantFrom("insert", "delete", "replace", "double", "cut", "splice"),
  from: fc.nat(4_095),
  length: fc.oneof(fc.nat(3), fc.nat(200)),
});

function edited(
  text: string,
  { how, added, other }: { readonly how: Edit; readonly added: string; readonly other: string },
): string {
  const at = Math.floor((how.from / 4_096) * (text.length + 1));
  const end = at + how.length;
  const [before, middle, after] = [text.slice(0, at), text.slice(at, end), text.slice(end)];
  switch (how.kind) {
    case "insert":
      return before + added + text.slice(at);
    case "delete":
      return before + after;
    case "replace":
      return before + added + after;
    case "double":
      return before + middle + middle + after;
    case "cut":
      return before;
    case "splice":
      return before + other.slice(Math.min(at, other.length));
  }
}

/** Right bytes with some of them changed, cut, doubled or moved; and noise. */
export function bytesOf(samples: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  const change = fc.record({
    kind: fc.constantFrom("set", "set", "cut", "insert", "double", "delete"),
    from: fc.nat(65_535),
    length: fc.oneof(fc.nat(4), fc.nat(1_024)),
    value: fc.oneof(fc.constantFrom(0, 0x20, 0x30, 0x37, 0x7f, 0x80, 0xff), fc.nat(255)),
  });
  const damaged = fc
    .tuple(fc.constantFrom(...samples), fc.array(change, { minLength: 1, maxLength: 6 }))
    .map(([sample, changes]) =>
      changes.reduce<Uint8Array>((bytes, { kind, from, length, value }) => {
        const at = Math.floor((from / 65_536) * (bytes.length + 1));
        const filled = new Uint8Array(Math.min(length, 64)).fill(value);
        const end = Math.min(bytes.length, at + length);
        if (kind === "cut") return bytes.slice(0, at);
        if (kind === "delete") return joined(bytes.subarray(0, at), bytes.subarray(end));
        if (kind === "double") return joined(bytes.subarray(0, end), bytes.subarray(at));
        if (kind === "insert") return joined(bytes.subarray(0, at), filled, bytes.subarray(at));
        return joined(
          bytes.subarray(0, at),
          Uint8Array.of(value),
          bytes.subarray(Math.min(bytes.length, at + 1)),
        );
      }, sample),
    );
  return fc.oneof(
    { weight: 8, arbitrary: damaged },
    { weight: 1, arbitrary: fc.constantFrom(...samples) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }) },
  );
}

const joined = (...parts: readonly Uint8Array[]): Uint8Array =>
  new Uint8Array(Buffer.concat(parts));

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
    at: fc.nat(40),
    value: fc.oneof(scalar, fc.constantFrom(...samples), fc.jsonValue({ maxDepth: 2 })),
    key: fc.oneof(fc.constantFrom(...fields), noise),
    kind: fc.constantFrom("set", "drop", "rename", "wrap"),
  });
  return fc
    .tuple(fc.constantFrom(...samples), fc.array(step, { maxLength: 4 }))
    .map(([sample, steps]) =>
      JSON.stringify(
        steps.reduce<unknown>(
          (value, each) => changed(value, each, { left: each.at % (nodesIn(value) + 1) }),
          sample,
        ),
      ),
    );
}

interface Step {
  readonly value: unknown;
  readonly key: string;
  readonly kind: "set" | "drop" | "rename" | "wrap";
}

const nodesIn = (value: unknown): number =>
  typeof value === "object" && value !== null
    ? 1 + Object.values(value).reduce((sum: number, inner) => sum + nodesIn(inner), 0)
    : 1;

/** The `left`-th node from the top, in the order of a walk, is changed. */
function changed(value: unknown, step: Step, count: { left: number }): unknown {
  count.left -= 1;
  if (count.left < 0) return value;
  if (count.left === 0) {
    if (step.kind === "wrap") return [value];
    if (step.kind === "set" || typeof value !== "object" || value === null) return step.value;
  }
  if (typeof value !== "object" || value === null) return value;
  const isHere = count.left === 0;
  if (Array.isArray(value)) {
    const items = value.map((inner: unknown) => changed(inner, step, count));
    return isHere && step.kind === "drop"
      ? items.slice(1)
      : isHere
        ? [...items, step.value]
        : items;
  }
  const entries = Object.entries(value).map(
    ([key, inner]) => [key, changed(inner, step, count)] as const,
  );
  if (!isHere) return Object.fromEntries(entries);
  const [first, ...rest] = entries;
  if (first === undefined || step.kind === "drop") return Object.fromEntries(rest);
  return Object.fromEntries([...rest, [step.key, first[1]]]);
}
