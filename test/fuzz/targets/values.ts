// Values of flags and fields: durations, quantities, percentages, eviction thresholds, times.

import { type Statements, thresholdsOf, whyIgnored } from "../../../src/config/eviction.ts";
import { parseText, shownText, statements as statementsOf } from "../../../src/config/types.ts";
import {
  formatDuration,
  formatQuantity,
  parseDuration,
  parsePercentage,
  parseQuantity,
  parseSize,
} from "../../../src/config/units.ts";
import { fromRfc3339, toRfc3339 } from "../../../src/model/time.ts";
import { signs, textOf } from "../inputs.ts";
import { holds, same, type Target, textTarget } from "../target.ts";

const INT64_LIMIT = 2n ** 63n;

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
    samples: "5m 1h30m 1.5s 100ms 30d 2w -1h 0 0s 9223372036854775807ns".split(" "),
  }),
  (text) => {
    const span = parseDuration(text);
    if (span === null) return;
    holds(span >= -INT64_LIMIT && span < INT64_LIMIT, `${span} is beyond 64 bits`);
    const printed = formatDuration(span);
    // The one value whose magnitude 64 bits do not hold.
    if (span !== -INT64_LIMIT) same(parseDuration(printed), span, `${printed} is read back`);
  },
);

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
      holds(value > -INT64_LIMIT && value < INT64_LIMIT, `${value} is beyond 64 bits`);
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
      const printed = shownText(type, statements);
      same(parseText(type, printed), read, `${printed} is read back`);
      if (of !== "threshold") continue;
      const none = { evictionSoft: {}, evictionSoftGracePeriod: {}, evictionMinimumReclaim: {} };
      const thresholds = thresholdsOf({ ...none, evictionHard: statements });
      const inForce = Object.entries(statements).filter(
        ([, amount]) => !/^(?:0|100)%$/.test(amount),
      );
      const ours = inForce.filter(([signal]) => /^(?:node|image|container)fs\./.test(signal));
      same(thresholds.length, ours.length, "thresholds in force");
      const others = Object.keys(statements).filter((signal) => whyIgnored(signal) !== null);
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
