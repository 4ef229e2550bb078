// Bounds a question to the operating system that may never be answered, such as statfs on a network share that is gone.

/** The result of `answer`, or a rejection after `ms`. The call itself is not cancelled. */
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

/** Calls that are not repeated while one is unanswered, because each would block another thread for ever. */
export class Questions {
  readonly #open = new Set<string>();

  /** What it is answered with; rejects after `ms`, and at once while an earlier question of the same key is still open past its deadline. */
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
      // Whatever ended the wait: as long as there is no answer, nobody else should wait for one.
      if (!answered) this.#open.add(key);
    }
  }
}
