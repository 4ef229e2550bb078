/** Doctor's checks of the machine: directories, rights, clock and ledger. */

import type { Ledger } from "../../model/ledger.ts";
import { type Filesystem, isBootId } from "../../model/snapshot.ts";
import { type Instant, minutes, since } from "../../model/time.ts";
import type { DirectoryFact } from "../../node/directories.ts";
import { counted, humanBytes, humanDuration, secondOf } from "../../report/bytes.ts";
import { failed, ok, type Verdict, warning } from "./check.ts";

export const userCheck = (userId: number): Verdict =>
  userId === 0
    ? ok("running as root")
    : warning(
        `running as user ${userId}, who may see less than the agent does and cannot delete pod logs`,
        AS_ROOT,
      );

const AS_ROOT = "run as root (sudo crigc …)";

/** With less, our database may not fit. */
const ROOM_BYTES = 64n << 20n;

export function directoryCheck(
  about: {
    readonly path: string;
    readonly flag: string;
    readonly userId: number;
  },
  fact: DirectoryFact,
): Verdict {
  const { path, flag, userId } = about;
  // Other users have no access to the agent's directories; moving them would not help.
  const elsewhere = userId === 0 ? `set another directory with ${flag}` : AS_ROOT;
  switch (fact.kind) {
    case "failed":
      return failed(`${path} cannot be used: ${fact.message}`, elsewhere);
    case "absent":
      return fact.creatable
        ? ok(`${path} does not exist yet; crigc will create it`)
        : failed(`${path} does not exist and cannot be created`, elsewhere);
    case "present":
      break;
  }
  if (!fact.writable) return failed(`${path} cannot be written`, elsewhere);
  const room = humanBytes(fact.availableBytes);
  if (fact.availableBytes < ROOM_BYTES)
    return warning(
      `${path} is nearly full (${room} left): ledger and holds may not be saved`,
      "free space on its filesystem",
    );
  if (fact.inodes > 0n && fact.inodesFree === 0n)
    return warning(
      `${path} has no inodes left: ledger and holds may not be saved`,
      "free space on its filesystem",
    );
  return ok(`${path} is writable, ${room} left`);
}

/** Any earlier time is wrong: this code did not exist. */
const EARLIEST_YEAR = 2024;
const SLACK = minutes(1);

export function clockCheck(facts: {
  readonly now: Instant;
  readonly bootId: string;
  readonly ledger: Ledger;
}): Verdict {
  const { now, bootId, ledger } = facts;
  const shown = secondOf(now);
  if (new Date(Number(now / 1_000_000n)).getUTCFullYear() < EARLIEST_YEAR)
    return warning(
      `the clock says ${shown}: times in the history are wrong; ages are right, because they count observed time`,
      "set the clock, for example by NTP",
    );
  const ahead = ledger.observedAt === null ? null : since(ledger.observedAt, now);
  if (ahead !== null && ahead > SLACK)
    return warning(
      `the ledger was last written ${humanDuration(ahead)} in the future: the clock was set back since; ages are right, because they count observed time`,
      "check the clock",
    );
  if (!isBootId(bootId))
    return warning(
      "cannot read the boot ID; crigc detects a reboot by the clocks only",
      "mount /proc without restrictions",
    );
  return ok(`the clock says ${shown}, later than the ledger`);
}

export function ledgerCheck(ledger: Ledger, notices: readonly string[]): Verdict {
  if (notices.length > 0) return warning(notices.join("; "), null);
  return ledger.observedAt === null
    ? ok("empty: every image counts as new")
    : ok(
        `${counted(ledger.images.size, "image")} recorded, last updated at ${secondOf(ledger.observedAt)}`,
      );
}

export const hookCheck = (hook: string, fault: string | null): Verdict =>
  fault === null
    ? ok(`${hook} can be run`)
    : failed(
        `cannot run ${hook}: ${fault}; no event reaches it`,
        "install it there with mode 0755, or change --event-hook",
      );

export const addressCheck = (address: string, fault: string | null): Verdict =>
  fault === null
    ? ok(`${address} is free`)
    : failed(
        `cannot listen on ${address}: ${fault}`,
        "stop what listens there, or change --metrics-bind-address",
      );

/** The state directory belongs on another disk than the images, if the node has one. */
export function stateDiskCheck(
  state: { readonly directory: string; readonly device: string | null },
  images: Filesystem | null,
): Verdict | null {
  if (images === null || images.roles.includes("nodefs") || state.device !== images.device)
    return null;
  return warning(
    `${state.directory} is on the image filesystem: when that is full, crigc cannot save ledger and history`,
    "move it to another filesystem with --state-dir",
  );
}
