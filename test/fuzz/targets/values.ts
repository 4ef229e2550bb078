// Values of flags and fields: durations, quantities, percentages, eviction thresholds, times.

import { otherSignals, type Statements, thresholdsOf } from "../../../src/config/eviction.ts";
import { statements as statementsOf } from "../../../src/config/types.ts";
import {
  formatDuration,
  formatQuantity,
  parseDuration,
  parsePercentage,
  parseQuantity,
  parseSize,
} from "../../../src/config/units.ts";
import { parseText, printedText } from "../../../src/config/values.ts";
import { fromRfc3339, toRfc3339 } from "../../../src/model/time.ts";
import { signs, textOf } from "../inputs.ts";
import { holds, same, type Target, textTarget } from "../target.ts";

const INT64_LIMIT = 2n ** 63n;

const UNIT_NS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  d: 86_400_000_000_000n,
  w: 604_800_000_000_000n,
};

/** By another way than the parser's: terms of a number and a unit, added as fractions. */
function durationByTerms(text: string): { readonly ns: bigint; readonly terms: number } | null {
  const sign = /^[+-]/.exec(text)?.[0] ?? "";
  const rest = text.slice(sign.length);
  if (rest === "0") return { ns: 0n, terms: 1 };
  const terms = [...rest.matchAll(/([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h|d|w)/g)];
  if (terms.length === 0 || terms.map(([all]) => all).join("") !== rest) return null;
  let ns = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of terms) {
    if (whole === "" && fraction === "") return null;
    const digits = BigInt(`0${whole}${fraction}`);
    ns += (digits * (UNIT_NS[unit] ?? 0n)) / 10n ** BigInt(fraction.length);
  }
  return { ns: sign === "-" ? -ns : ns, terms: terms.length };
}

const distance = (one: bigint, other: bigint): bigint => (one > other ? one - other : other - one);

const duration = textTarget(
  "duration",
  textOf({
    words: [
      ...signs("0123456789.+-"),
      ..."ns us µs μs ms s m h d w".split(" "),
      "mins",
      "1h",
      "30m",
    ],
    samples: [
      "5m",
      "1h30m",
      "1.5s",
      "100ms",
      "30d",
      "2w",
      "-1h",
      "0",
      "0s",
      "9223372036854775807ns",
    ],
  }),
  (text) => {
    const span = parseDuration(text);
    if (span === null) return;
    const expected = durationByTerms(text);
    holds(expected !== null, `${JSON.stringify(text)} was read as ${span} ns`);
    holds(distance(span, expected.ns) <= BigInt(expected.terms), `${span}, not ${expected.ns} ns`);
    holds(span >= -INT64_LIMIT && span < INT64_LIMIT, `${span} is beyond 64 bits`);
    const printed = formatDuration(span);
    // The one value whose magnitude 64 bits do not hold.
    if (span !== -INT64_LIMIT) same(parseDuration(printed), span, `${printed} is read back`);
  },
);

const QUANTITY =
  /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE]([+-]?[0-9]+))?$/;
const DECIMAL: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};

/** Rounded away from zero; `null`: the text is no quantity. */
function quantityByParts(text: string): bigint | null {
  const match = QUANTITY.exec(text);
  if (match === null || text === "") return null;
  const [, sign, whole = "", fraction = "", suffix = "", power = "0"] = match;
  const binary = suffix.endsWith("i")
    ? 1024n ** BigInt("KMGTPE".indexOf(suffix.charAt(0)) + 1)
    : 1n;
  const exponent = (binary === 1n ? (DECIMAL[suffix] ?? 0) : 0) + Number(power) - fraction.length;
  const digits = BigInt(`0${whole}${fraction}`) * binary;
  // Beyond any amount, and below the smallest one.
  if (Math.abs(exponent) > 1_000) return digits === 0n ? 0n : exponent > 0 ? INT64_LIMIT : 1n;
  const up =
    exponent >= 0 ? digits * 10n ** BigInt(exponent) : divideUp(digits, 10n ** BigInt(-exponent));
  return sign === "-" ? -up : up;
}

const divideUp = (value: bigint, by: bigint): bigint => (value + by - 1n) / by;

