/** Doctor's checks of the machine: sockets, directories, rights, clock, ledger, and the agent on it. */

import * as v from "valibot";

import type { SocketFact } from "../../engine/openers.ts";
import { isBootId } from "../../model/ids.ts";
import type { Ledger } from "../../model/ledger.ts";
import { type Filesystem } from "../../model/snapshot.ts";
import { type Instant, minutes, since } from "../../model/time.ts";
import { parsedJson } from "../../model/values.ts";
import type { DirectoryFact } from "../../node/directories.ts";
import { failed, ok, type Verdict, warning } from "../../report/doctor.ts";
import { present } from "../../report/terminal.ts";
import { counted, humanBytes, humanDuration, secondOf } from "../../report/words.ts";

export const userCheck = (userId: number): Verdict =>
  userId === 0
    ? ok("running as root")
    : warning(
        `running as user ${userId}, who may see less than the agent does and cannot delete pod logs`,
        AS_ROOT,
      );

const AS_ROOT = "run as root (sudo crigc …)";

/** With less, the ledger, the history or a hold may not fit. */
const STATE_NEEDS_BYTES = 64n << 20n;

export function directoryCheck(
  about: {
    readonly path: string;
    readonly flag: "--state-dir" | "--run-dir";
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
  if (flag === "--state-dir" && fact.availableBytes < STATE_NEEDS_BYTES)
    return warning(
      `${path} is nearly full (${room} left): ledger and holds may not be saved`,
      "free space on its filesystem",
    );
  if (fact.inodes > 0n && fact.inodesFree === 0n)
    return warning(
      `${path} has no inodes left: its files may not be saved`,
      "free space on its filesystem",
    );
  return ok(`${path} is writable, ${room} left`);
}

/** Any earlier time is wrong: this code did not exist. */
const EARLIEST_YEAR = 2024;
const SLACK = minutes(1);

export function clockCheck(now: Instant, bootId: string, ledger: Ledger): Verdict {
  const shown = secondOf(now);
  if (new Date(Number(now / 1_000_000n)).getUTCFullYear() < EARLIEST_YEAR)
    return warning(
      `the clock says ${shown}: times in the history are wrong; ages are right, because they count uptime`,
      "set the clock, for example by NTP",
    );
  const ahead = ledger.observedAt === null ? null : since(ledger.observedAt, now);
  if (ahead !== null && ahead > SLACK)
    return warning(
      `the ledger was last written ${humanDuration(ahead)} in the future: the clock was set back since; ages are right, because they count uptime`,
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
  if (notices.length > 0) return warning(notices.join("; "));
  return ledger.observedAt === null
    ? ok("empty: every image counts as new")
    : ok(
        `${counted(ledger.images.size, "image")} recorded, last updated at ${secondOf(ledger.observedAt)}`,
      );
}

export const addressCheck = (address: string, fault: string | null): Verdict =>
  fault === null
    ? ok(`${address} is free`)
    : failed(
        `cannot listen on ${address}: ${fault}`,
        "stop what listens there, or change --metrics-bind-address",
      );

/** The state directory belongs on another disk than the images, if the node has one. */
export function stateDiskCheck(
  directory: string,
  device: string | null,
  images: Filesystem | null,
): Verdict | null {
  if (images === null || images.roles.includes("nodefs") || device !== images.device) return null;
  return warning(
    `${directory} is on the image filesystem: when that is full, crigc cannot save ledger and history`,
    "move it to another filesystem with --state-dir",
  );
}

const Status = v.object({
  kind: v.literal("Status"),
  pid: v.unknown(),
  version: v.nullish(v.string()),
  dryRun: v.nullish(v.boolean()),
  runtimeError: v.nullish(v.string()),
  ledgerError: v.nullish(v.string()),
});

/** `status`: the agent's document, or the reason for its absence. */
export function agentCheck(
  status:
    | { readonly kind: "answered"; readonly text: string }
    | { readonly kind: "none"; readonly why: string },
  version: string,
): Verdict {
  if (status.kind === "none")
    return warning(`${status.why}; without an agent, only crigc gc removes anything`);
  const read = v.safeParse(Status, parsedJson(status.text));
  if (!read.success) return failed("another program answers at the control socket");
  const { pid, version: theirs, dryRun, ...errors } = read.output;
  const who = `process ${String(pid)}, version ${theirs ?? "unknown"}`;
  const problems = present([
    errors.runtimeError != null && `the runtime does not answer: ${errors.runtimeError}`,
    errors.ledgerError != null && `the ledger is not saved: ${errors.ledgerError}`,
  ]);
  if (problems.length > 0)
    return failed(
      `running (${who}), with errors: ${problems.join("; ")}`,
      "crigc status shows details",
    );
  if (theirs !== version)
    return warning(
      `running (${who}); this crigc is version ${version}`,
      "restart the agent after an upgrade",
    );
  return ok(`running (${who})${dryRun === true ? ", as a dry run" : ""}`);
}

/** `named`: the configured endpoint, whose fact comes first; `null`: none. */
export function socketCheck(facts: readonly SocketFact[], named: string | null): Verdict {
  return named === null ? foundCheck(facts) : namedCheck(facts);
}

function namedCheck([first, ...others]: readonly SocketFact[]): Verdict {
  if (first === undefined) return failed("the configured socket was not checked");
  const { answer } = first;
  if (answer.kind === "error") return failed(answer.message);
  const beside = others.filter((it) => it.answer.kind === "runtime");
  const also = beside.length === 0 ? "" : `; also ${beside.map(wordsOf).join(" and ")}`;
  return ok(`${wordsOf(first)}, as configured${also}`);
}

function foundCheck(facts: readonly SocketFact[]): Verdict {
  const answering = facts.filter((it) => it.answer.kind === "runtime");
  const [only] = answering;
  if (answering.length > 1)
    return failed(
      `several runtimes answer, so run and gc refuse to run: ${answering.map(wordsOf).join(" and ")}`,
      "specify one with --container-runtime-endpoint; Docker's own containerd has no pod images",
    );
  if (only !== undefined) return ok(wordsOf(only));
  const errors = facts.flatMap(({ answer }) => (answer.kind === "error" ? [answer] : []));
  if (errors.length === 0)
    return failed(
      "none of the known sockets exists",
      "start the runtime, or specify its socket with --container-runtime-endpoint",
    );
  return failed(errors.map(({ message }) => message).join("; "));
}

const wordsOf = ({ endpoint, answer }: SocketFact): string =>
  answer.kind === "runtime"
    ? `${endpoint} answers (${answer.name} ${answer.version})`
    : `${endpoint} does not answer`;
