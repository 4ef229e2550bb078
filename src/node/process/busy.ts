/**
 * Enables compilation in a busy process: by default the executable rarely compiles, which suits short commands and an
 * idle agent.
 */

/** More runtime calls within the window than a small node causes. */
const CALLS = 500;
const WINDOW_MS = 10_000;

/** Counts calls, and work worth several. Once there are many, hot code is compiled as early as usual. */
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

/** Reverts the `--compile-jit-policy` of `scripts/build`. */
const usualCompilation = (): void => Bun.unsafe.setJITPolicy(1);
