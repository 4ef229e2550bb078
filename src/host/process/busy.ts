/**
 * Enables compilation in a busy process: by default the executable rarely compiles, which suits short commands and an idle
 * agent.
 */

/** So many calls of the runtime in so short a time are more than a small node gives cause for. */
const CALLS = 500;
const WINDOW_MS = 10_000;

/** Is told of each call, and of work that is worth some. From the time when there are many on, code that runs often is compiled as soon as it usually is. */
export function compileWhenBusy(
  nowMs: () => number,
  compile = usualCompilation,
): (calls?: number) => void {
  let calls = 0;
  let startedMs = nowMs();
  let isBusy = false;
  return (more = 1) => {
    if (isBusy) return;
    if (nowMs() - startedMs > WINDOW_MS) {
      calls = 0;
      startedMs = nowMs();
    }
    calls += more;
    if (calls < CALLS) return;
    isBusy = true;
    compile();
  };
}

/** Undoes what `scripts/build` says with `--compile-jit-policy`. */
const usualCompilation = (): void => Bun.unsafe.setJITPolicy(1);
