// A container that starts between plan and removal, a thousand times at random moments, over a real socket: an image whose
// container the runtime knew at the last check is never removed. What remains is the window between that check and the call.

import { expect, test } from "bun:test";

import { openRuntime } from "../../src/cri/client.ts";
import { minutes } from "../../src/model/time.ts";
import { timer } from "../../src/node/clock.ts";
import { diskOf } from "../../src/node/disk.ts";
import { aFilesystem, withLimits } from "../support/build/values.ts";
import { type FakeEngine, fakeEngine, runFakePass } from "../support/fake-engine.ts";
import { type FakeRuntime, startFakeRuntime } from "../support/fake-runtime/server.ts";
import { Random, SEED } from "../support/random.ts";

const ROUNDS = 1_000;

const VICTIM = `sha256:${"a".repeat(64)}`;
const OTHER = `sha256:${"b".repeat(64)}`;
/** What a pass asks for, in one of which the container starts. */
const METHODS = [
  "Version",
  "ListImages",
  "ListContainers",
  "ListPodSandbox",
  "ImageFsInfo",
  "RemoveImage",
] as const;

interface Tally {
  /** Removals of an image whose container the runtime had named at the last check. */
  known: number;
  /** Rounds in which the container came in time and the image stayed. */
  kept: number;
  /** From the last list to the call, as the runtime saw both. */
  readonly windowsMs: number[];
}

async function race(): Promise<Tally> {
  const runtime = await startFakeRuntime({
    traits: { imageIds: true },
    node: {
      images: [{ id: OTHER, sizeBytes: 1 }],
      sandboxes: [{ id: "sandbox", uid: "uid" }],
      containers: [{ id: "always", sandboxId: "sandbox", image: OTHER }],
    },
  });
  const client = openRuntime({
    endpoint: runtime.endpoint,
    imageEndpoint: runtime.endpoint,
    requestTimeout: minutes(2),
  });
  const fake = onRuntime(client);
  const tally: Tally = { known: 0, kept: 0, windowsMs: [] };
  const random = new Random(SEED);
  try {
    for (let round = 0; round < ROUNDS; round += 1)
      await oneRound({ runtime, fake, tally, random });
  } finally {
    client.close();
    await runtime.stop();
  }
  return tally;
}

interface Round {
  readonly runtime: FakeRuntime;
  readonly fake: FakeEngine;
  readonly tally: Tally;
  readonly random: Random;
}

async function oneRound({ runtime, fake, tally, random }: Round): Promise<void> {
  const { node } = runtime;
  node.addImage({ id: VICTIM, sizeBytes: 1 });
  const uses = (): boolean => node.containers.has("started");
  const start = (): void => {
    if (!uses()) node.addContainer({ id: "started", sandboxId: "sandbox", image: VICTIM });
  };
  let known = false;
  let listedMs = 0;
  const method = random.pick(METHODS);
  let after = random.between(0, 2);
  const delayMs = random.pick([0, 0, random.next() * 3]);
  const timers: ReturnType<typeof setTimeout>[] = [];
  const lift = [
    runtime.before(method, () => {
      after -= 1;
      if (after >= 0) return;
      if (delayMs === 0) start();
      else timers.push(setTimeout(start, delayMs));
    }),
    runtime.before("ListContainers", () => {
      known = uses();
      listedMs = performance.now();
    }),
    runtime.before("RemoveImage", () => {
      tally.windowsMs.push(performance.now() - listedMs);
      if (known) tally.known += 1;
    }),
  ];
  await runFakePass(fake, { purpose: { kind: "all-unused" }, containers: "none" });
  for (const stop of lift) stop();
  for (const handle of timers) clearTimeout(handle);
  if (node.findImage(VICTIM) !== undefined) tally.kept += 1;
  node.removeContainer("started");
  node.removeImage(VICTIM);
}

/** The fake world, whose engine asks the real runtime and disk. */
function onRuntime(client: ReturnType<typeof openRuntime>): FakeEngine {
  const fake = fakeEngine({ limits: withLimits({ minimumAge: minutes(0) }) });
  const root = diskOf(() => "/");
  const disk = {
    filesystems: async () => [aFilesystem({ path: "/", ...(await root.measure("/")) })],
    measure: (path: string) => root.measure(path),
  };
  const engine = {
    ...fake.engine,
    observe: { ...fake.engine.observe, runtime: client.reader, disk },
    writer: client.writer,
    timer,
  };
  return { ...fake, engine };
}

test("a container started between plan and removal never loses its image once the runtime listed it", async () => {
  const { known, kept, windowsMs } = await race();
  expect(known).toBe(0);
  // Else the container never came in between.
  expect(kept).toBeGreaterThan(ROUNDS / 10);
  expect(windowsMs.length).toBeGreaterThan(ROUNDS / 10);
  // No more than what a look may be old, however busy the machine.
  expect(Math.max(...windowsMs)).toBeLessThan(1_000);
}, 110_000);
