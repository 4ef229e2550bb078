/**
 * The kubelet's rule for a failing loop: the first failure in a row is only logged, each further one is an event, and
 * success after failure is reported.
 */

export type Verdict =
  | { readonly kind: "succeeded" }
  | { readonly kind: "recovered"; readonly failures: number }
  | { readonly kind: "failed-first" }
  | { readonly kind: "failed-again"; readonly failures: number };

export class FailureRule {
  #failures = 0;

  note(failed: boolean): Verdict {
    if (failed) {
      this.#failures += 1;
      return this.#failures === 1
        ? { kind: "failed-first" }
        : { kind: "failed-again", failures: this.#failures };
    }
    const failures = this.#failures;
    this.#failures = 0;
    return failures > 0 ? { kind: "recovered", failures } : { kind: "succeeded" };
  }

  failures(): number {
    return this.#failures;
  }
}
