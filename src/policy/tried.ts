/** Codes of the rules that were tried, in order. */
import { byObject } from "./by-object.ts";

export const NONE_TRIED: readonly never[] = [];

/** The same list for the same codes: there are a few, and tens of thousands of images and containers. */
export function triedWith<Code extends string>(
  tried: readonly Code[],
  code: Code,
): readonly Code[] {
  const longer = longerThan(tried);
  const list = longer.get(code) ?? [...tried, code];
  longer.set(code, list);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made of these codes
  return list as readonly Code[];
}

const longerThan = byObject<readonly string[], Map<string, readonly string[]>>(() => new Map());
