// Doctor's checks of directories, the clock, the ledger, the agent and the sockets: a snapshot of what each says.

import { expect, test } from "bun:test";

import {
  agentCheck,
  clockCheck,
  directoryCheck,
  ledgerCheck,
  socketCheck,
  userCheck,
} from "../../../src/cli/checks/machine.ts";
import type { SocketFact } from "../../../src/engine/openers.ts";
import { emptyLedger, type Ledger } from "../../../src/model/ledger.ts";
import {
  type Duration,
  duration,
  hours,
  type Instant,
  instant,
  minutes,
  plus,
  seconds,
} from "../../../src/model/time.ts";
import type { DirectoryFact } from "../../../src/node/directories.ts";
import type { Verdict } from "../../../src/report/doctor.ts";
import { aLedger, GIB, NOW } from "../../support/build/values.ts";

/** `result: message (advice)`. */
const shown = ({ result, message, advice }: Verdict): string =>
  `${result}: ${message}${advice === null ? "" : ` (${advice})`}`;

/** Each case with what the check says of it. */
const saidOf = (cases: Readonly<Record<string, Verdict>>): string =>
  Object.entries(cases)
    .map(([name, verdict]) => `${name}: ${shown(verdict)}`)
    .join("\n");

test("doctor says of a directory whether it can be written, and whether it is full", () => {
  const directory = (fact: DirectoryFact, userId = 0) =>
    directoryCheck({ path: "/var/lib/crigc", flag: "--state-dir", userId }, fact);
  const runDirectory = (fact: DirectoryFact) =>
    directoryCheck({ path: "/run/crigc", flag: "--run-dir", userId: 0 }, fact);
  const inodes = { inodes: 100n, inodesFree: 10n };
  const present = { kind: "present", writable: true, availableBytes: GIB, ...inodes } as const;
  const closed = { kind: "failed", message: "permission denied" } as const;
  expect(
    saidOf({
      well: directory(present),
      "read-only": directory({ ...present, writable: false }),
      full: directory({ ...present, availableBytes: 4096n }),
      "full, for a socket": runDirectory({ ...present, availableBytes: 4096n }),
      "without free inodes": directory({ ...present, inodesFree: 0n }),
      "without inodes": directory({ ...present, inodes: 0n, inodesFree: 0n }),
      "not there yet": directory({ kind: "absent", creatable: true }),
      "that cannot be made": directory({ kind: "absent", creatable: false }),
      "that is a file": directory({ kind: "failed", message: "a file" }),
      "closed to root": directory(closed),
      "closed to a user": directory(closed, 1000),
    }),
  ).toMatchSnapshot();
});

test("doctor says of the clock, the ledger and the user what may be wrong", () => {
  const clock = (change: { now?: Instant; bootId?: string; ledger?: Ledger } = {}) =>
    clockCheck(change.now ?? NOW, change.bootId ?? "boot-1", change.ledger ?? aLedger());
  const ahead = (span: Duration) => aLedger({ observedAt: plus(NOW, span) });
  expect(
    saidOf({
      "clock that is right": clock(),
      "clock without a ledger to compare with": clock({ ledger: emptyLedger }),
      "clock set back a second, as by NTP": clock({ ledger: ahead(seconds(1)) }),
      "clock set back": clock({ ledger: ahead(hours(3)) }),
      "clock in 1970": clock({ now: instant(minutes(5)), ledger: emptyLedger }),
      "clock without a boot ID": clock({ bootId: "" }),
      ledger: ledgerCheck(aLedger(), []),
      "ledger with a notice": ledgerCheck(aLedger(), ["the file is newer"]),
      "empty ledger": ledgerCheck({ ...emptyLedger, uptime: duration(0n) }, []),
      root: userCheck(0),
      "another user": userCheck(1000),
    }),
  ).toMatchSnapshot();
});

test("doctor says of the agent whether it runs, as which version, and with errors", () => {
  const agent = (text: string) => agentCheck({ kind: "answered", text }, "1.2.3");
  const status = (change: object) =>
    agent(
      JSON.stringify({
        kind: "Status",
        pid: 7,
        version: "1.2.3",
        dryRun: false,
        runtimeError: null,
        ...change,
      }),
    );
  expect(
    saidOf({
      well: status({}),
      "that tries": status({ dryRun: true }),
      "without a runtime": status({ runtimeError: "no socket" }),
      "of another version": status({ version: "1.2.2" }),
      "that answers no JSON": agent("hello"),
      "that answers another kind": status({ kind: "Plan" }),
      "that answers null": agent("null"),
      // A timer may run gc.
      none: agentCheck({ kind: "none", why: "socket not found" }, "1.2.3"),
    }),
  ).toMatchSnapshot();
});

test("doctor says which sockets answer, and whether run and gc have exactly one", () => {
  const [A, B] = ["unix:///run/a.sock", "unix:///run/b.sock"] as const;
  const answering = (endpoint: string, name = "containerd"): SocketFact => ({
    endpoint,
    answer: { kind: "runtime", name, version: "1.7.24" },
  });
  const message = `${A} permission denied; run as root`;
  const silent: SocketFact = { endpoint: A, answer: { kind: "error", message } };
  expect(
    saidOf({
      one: socketCheck([answering(A)], null),
      "a silent one": socketCheck([silent, answering(B)], null),
      two: socketCheck([answering(A), answering(B, "cri-o")], null),
      none: socketCheck([], null),
      "only a silent one": socketCheck([silent], null),
      "as configured": socketCheck([answering(A)], A),
      "another one, too": socketCheck([answering(A), answering(B)], A),
      "configured and silent": socketCheck([silent, answering(B)], A),
    }),
  ).toMatchSnapshot();
});
