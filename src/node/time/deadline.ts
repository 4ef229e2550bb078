// Bounds calls to the operating system that may never return, such as statfs on a dead network share.

/** The result of `answer`, or a rejection after `ms`. Does not cancel the call. */
async function withDeadline<T>(answer: Promise<T>, ms: number): Promise<T> {
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

/** Does not repeat a call while one is unanswered, because each would block another thread forever. */
export class Questions {
  readonly #open = new Set<string>();

  /**
   * Resolves with the answer; rejects after `ms`, or at once while an earlier question with the same key is open past
   * its deadline.
   */
  async ask<T>(key: string, question: () => Promise<T>, ms: number): Promise<T> {
    if (this.#open.has(key)) throw new Error("an earlier call is still pending");
    const answer = question();
    let answered = false;
    const note = (): void => {
      answered = true;
      this.#open.delete(key);
    };
    answer.then(note, note);
    try {
      return await withDeadline(answer, ms);
    } finally {
      // Whatever ended the wait: while there is no answer, nothing else should wait for one.
      if (!answered) this.#open.add(key);
    }
  }
}
