// A bounded wait for work that may never end.

/** Waits at most `ms`, and resolves with whether the work is done; the work continues. */
export async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const isDone = await Promise.race([work.then(() => true), patience]);
  clearTimeout(timer);
  return isDone;
}
