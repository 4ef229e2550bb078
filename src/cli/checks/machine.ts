/** What of the machine itself matters: our directories, our rights, the clock, and what is remembered. */

import type { DirectoryFact } from "../../host/disk/directory-fact.ts";
import type { Ledger } from "../../model/ledger.ts";
import { type Instant, minutes, since, toRfc3339 } from "../../model/time.ts";
import { counted, humanBytes, humanDuration } from "../../report/bytes.ts";
import type { DoctorCheck } from "../../report/table/doctor.ts";
import { failed, ok, warning } from "./check.ts";

export const userCheck = (userId: number): DoctorCheck =>
  userId === 0
    ? ok("user", "running as root")
    : warning(
        "user",
        `running as user ${userId}, who may see less than the agent and cannot delete pod logs`,
        AS_ROOT,
      );

const AS_ROOT = "run as root (sudo crigc …)";

/** Below this a database of our size may not be written whole. */
const ROOM_BYTES = 64n << 20n;

export function directoryCheck(
  about: {
    readonly name: string;
    readonly path: string;
    readonly flag: string;
    readonly userId: number;
  },
  fact: DirectoryFact,
): DoctorCheck {
  const { name, path, flag, userId } = about;
  // To another user the agent's own directories are closed; moving them would help nobody.
  const elsewhere = userId === 0 ? `set another directory with ${flag}` : AS_ROOT;
  switch (fact.kind) {
    case "failed":
      return failed(name, `${path} cannot be used: ${fact.message}`, elsewhere);
    case "absent":
      return fact.creatable
        ? ok(name, `${path} does not exist yet; crigc will create it`)
        : failed(name, `${path} does not exist and cannot be created`, elsewhere);
    case "present":
      break;
  }
  if (!fact.writable) return failed(name, `${path} cannot be written`, elsewhere);
  const room = humanBytes(fact.availableBytes);
  if (fact.availableBytes < ROOM_BYTES)
    return warning(
      name,
      `${path} is nearly full (${room} left): ledger and holds may not be saved`,
      "free space on its filesystem",
    );
  if (fact.inodes > 0n && fact.inodesFree === 0n)
    return warning(
      name,
      `${path} has no inodes left: ledger and holds may not be saved`,
      "free space on its filesystem",
    );
  return ok(name, `${path} is writable, ${room} left`);
}

/** What no clock of a node that runs this can say: the day before it was written. */
const EARLIEST_YEAR = 2024;
const SLACK = minutes(1);

export function clockCheck(facts: {
  readonly now: Instant;
  readonly bootId: string;
  readonly ledger: Ledger;
}): DoctorCheck {
  const { now, bootId, ledger } = facts;
  const shown = toRfc3339(now);
  if (new Date(Number(now / 1_000_000n)).getUTCFullYear() < EARLIEST_YEAR)
    return warning(
      "clock",
      `the clock says ${shown}: times in the history are wrong; ages count observed time and are right`,
      "set the clock, for example by NTP",
    );
  const ahead = ledger.observedAt === null ? null : since(ledger.observedAt, now);
  if (ahead !== null && ahead > SLACK)
    return warning(
      "clock",
      `the ledger was last written ${humanDuration(ahead)} in the future: the clock was set back since; ages count observed time and are right`,
      "check the clock",
    );
  if (bootId === "")
    return warning(
      "clock",
      "cannot read the boot ID; crigc detects a reboot by uptime only",
      "mount /proc without restrictions",
    );
  return ok("clock", `the clock says ${shown}, later than the ledger`);
}

export function ledgerCheck(ledger: Ledger, notices: readonly string[]): DoctorCheck {
  if (notices.length > 0) return warning("ledger", notices.join("; "), null);
  return ledger.observedAt === null
    ? ok("ledger", "empty: every image counts as new")
    : ok(
        "ledger",
        `${counted(ledger.images.size, "image")} recorded, last observed at ${toRfc3339(ledger.observedAt)}`,
      );
}
