// Waits for something to become true, with a bound and a name, instead of sleeping.

/** Polls `probe` until it gives a value other than undefined or false; throws when `withinMs` has passed. */
export async function until<T>(
  what: string,
  withinMs: number,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    if (performance.now() - startedAt > withinMs) {
      throw new Error(`waited ${withinMs} ms in vain until ${what}`);
    }
    await Bun.sleep(pollMs);
  }
}

const pollMs = 25;
