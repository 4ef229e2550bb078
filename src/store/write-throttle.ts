// When the store may write: as soon as asked, rarely on a slow disk, and later after each refusal.

// A write goes to the page cache: one that takes so long waited for the disk, and not only for its turn of the processor.
const slowMs = 100;
/** On a slow disk one part in ten of the time goes into writing. */
const restFactor = 9;
const restMaxMs = 30_000;
const retryFirstMs = 1_000;
const retryMaxMs = 60_000;

export class WriteThrottle {
  readonly #write: () => void;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #notBeforeMs = 0;
  #retryMs = retryFirstMs;

  constructor(write: () => void) {
    this.#write = write;
  }

  /** Asks to write; calls between now and then share one write. It does not keep a process alive by itself. */
  ask(): void {
    if (this.#timer !== null) return;
    const waitMs = Math.max(0, this.#notBeforeMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#write();
    }, waitMs);
    this.#timer.unref();
  }

  succeeded(tookMs: number): void {
    this.#retryMs = retryFirstMs;
    const restMs = tookMs > slowMs ? Math.min(tookMs * restFactor, restMaxMs) : 0;
    this.#notBeforeMs = performance.now() + restMs;
  }

  failed(): void {
    this.#notBeforeMs = performance.now() + this.#retryMs;
    this.#retryMs = Math.min(this.#retryMs * 2, retryMaxMs);
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
