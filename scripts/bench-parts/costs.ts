// Bare costs, added up and chosen from.

import type { BareCost } from "./bare.ts";

export const sum = (...costs: readonly (BareCost | undefined)[]): BareCost =>
  costs.reduce<BareCost>(
    (all, cost) => ({
      wallMs: all.wallMs + (cost?.wallMs ?? Number.NaN),
      processorMs: all.processorMs + (cost?.processorMs ?? Number.NaN),
      bytes: all.bytes + (cost?.bytes ?? 0),
    }),
    { wallMs: 0, processorMs: 0, bytes: 0 },
  );

export const cheapest = (costs: readonly BareCost[]): BareCost =>
  costs.toSorted((one, other) => one.wallMs - other.wallMs)[0] ?? sum(undefined);
