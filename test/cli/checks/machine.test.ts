// Our directories, the clock and what is remembered.

import { describe, expect, test } from "bun:test";

import {
  clockCheck,
  directoryCheck,
  ledgerCheck,
  userCheck,
} from "../../../src/cli/checks/machine.ts";
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
