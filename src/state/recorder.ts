/** Records passes in the history as they go on. */

import type { PassId } from "../model/ids.ts";
import type {
  ContainerItem,
  Event,
  ImageItem,
  LogItem,
  Pass,
  PassKind,
  PassStart,
  SandboxItem,
} from "../model/pass.ts";
import type { Purpose } from "../model/plan.ts";
import type { Filesystem } from "../model/snapshot.ts";
import { hours, type Instant, since } from "../model/time.ts";
import { containerRemoval, imageRemoval, samplesOf, toPassRow } from "./pass-rows.ts";
import type { State } from "./state.ts";

const DISKS_APART = hours(1);

/** Nothing here throws or waits for the disk. */
export class Recorder {
  readonly state: State;
  readonly #now: () => Instant;
  #purpose: Purpose = { kind: "periodic" };
  /** How the last pass of each kind ended. */
  readonly #ends = new Map<PassKind, string>();
  /** When the history got the last record of each disk. */
  readonly #disks: Map<string, Instant>;

  constructor(state: State, now: () => Instant) {
    this.state = state;
    this.#now = now;
    this.#disks = new Map(state.disksRecorded);
  }

  passStarted({ purpose }: PassStart): void {
    this.#purpose = purpose;
  }

  /** Before the next removal begins, so that a killed pass leaves its records. */
  imageDone(passId: PassId, item: ImageItem): void {
    this.state.append({ record: "removal", row: imageRemoval(passId, item) });
  }

  containerDone(passId: PassId, item: ContainerItem | SandboxItem | LogItem): void {
    const row = containerRemoval({ passId, purpose: this.#purpose, at: this.#now() }, item);
    this.state.append({ record: "removal", row });
  }

  /** `seen`: `null` if the pass saw nothing. */
  passEnded(pass: Pass, seen: { readonly filesystems: readonly Filesystem[] } | null): void {
    const row = toPassRow(pass);
    const end = JSON.stringify([row.imagesEnd, row.containersEnd, row.error]);
    const didSomething = row.removed + row.failed > 0 || pass.kind === "gc";
    if (didSomething || this.#ends.get(pass.kind) !== end)
      this.state.append({ record: "pass", row });
    this.#ends.set(pass.kind, end);
    this.#recordDisks(pass, seen?.filesystems ?? []);
    this.state.sync();
  }

  /** Every event, of a pass or of none. */
  event(row: Event): void {
    this.state.append({ record: "warning", row });
  }

  #recordDisks(pass: Pass, filesystems: readonly Filesystem[]): void {
    // The plan of a pass over containers alone has no thresholds.
    if (pass.plan.images === null) return;
    for (const row of samplesOf(pass, filesystems)) {
      const before = this.#disks.get(row.device);
      const passed = before === undefined ? null : since(row.at, before);
      // A clock that was set back hides no disk.
      if (passed !== null && passed >= 0n && passed < DISKS_APART) continue;
      this.#disks.set(row.device, row.at);
      this.state.append({ record: "disk", row });
    }
  }
}
