// Clocks that jump between passes: the time since the boot in a time namespace, the wall clock as the ledger remembers it.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { duration, instant, instantFromMs } from "../../src/model/time.ts";
import { stateFiles } from "../../src/node/state-files.ts";
import { openStore } from "../../src/store/open.ts";
import { directChannel } from "../../src/store/state-file.ts";
import { imageIdOf } from "../../test/support/fake-runtime/describe.ts";
import { startFakeRuntime } from "../../test/support/fake-runtime/server.ts";
import { runProgram } from "../../test/support/program.ts";
import type { Result, Torture } from "./result.ts";
import { readState } from "./state.ts";

const DAY_S = 86_400;
/** Twice the period of detection: what one observation may add to an age at most. */
const MOST_MS = 600_000;
const MINIMUM_AGE_DAYS = 2;

export async function jumps({ rounds, random, deadlineMs }: Torture): Promise<Result> {
  const faults: string[] = [];
  const home = mkdtempSync(join(tmpdir(), "crigc-torture-"));
  const images = [{ id: imageIdOf("jump"), repoTags: ["r.example/jump:1"], sizeBytes: 1_000 }];
  const runtime = await startFakeRuntime({
    node: { imageFilesystems: [{ mountpoint: home }], images },
  });
  const stateDir = join(home, "state");
  for (const name of ["root", "keep.d", "pods", "containers"]) mkdirSync(join(home, name));
  const flags = [
    `--container-runtime-endpoint=${runtime.endpoint}`,
    `--state-dir=${stateDir}`,
    `--run-dir=${home}/run`,
    `--keep-dir=${home}/keep.d`,
    `--pod-logs-dir=${home}/pods`,
    `--container-logs-dir=${home}/containers`,
    `--root-dir=${home}/root`,
    "--pod-source=cri",
    "--space-accounting=reported",
    "--boot-grace=0s",
    `--minimum-image-ttl-duration=${MINIMUM_AGE_DAYS}d`,
  ];
  let tried = 0;
  let watchedMs = 0;
  let uptimeS = 0;
  let latestS = 0;
  try {
    for (; tried < rounds && performance.now() < deadlineMs; tried += 1) {
      // A few forwards from the latest one, as after a suspend, and some to anywhere.
      latestS = Math.max(latestS, uptimeS);
      uptimeS = Math.floor(random() < 0.6 ? latestS + random() * DAY_S : random() * 60 * DAY_S);
      const wallS = Math.floor((random() - 0.5) * 800 * DAY_S);
      if (tried > 0) await jumpWall(stateDir, wallS);
      const within = inTime(uptimeS);
      const { exitCode, stderr } = await runProgram(["gc", "--all-unused", ...flags], { within });
      const what = `jump ${tried + 1} (up for ${uptimeS} s, wall by ${wallS} s)`;
      if (![0, 4].includes(exitCode)) faults.push(`${what}: ended with ${exitCode}: ${stderr}`);
      const { ledger, notices } = readState(stateDir);
      faults.push(...notices.map((notice) => `${what}: ${notice}`));
      const nowMs = Number(ledger.watched / 1_000_000n);
      const gainMs = nowMs - watchedMs;
      if (gainMs < 0 || gainMs > MOST_MS)
        faults.push(`${what}: observed time went by ${gainMs} ms`);
      watchedMs = nowMs;
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
    figures: `the time since the boot jumped within 60 days and the wall clock within 800; ${Math.round(watchedMs / 60_000)} min counted as observed`,
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
async function jumpWall(stateDir: string, seconds: number): Promise<void> {
  const store = await openStore({
    channel: directChannel({
      directory: stateDir,
      files: stateFiles,
      now: () => instantFromMs(Date.now()),
    }),
    directory: stateDir,
    notify: ({ message }) => {
      throw new Error(message);
    },
  });
  const ledger = store.ledger();
  const span = duration(BigInt(seconds) * 1_000_000_000n);
  if (ledger.observedAt !== null)
    store.saveLedger({ ...ledger, observedAt: instant(ledger.observedAt - span) });
  await store.flush();
  await store.close();
}
