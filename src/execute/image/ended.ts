/** Thrown to end a container pass early. */

import type { ContainerOutcome } from "../../model/outcome.ts";

export class Ended extends Error {
  readonly end: ContainerOutcome["end"];

  /** `message`: for the outcome; "" if `end` says everything. */
  constructor(end: ContainerOutcome["end"], message = "") {
    super(message);
    this.end = end;
  }
}
