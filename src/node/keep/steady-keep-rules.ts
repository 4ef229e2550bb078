// Keep rules that outlive the rewriting of a file: rules missing from a file remain in force until they have been
// missing for a while.

import type { KeepRule, KeepRules } from "../../model/snapshot.ts";

/** Longer than editors, copies and configuration management take between truncating a file and writing its last line. */
const LINGER_NS = 10_000_000_000n;

type Read = (known: readonly string[]) => Promise<KeepRules>;

interface Remembered {
  readonly rule: KeepRule;
  /** `null`: the last reading had it. */
  readonly missingSinceNs: bigint | null;
}

/** `nowNs`: a clock that does not jump. Flags are never half-written, so their rules end at once. */
export function steadyKeepRules(read: Read, nowNs: () => bigint): Read {
  let remembered: ReadonlyMap<string, Remembered> = new Map();
  return async (known) => {
    const found = await read(known);
    const now = nowNs();
    const here = new Map(found.rules.map((rule) => [keyOf(rule), { rule, missingSinceNs: null }]));
    const missing = [...remembered]
      .filter(([key, { rule }]) => !here.has(key) && rule.source.startsWith("/"))
      .map(([key, { rule, missingSinceNs }]) => {
        return [key, { rule, missingSinceNs: missingSinceNs ?? now }] as const;
      })
      .filter(([, { missingSinceNs }]) => now - missingSinceNs < LINGER_NS);
    remembered = new Map<string, Remembered>([...here, ...missing]);
    return { ...found, rules: [...found.rules, ...missing.map(([, { rule }]) => rule)] };
  };
}

/** A rule whose line has moved is the same rule. */
const keyOf = ({ pattern, source }: KeepRule): string =>
  `${pattern}\n${source.replace(/:\d+$/, "")}`;
