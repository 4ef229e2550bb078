// Bounds a question to the operating system that may never be answered, such as statfs on a network share that is gone.

/** What `answer` resolves to, or a rejection after `ms`. The question itself cannot be taken back. */
export async function withDeadline<T>(answer: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
