// Doctor's checks of directories, the clock, the ledger, the agent and the sockets.

import { expect, test } from "bun:test";

import type { SocketFact } from "../../../src/agent/openers.ts";
import type { Verdict } from "../../../src/cli/checks/check.ts";
import {
  agentCheck,
  clockCheck,
  directoryCheck,
  ledgerCheck,
  socketCheck,
  userCheck,
} from "../../../src/cli/checks/machine.ts";
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
import { aLedger, GIB, NOW } from "../../support/build/values.ts";

const about = { path: "/var/lib/crigc", flag: "--state-dir", userId: 0 };
const present: Extract<DirectoryFact, { kind: "present" }> = {
  kind: "present",
  writable: true,
  availableBytes: GIB,
  inodes: 100n,
  inodesFree: 10n,
};

const ahead = (span: Duration) => aLedger({ observedAt: plus(NOW, span) });

/** `ok: the message`. */
const shown = ({ result, message }: Verdict): string => `${result}: ${message}`;

test.each<[DirectoryFact, string]>([
  [present, "ok: /var/lib/crigc is writable, 1.0 GiB left"],
  [{ ...present, writable: false }, "failed: /var/lib/crigc cannot be written"],
  [{ ...present, availableBytes: 4096n }, "warning: /var/lib/crigc is nearly full (4.0 KiB left)"],
  [{ ...present, inodesFree: 0n }, "warning: /var/lib/crigc has no inodes left"],
  [{ ...present, inodes: 0n, inodesFree: 0n }, "ok: /var/lib/crigc is writable"],
  [{ kind: "absent", creatable: true }, "ok: /var/lib/crigc does not exist yet; crigc will create"],
  [{ kind: "absent", creatable: false }, "failed: /var/lib/crigc does not exist and cannot be"],
  [{ kind: "failed", message: "a file" }, "failed: /var/lib/crigc cannot be used: a file"],
])("a directory that is %p: %s", (fact, words) => {
  expect(shown(directoryCheck(about, fact))).toStartWith(words);
});

test("a user without access to a directory is advised to run as root, not to choose another one", () => {
  const closed = { kind: "failed", message: "permission denied" } as const;
  expect(directoryCheck(about, closed).advice).toContain("--state-dir");
  expect(directoryCheck({ ...about, userId: 1000 }, closed).advice).toBe(
    "run as root (sudo crigc …)",
  );
});

interface Clock {
  readonly now?: Instant;
  readonly bootId?: string;
  readonly ledger?: Ledger;
}

test.each<[string, Clock, string]>([
  ["is right", {}, "ok"],
  ["has no ledger to compare with", { ledger: emptyLedger }, "ok"],
  ["was set back a second, as by NTP", { ledger: ahead(seconds(1)) }, "ok"],
  ["was set back", { ledger: ahead(hours(3)) }, "warning: the ledger was last written 3h in the"],
  [
    "starts in 1970",
    { now: instant(minutes(5)), ledger: emptyLedger },
    "warning: the clock says 1970-01-01T00:05:00Z",
  ],
  ["has no boot ID", { bootId: "" }, "warning: cannot read the boot ID"],
])("a clock that %s", (_, { now = NOW, bootId = "boot-1", ledger = aLedger() }, words) => {
  expect(shown(clockCheck(now, bootId, ledger))).toStartWith(words);
});

test("notices of the state directory are warnings", () => {
  expect(ledgerCheck(aLedger(), ["the file is newer"])).toMatchObject({
    result: "warning",
    message: "the file is newer",
  });
  expect(ledgerCheck(aLedger(), []).result).toBe("ok");
  expect(ledgerCheck({ ...emptyLedger, uptime: duration(0n) }, []).message).toContain(
    "empty: every image counts as new",
  );
});

test("a user who is not root gets a warning", () => {
  expect([userCheck(0).result, userCheck(1000).result]).toEqual(["ok", "warning"]);
});

const well = { kind: "Status", pid: 7, version: "1.2.3", dryRun: false, runtimeError: null };
const answer = (change: object): string => JSON.stringify({ ...well, ...change });

test.each<[string, string]>([
  [answer({}), "ok: running (process 7, version 1.2.3)"],
  [answer({ dryRun: true }), "ok: running (process 7, version 1.2.3), as a dry run"],
  [
    answer({ runtimeError: "no socket" }),
    "failed: running (process 7, version 1.2.3), with errors",
  ],
  [
    answer({ configurationError: "a.yaml:3: x" }),
    "warning: running (process 7, version 1.2.3); its configuration files differ from what is in force: a.yaml:3: x",
  ],
  [
    answer({ version: "1.2.2" }),
    "warning: running (process 7, version 1.2.2); this crigc is version 1.2.3",
  ],
  ["hello", "failed: another program answers"],
  [answer({ kind: "Plan" }), "failed: another program answers"],
  ["null", "failed: another program answers"],
])("an agent that answers %s: %s", (text, words) => {
  expect(shown(agentCheck({ kind: "answered", text }, "1.2.3"))).toStartWith(words);
});

test("a missing agent is only a warning, because a timer may run gc", () => {
  expect(agentCheck({ kind: "none", why: "socket not found" }, "1.2.3")).toMatchObject({
    result: "warning",
    message: "socket not found; without an agent, only crigc gc removes anything",
  });
});

const answering = (endpoint: string, name = "containerd"): SocketFact => ({
  endpoint,
  answer: { kind: "runtime", name, version: "1.7.24" },
});

const silent = (endpoint: string): SocketFact => ({
  endpoint,
  answer: {
    kind: "error",
    message: `${endpoint} permission denied; run as root`,
  },
});

const A = "unix:///run/a.sock";
const B = "unix:///run/b.sock";

const runs = (endpoint: string, name = "containerd"): string =>
  `${endpoint} answers (${name} 1.7.24)`;

test.each<[readonly SocketFact[], string | null, string]>([
  [[answering(A)], null, `ok: ${runs(A)}`],
  [[silent(A), answering(B)], null, `ok: ${runs(B)}`],
  [
    [answering(A), answering(B, "cri-o")],
    null,
    `failed: several runtimes answer, so run and gc refuse to run: ${runs(A)} and ${runs(B, "cri-o")}`,
  ],
  [[], null, "failed: none of the known sockets exists"],
  [[silent(A)], null, `failed: ${A} permission denied; run as root`],
  [[answering(A)], A, `ok: ${runs(A)}, as configured`],
  [[answering(A), answering(B)], A, `ok: ${runs(A)}, as configured; also ${runs(B)}`],
  [[silent(A), answering(B)], A, `failed: ${A} permission denied; run as root`],
])("doctor checks the sockets %p, configured %p", (facts, named, words) => {
  expect(shown(socketCheck(facts, named))).toBe(words);
});
