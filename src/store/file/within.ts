// Patience for work that may take for ever.

/** Waits no longer, and says whether it is done; the work goes on by itself. */
export async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const patience = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const isDone = await Promise.race([work.then(() => true), patience]);
  clearTimeout(timer);
  return isDone;
}