const quantity = textTarget(
  "quantity",
  textOf({
    words: [...signs("0123456789.+-eE"), ..."n u m k M G T P E Ki Mi Gi Ti Pi Ei B".split(" ")],
    samples: ["500Mi", "1.5G", "1e9", "100m", "20Gi", "20GB", "9223372036854775807", "8Ei", ".5Gi"],
  }),
  (text) => {
    for (const parse of [parseQuantity, parseSize]) {
      const value = parse(text);
      if (value === null) continue;
      const bare = parse === parseSize ? text.replace(/B$/, "") : text;
      const expected = quantityByParts(bare);
      holds(expected !== null, `${JSON.stringify(text)} was read as ${value}`);
      const magnitude = expected < 0n ? -expected : expected;
      const most = INT64_LIMIT - 1n;
      const cut = magnitude > most ? (expected < 0n ? -most : most) : expected;
      same(value, cut, `${JSON.stringify(text)} as a quantity`);
      const printed = formatQuantity(value);
      same(parse(printed), value, `${printed} is read back`);
    }
  },
);

const percentage = textTarget(
  "percentage",
  textOf({
    words: [...signs("0123456789.+-eE_%"), "0x", "p", "inf", "Infinity", "NaN"],
    samples: ["10%", "10.5%", "5%%", "1e1%", "0x1p-2%", "inf%", "1_0%"],
  }),
  (text) => {
    const share = parsePercentage(text);
    if (share === null) return;
    holds(!Number.isNaN(share), `${JSON.stringify(text)} was read as no number`);
    if (!/^[+-]?[0-9]{1,30}(?:\.[0-9]{0,30})?%*$/.test(text)) return;
    const expected = Number(text.replace(/%*$/, "")) / 100;
    const difference = Math.abs(share - expected);
    holds(difference <= Math.abs(expected) * 1e-6, `${share}, not ${expected}`);
  },
);

const eviction = textTarget(
  "eviction",
  textOf({
    words: [
      ..."nodefs.available nodefs.inodesFree imagefs.available imagefs.inodesFree".split(" "),
      ..."containerfs.available memory.available pid.available < = , 10% 5Gi 100% 0% 1m30s".split(
        " ",
      ),
    ],
    samples: [
      "nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%",
      "imagefs.available<5Gi,memory.available<100Mi",
      "nodefs.available=1m30s,imagefs.available=2m",
      "nodefs.available=500Mi,imagefs.available=5%",
    ],
  }),
  (text) => {
    for (const of of ["threshold", "grace", "reclaim"] as const) {
      const type = statementsOf(of);
      const read = parseText(type, text);
      if (read.kind === "fault") continue;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- statements are read to statements
      const statements = read.value as Statements;
      const printed = printedText(type, statements);
      same(parseText(type, printed), read, `${printed} is read back`);
      if (of !== "threshold") continue;
      const none = { evictionSoft: {}, evictionSoftGracePeriod: {}, evictionMinimumReclaim: {} };
      const thresholds = thresholdsOf({ ...none, evictionHard: statements });
      const inForce = Object.entries(statements).filter(
        ([, amount]) => !/^(?:0|100)%$/.test(amount),
      );
      const ours = inForce.filter(([signal]) => /^(?:node|image|container)fs\./.test(signal));
      same(thresholds.length, ours.length, "thresholds in force");
      const others = otherSignals(statements);
      holds(thresholds.length + others.length >= inForce.length, "a signal was passed over");
    }
  },
);

const time = textTarget(
  "time",
  textOf({
    words: [...signs("0123456789-:.TtZz+ "), "2026", "23:59:60", "24:00:00", "02-30"],
    samples: [
      "2026-01-31T12:00:00Z",
      "2026-01-31T12:00:00.123456789+02:00",
      "9999-12-31T23:59:59Z",
    ],
  }),
  (text) => {
    const at = fromRfc3339(text);
    if (at !== null) same(fromRfc3339(toRfc3339(at)), at, `${toRfc3339(at)} is read back`);
  },
);

export const valueTargets: readonly Target[] = [duration, quantity, percentage, eviction, time];
