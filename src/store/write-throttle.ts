// When the store may write: as soon as requested, and later after each failure.

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

  /** Requests a write; calls between now and then share it. Does not keep a process alive. */
  ask(): void {
    if (this.#timer !== null) return;
    const waitMs = Math.max(0, this.#notBeforeMs - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#write();
    }, waitMs);
    this.#timer.unref();
  }

  /** Whether the last write did not fail. */
  get isOpen(): boolean {
    return performance.now() >= this.#notBeforeMs;
  }

  /** What waits for a retry is written at once. */
  succeeded(): void {
    const isRetry = !this.isOpen && this.#timer !== null;
    this.#retryMs = retryFirstMs;
    this.#notBeforeMs = 0;
    if (!isRetry) return;
    this.stop();
    this.ask();
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
