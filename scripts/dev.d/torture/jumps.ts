// Clocks that jump between passes: the time since the boot in a time namespace, the wall clock as the ledger remembers it.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { instant } from "../../../src/model/time.ts";
import { imageIdOf } from "../../../test/support/fake-runtime/describe.ts";
import { startFakeRuntime } from "../../../test/support/fake-runtime/server.ts";
import { changeLedger } from "../../../test/support/ledger.ts";
import { runProgram } from "../../../test/support/program.ts";
import { nodeFlags, readState, type Result, type Torture } from "./common.ts";

const DAY_S = 86_400;
/** What one observation may add to an age at most. */
const MOST_MS = DAY_S * 1000;
const MINIMUM_AGE_DAYS = 100;

export async function jumps({ rounds, random, deadlineMs }: Torture): Promise<Result> {
  const faults: string[] = [];
  const home = mkdtempSync(join(tmpdir(), "crigc-torture-"));
  const images = [{ id: imageIdOf("jump"), repoTags: ["r.example/jump:1"], sizeBytes: 1_000 }];
  const runtime = await startFakeRuntime({
    node: { imageFilesystems: [{ mountpoint: home }], images },
  });
  const stateDir = join(home, "state");
  const flags = [
    ...nodeFlags(home, runtime, stateDir),
    `--minimum-image-ttl-duration=${MINIMUM_AGE_DAYS}d`,
  ];
  let tried = 0;
  let uptimeMs = 0;
  let uptimeS = 0;
  let latestS = 0;
  try {
    for (; tried < rounds && performance.now() < deadlineMs; tried += 1) {
      // A few forwards from the latest one, as after a suspend, and some to anywhere.
      latestS = Math.max(latestS, uptimeS);
      uptimeS = Math.floor(
        random.next() < 0.6 ? latestS + random.next() * DAY_S : random.next() * 60 * DAY_S,
      );
      const wallS = Math.floor((random.next() - 0.5) * 800 * DAY_S);
      if (tried > 0) await jumpWall(stateDir, wallS);
      const within = inTime(uptimeS);
      const { exitCode, stderr } = await runProgram(["gc", "--all-unused", ...flags], { within });
      const what = `jump ${tried + 1} (up for ${uptimeS} s, wall by ${wallS} s)`;
      if (![0, 4].includes(exitCode)) faults.push(`${what}: ended with ${exitCode}: ${stderr}`);
      const { ledger, notices } = readState(stateDir);
      faults.push(...notices.map((notice) => `${what}: ${notice}`));
      const nowMs = Number(ledger.totalUptime / 1_000_000n);
      const gainMs = nowMs - uptimeMs;
      if (gainMs < 0 || gainMs > MOST_MS) faults.push(`${what}: uptime went by ${gainMs} ms`);
      uptimeMs = nowMs;
      if (runtime.node.images.length === 0) {
        faults.push(`${what}: an image went that was observed for ${nowMs} ms`);
        break;
      }
      if (faults.length > 20) break;
    }
  } finally {
    await runtime.stop();
    rmSync(home, { recursive: true, force: true });
  }
  return {
    name: "jumps",
    tried,
    faults,
    figures: `the time since the boot jumped within 60 days and the wall clock within 800; ${Math.round(uptimeMs / 60_000)} min counted as observed`,
  };
}

/** Words that put a program into a namespace in which the machine has been up for so long. */
function inTime(uptimeS: number): readonly string[] {
  const [now = "0"] = readFileSync("/proc/uptime", "utf8").split(" ");
  const offset = String(uptimeS - Math.floor(Number(now)));
  return [
    "unshare",
    "--time",
    `--boottime=${offset}`,
    `--monotonic=${Math.max(0, Number(offset))}`,
  ];
}

/** As if the wall clock had been set since the last pass. */
const jumpWall = (stateDir: string, seconds: number): Promise<void> =>
  changeLedger(stateDir, ({ observedAt }) => ({
    observedAt: observedAt === null ? null : instant(observedAt - BigInt(seconds) * 1_000_000_000n),
  }));
