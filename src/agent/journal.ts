/** Distributes the records of passes to the log, the history, the metrics and the event hook. */

import type { Journal } from "../gc/ports.ts";
import type { Event, Pass } from "../model/pass.ts";
import type { Instant } from "../model/time.ts";
import type { Recorder } from "../store/recorder.ts";
import { logContainerItem, logEvent, logImage, logPassEnd } from "./log-pass.ts";
import type { Log } from "./log.ts";

export interface JournalOptions {
  readonly log: () => Log;
  /** `null`: a dry run, which records nothing. */
  readonly recorder: Recorder | null;
  readonly now: () => Instant;
  /** Further listeners; none of them may throw. */
  readonly onPass?: (pass: Pass) => void;
  readonly onEvent?: (event: Event) => void;
}

export function journalOf(options: JournalOptions): Journal {
  const { log, recorder, now } = options;
  return {
    passStarted: (start) => recorder?.passStarted(start),
    imageDone: (id, item) => {
      recorder?.imageDone(id, item);
      logImage(log(), id, item);
    },
    containerDone: (id, item) => {
      recorder?.containerDone(id, item, now());
      logContainerItem(log(), id, item);
    },
    passEnded: (pass, seen) => {
      recorder?.passEnded(pass, seen?.filesystems ?? null);
      logPassEnd(log(), pass);
      options.onPass?.(pass);
    },
    event: (event) => {
      recorder?.event(event);
      logEvent(log(), event);
      options.onEvent?.(event);
    },
    say: (verbosity, message) => log().info(verbosity, message),
    failed: (topic, message) => log().failure(topic, message),
    succeeded: (topic, what) => log().success(topic, what),
  };
}
