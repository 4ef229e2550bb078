// Doctor's checks of directories, the clock, the ledger, the agent and the sockets.

import { describe, expect, test } from "bun:test";

import {
  agentCheck,
  clockCheck,
  directoryCheck,
  ledgerCheck,
  socketCheck,
  userCheck,
} from "../../../src/cli/checks/machine.ts";
import type { SocketFact } from "../../../src/cli/openers.ts";
import { emptyLedger } from "../../../src/model/ledger.ts";
import { duration, hours, instant, minutes, plus, seconds } from "../../../src/model/time.ts";
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

describe("a directory", () => {
  test.each<[string, DirectoryFact, string, string]>([
    ["with free space", present, "ok", "/var/lib/crigc is writable, 1.0 GiB left"],
    [
      "that is read-only",
      { ...present, writable: false },
      "failed",
      "/var/lib/crigc cannot be written",
    ],
    [
      "on a full disk",
      { ...present, availableBytes: 4096n },
      "warning",
      "/var/lib/crigc is nearly full (4.0 KiB left)",
    ],
    [
      "without inodes",
      { ...present, inodesFree: 0n },
      "warning",
      "/var/lib/crigc has no inodes left",
    ],
    ["without an inode limit", { ...present, inodes: 0n, inodesFree: 0n }, "ok", "is writable"],
    [
      "that can be created",
      { kind: "absent", creatable: true },
      "ok",
      "does not exist yet; crigc will create it",
    ],
    [
      "that cannot be created",
      { kind: "absent", creatable: false },
      "failed",
      "and cannot be created",
    ],
    [
      "that is a file",
      { kind: "failed", message: "it is not a directory" },
      "failed",
      "it is not a directory",
    ],
  ])("%s is checked as expected", (_what, fact, result, message) => {
    expect(directoryCheck(about, fact)).toMatchObject({
      result,
      message: expect.stringContaining(message),
    });
  });

  test("that a user cannot access gives the advice to run as root, not to choose another one", () => {
    const closed = { kind: "failed", message: "permission denied" } as const;
    expect(directoryCheck(about, closed).advice).toContain("--state-dir");
    expect(directoryCheck({ ...about, userId: 1000 }, closed).advice).toBe(
      "run as root (sudo crigc …)",
    );
  });
});

describe("the clock", () => {
  const check = (change: Partial<Parameters<typeof clockCheck>[0]>) =>
    clockCheck({ now: NOW, bootId: "boot-1", ledger: aLedger(), ...change });

  test("that moves forward is ok", () => {
    expect(check({}).result).toBe("ok");
    expect(check({ ledger: emptyLedger }).result).toBe("ok");
  });

  test("one second behind the ledger is still ok, as with NTP", () => {
    expect(check({ ledger: aLedger({ observedAt: plus(NOW, seconds(1)) }) }).result).toBe("ok");
  });

  test("that was set back is detected by a ledger from the future", () => {
    const ledger = aLedger({ observedAt: plus(NOW, hours(3)) });
    expect(check({ ledger })).toMatchObject({
      result: "warning",
      message: expect.stringContaining("3h in the future"),
    });
  });

  test("of a node without one is reported as wrong in 1970", () => {
    const now = instant(minutes(5));
    expect(check({ now, ledger: emptyLedger })).toMatchObject({
      result: "warning",
      message: expect.stringContaining("1970-01-01T00:05:00Z"),
    });
  });

  test("without a boot ID is a warning", () => {
    expect(check({ bootId: "" }).result).toBe("warning");
  });
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

const agent = (document: object | string) =>
  agentCheck(
    {
      kind: "answered",
      text: typeof document === "string" ? document : JSON.stringify(document),
    },
    "1.2.3",
  );

const well = {
  apiVersion: "crigc/v1",
  kind: "Status",
  pid: 7,
  version: "1.2.3",
  dryRun: false,
  runtimeError: null,
  configurationError: null,
  ledgerError: null,
};

test.each<[string, object | string, string, string]>([
  ["that is healthy", well, "ok", "running (process 7, version 1.2.3)"],
  ["in a dry run", { ...well, dryRun: true }, "ok", ", as a dry run"],
  [
    "without a runtime",
    { ...well, runtimeError: "no socket" },
    "failed",
    "the runtime does not answer: no socket",
  ],
  [
    "with changed configuration files",
    { ...well, configurationError: "crigc.yaml:3: x" },
    "warning",
    "its configuration files differ from what is in force: crigc.yaml:3: x",
  ],
  ["of another version", { ...well, version: "1.2.2" }, "warning", "this crigc is version 1.2.3"],
  ["that answers text", "hello", "failed", "another program answers"],
  ["that answers another document", { kind: "Plan" }, "failed", "another program answers"],
  ["that answers null", "null", "failed", "another program answers"],
])("an agent %s is checked as expected", (_what, document, result, message) => {
  expect(agent(document)).toMatchObject({ result, message: expect.stringContaining(message) });
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

test.each<[string, readonly SocketFact[], string | null, string, string]>([
  ["a single socket that answers", [answering(A)], null, "ok", `${A} answers (containerd 1.7.24)`],
  [
    "two sockets of which one answers",
    [silent(A), answering(B)],
    null,
    "ok",
    `${B} answers (containerd 1.7.24)`,
  ],
  [
    "two sockets that answer",
    [answering(A), answering(B, "cri-o")],
    null,
    "failed",
    `several runtimes answer, so run and gc refuse to run: ${A} answers (containerd 1.7.24) and ${B} answers (cri-o 1.7.24)`,
  ],
  ["no socket", [], null, "failed", "none of the known sockets exists"],
  [
    "a socket without permission",
    [silent(A)],
    null,
    "failed",
    `${A} permission denied; run as root`,
  ],
  [
    "the configured socket",
    [answering(A)],
    A,
    "ok",
    `${A} answers (containerd 1.7.24), as configured`,
  ],
  [
    "another socket that answers besides the configured one",
    [answering(A), answering(B)],
    A,
    "ok",
    `${A} answers (containerd 1.7.24), as configured; also ${B} answers (containerd 1.7.24)`,
  ],
  [
    "another socket that answers instead of the configured one",
    [silent(A), answering(B)],
    A,
    "failed",
    `${A} permission denied; run as root`,
  ],
])("doctor's check of the sockets: %s", (_what, facts, named, result, message) => {
  expect(socketCheck(facts, named)).toMatchObject({ result, message });
});
