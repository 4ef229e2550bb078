/** What other programs do to the disk meanwhile: the rate of change between removals. */

/** The changes of a second give the rate. */
const WINDOW_NS = 1_000_000_000n;

interface Quiet {
  readonly ns: bigint;
  readonly bytes: ReadonlyMap<string, bigint>;
}

export class Drift {
  /** Newest last. */
  #quiet: readonly Quiet[] = [];

  /** Records what changed between two removals, by device. */
  note(quiet: Quiet): void {
    const all = [...this.#quiet, quiet];
    let ns = 0n;
    const from = all.findLastIndex((one) => (ns += one.ns) >= WINDOW_NS);
    this.#quiet = all.slice(Math.max(0, from));
  }

  /** By how much available space changes in that time without a removal. */
  in(ns: bigint, device: string): bigint {
    const sum = (of: (quiet: Quiet) => bigint): bigint =>
      this.#quiet.reduce((total, one) => total + of(one), 0n);
    const quietNs = sum((one) => one.ns);
    return quietNs > 0n ? (sum(({ bytes }) => bytes.get(device) ?? 0n) * ns) / quietNs : 0n;
  }
}
