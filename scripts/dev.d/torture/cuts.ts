// Power cuts: the disk of the state directory as it was at random instants, with what was not synced lost; each is mounted and judged.

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { command } from "../../../test/support/containerd/command.ts";
import { mebibyte, unmount } from "../../../test/support/containerd/disk.ts";
import { type ImageDescription, imageIdOf } from "../../../test/support/fake-runtime/describe.ts";
import { type FakeRuntime, startFakeRuntime } from "../../../test/support/fake-runtime/server.ts";
import { runProgram, startProgram } from "../../../test/support/program.ts";
import { nodeFlags, readState, type Result, type Torture } from "./common.ts";

const MINIMUM_AGE_MS = 2_000;
const IMAGES_MAX = 12;
/** An image runs from its first second to this one. */
const RUNS_MS = 1_500;

/** A disk in a file on a filesystem that copies files in one instant, whatever writes to them. */
class PowerDisk {
  readonly home = mkdtempSync(join(tmpdir(), "crigc-torture-"));
  readonly path = join(this.home, "disk");
  readonly #outer = join(this.home, "outer");
  readonly #file = join(this.#outer, "disk.img");
  readonly #cut = join(this.#outer, "cut.img");
  readonly cutPath = join(this.home, "cut");

  async mount(): Promise<void> {
    const outer = join(this.home, "outer.img");
    sparse(outer, 400 * mebibyte);
    await command("mkfs.xfs", "-q", "-f", "-m", "reflink=1", outer);
    for (const path of [this.#outer, this.path, this.cutPath]) mkdirSync(path);
    await command("mount", "-o", "loop", outer, this.#outer);
    sparse(this.#file, 32 * mebibyte);
    await command("mkfs.ext4", "-q", "-F", this.#file);
    await command("mount", "-o", "loop", this.#file, this.path);
  }

  /** The power fails, on a machine of its own: the disk then lies at `cutPath`. */
  async cut(): Promise<void> {
    await command("cp", "--reflink=always", this.#file, this.#cut);
    await command("mount", "-o", "loop", this.#cut, this.cutPath);
  }

  async uncut(): Promise<void> {
    await unmount(this.cutPath);
    rmSync(this.#cut);
  }

  async remove(): Promise<void> {
    for (const path of [this.cutPath, this.path, this.#outer]) await unmount(path);
    rmSync(this.home, { recursive: true, force: true });
  }
}

function sparse(file: string, bytes: number): void {
  writeFileSync(file, "");
  truncateSync(file, bytes);
}

export async function cuts({ rounds, random, deadlineMs }: Torture): Promise<Result> {
  const faults: string[] = [];
  const figures: Figures = { records: 0, removals: 0, lostMs: 0, empty: 0, next: 0 };
  let tried = 0;
  const disk = new PowerDisk();
  const runtime = await startFakeRuntime({ node: onDisk(disk.home) });
  const world = new World(runtime);
  await disk.mount();
  const agent = startProgram(["run", ...flagsOf(disk.home, runtime, join(disk.path, "state"))]);
  const life = setInterval(() => world.live(), 150);
  try {
    await firstLedger(world, disk);
    for (; tried < rounds && performance.now() < deadlineMs; tried += 1) {
      await Bun.sleep(100 + random.next() * 900);
      const cutMs = Date.now();
      const node = world.copy();
      await disk.cut();
      const found = join(disk.home, "found");
      if (existsSync(join(disk.cutPath, "state")))
        cpSync(join(disk.cutPath, "state"), found, { recursive: true });
      const said = await judged({ disk, world, node, cutMs, cutEndMs: Date.now(), figures });
      await disk.uncut();
      faults.push(...said.map((fault) => `cut ${tried + 1}: ${fault}`));
      const evidence = `.cache/torture/cut-${process.pid}-${tried + 1}`;
      if (said.length > 0 && existsSync(found)) {
        cpSync(found, evidence, { recursive: true });
        faults.push(`cut ${tried + 1}: what the disk held lies in ${evidence}`);
      }
      rmSync(found, { recursive: true, force: true });
      if (agent.exitCode() !== null) faults.push(`the agent ended: ${agent.said()}`);
      if (faults.length > 20) break;
    }
  } finally {
    clearInterval(life);
    await agent.stop();
    await runtime.stop();
    await disk.remove();
  }
  const { records, removals, lostMs, empty, next } = figures;
  if (tried > 0 && records === 0) faults.push("no cut found a ledger");
  return {
    name: "cuts",
    tried,
    faults,
    figures: `${records} records and ${removals} removals read back, ${empty} disks without a ledger yet, ${Math.round(lostMs / 100) / 10} s lost at most, ${next} removals by next passes`,
  };
}

/** What lies on the disk of a node that was not started just now: without it, the first half minute of cuts finds nothing. */
async function firstLedger(world: World, { path }: PowerDisk): Promise<void> {
  const deadlineMs = performance.now() + 60_000;
  while (world.removed().length < 20 && performance.now() < deadlineMs) await Bun.sleep(50);
  await command("sync", "-f", path);
}

type Figures = { records: number; removals: number; lostMs: number; empty: number; next: number };

const onDisk = (home: string) => ({ imageFilesystems: [{ mountpoint: home }] });

const flagsOf = (home: string, runtime: FakeRuntime, stateDir: string): readonly string[] => [
  ...nodeFlags(home, runtime, stateDir),
  `--minimum-image-ttl-duration=${MINIMUM_AGE_MS}ms`,
  `--image-store-budget=${IMAGES_MAX}M`,
  "--image-gc-period=300ms",
  "--image-detection-period=300ms",
  "--container-gc-period=1s",
];

type Life = {
  readonly cameMs: number;
  usedFromMs: number | null;
  usedToMs: number | null;
};

/** A node on which an image comes every moment, and every other one runs for a while. */
class World {
  readonly lives = new Map<string, Life>();
  readonly #runtime: FakeRuntime;
  #count = 0;

  constructor(runtime: FakeRuntime) {
    this.#runtime = runtime;
    runtime.node.addSandbox({ id: "pod" });
  }

  live(): void {
    const { node } = this.#runtime;
    const now = Date.now();
    for (const container of node.containers.values()) {
      const life = this.lives.get(container.image);
      if (life?.usedFromMs == null || now - life.usedFromMs < RUNS_MS) continue;
      life.usedToMs = now;
      node.removeContainer(container.id);
    }
    this.#count += 1;
    const id = imageIdOf(`torture ${this.#count}`);
    const isRun = this.#count % 2 === 0;
    const repoTags = [`r.example/app:${this.#count}`];
    this.lives.set(id, { cameMs: now, usedFromMs: isRun ? now : null, usedToMs: null });
    node.addImage({ id, repoTags, sizeBytes: 1_000_000 + this.#count });
    if (isRun) node.addContainer({ id: `run-${this.#count}`, sandboxId: "pod", image: id });
  }

  copy() {
    const { images, containers } = this.#runtime.node;
    return {
      images: images.map((image: ImageDescription) => ({ ...image })),
      containers: [...containers.values()].map((one) => ({ ...one })),
      removed: this.removed(),
    };
  }

  /** The longest time of three looks of the agent in a row, which a busy machine stretches. */
  latencyMs(): number {
    const looks = this.#runtime.callsOf("ImageFsInfo").map(({ atMs }) => atMs);
    const gaps = [...looks, performance.now()].map((atMs, at) => atMs - (looks[at - 3] ?? atMs));
    return 1_000 + Math.max(0, ...gaps);
  }

  removed(): readonly string[] {
    return this.#runtime.removedImages();
  }
}

type Cut = {
  readonly disk: PowerDisk;
  readonly world: World;
  /** As it was when the power failed. */
  readonly node: ReturnType<World["copy"]>;
  readonly cutMs: number;
  readonly cutEndMs: number;
  readonly figures: Figures;
};

async function judged(cut: Cut): Promise<readonly string[]> {
  const { disk, figures, cutMs } = cut;
  const stateDir = join(disk.cutPath, "state");
  const { ledger, removals, notices } = readState(stateDir);
  const faults = [...notices];
  figures.records += ledger.images.size;
  figures.removals += removals.length;
  if (ledger.observedAt === null) figures.empty += 1;
  else {
    const observedMs = Number(ledger.observedAt / 1_000_000n);
    figures.lostMs = Math.max(figures.lostMs, cutMs - observedMs);
    faults.push(...recordFaults(cut, ledger.images, observedMs));
  }
  faults.push(
    ...historyFaults(
      cut,
      removals.map(({ image }) => image),
    ),
  );
  faults.push(...(await nextPassFaults(cut, stateDir)));
  return faults;
}

/** Each record is true of the moment at which the ledger was written, whichever that was. */
function recordFaults(
  { world, cutEndMs }: Cut,
  images: ReturnType<typeof readState>["ledger"]["images"],
  observedMs: number,
): readonly string[] {
  const faults: string[] = [];
  const latencyMs = world.latencyMs();
  if (observedMs > cutEndMs) faults.push("the ledger is of the future");
  for (const [id, record] of images) {
    const life = world.lives.get(id);
    if (life === undefined) {
      faults.push(`${id} never was on the node`);
      continue;
    }
    const seenMs = Number(record.firstSeenAt / 1_000_000n);
    if (seenMs < life.cameMs) faults.push(`${id} was seen ${life.cameMs - seenMs} ms too early`);
    if (seenMs > life.cameMs + latencyMs)
      faults.push(`${id} was first seen ${seenMs - life.cameMs} ms late`);
    const usedMs = record.lastUsedAt === null ? null : Number(record.lastUsedAt / 1_000_000n);
    const usedToMs = life.usedToMs ?? cutEndMs;
    if (usedMs !== null && (life.usedFromMs === null || usedMs < life.usedFromMs))
      faults.push(`${id} was last used before it was used`);
    // A look takes its time between the lists and its own instant.
    if (usedMs !== null && usedMs > usedToMs + latencyMs)
      faults.push(`${id} was last used ${usedMs - usedToMs} ms after its last use`);
    const isInUse = life.usedFromMs !== null && life.usedFromMs < observedMs - latencyMs;
    if (isInUse && (usedMs ?? 0) < Math.min(usedToMs, observedMs) - latencyMs)
      faults.push(`${id} was used later than is remembered`);
  }
  return faults;
}

/** What is there is true, and nothing lacks before the last of it. */
function historyFaults({ node, world }: Cut, recorded: readonly string[]): readonly string[] {
  const faults: string[] = [];
  const made = new Set([...node.removed, ...world.removed()]);
  const imagined = recorded.filter((id) => !made.has(id));
  if (imagined.length > 0) faults.push(`${imagined.length} removals are recorded, and never were`);
  if (new Set(recorded).size < recorded.length) faults.push("a removal is recorded twice");
  const prefix = node.removed.slice(0, recorded.length);
  const gaps = prefix.filter((id) => !recorded.includes(id));
  if (gaps.length > 0) faults.push(`${gaps.length} removals lack among recorded ones`);
  return faults;
}

/** The node comes up again with this disk: a pass on it removes nothing that is young or in use, and is recorded. */
async function nextPassFaults(cut: Cut, stateDir: string): Promise<readonly string[]> {
  const { disk, node, world, figures } = cut;
  const faults: string[] = [];
  const runtime = await startFakeRuntime({
    node: {
      ...onDisk(disk.home),
      images: node.images,
      sandboxes: [{ id: "pod" }],
      containers: node.containers,
    },
  });
  try {
    const home = join(disk.cutPath, "home");
    const flags = flagsOf(home, runtime, stateDir);
    const startedMs = Date.now();
    const { exitCode, stderr } = await runProgram(["gc", "--all-unused", ...flags]);
    // 4: what it found is too young for now.
    if (![0, 4].includes(exitCode)) faults.push(`the next pass ended with ${exitCode}: ${stderr}`);
    if (/broken|put aside|malformed/.test(stderr)) faults.push(`the next pass said ${stderr}`);
    const used = new Set(node.containers.map(({ image }) => image));
    const removed = runtime.removedImages();
    figures.next += removed.length;
    for (const id of removed) {
      if (used.has(id)) faults.push(`the next pass removed ${id}, which was in use`);
      // Its age began when it came, and a pass takes its time.
      const oldMs = Date.now() - (world.lives.get(id)?.cameMs ?? 0);
      if (oldMs < MINIMUM_AGE_MS) faults.push(`the next pass removed ${id}, ${oldMs} ms old`);
    }
    const { removals, notices } = readState(stateDir);
    faults.push(...notices);
    const fresh = new Set(
      removals.filter(({ atMs }) => atMs >= startedMs - 1).map((it) => it.image),
    );
    if (removed.some((id) => !fresh.has(id))) faults.push("the next pass is not in the history");
  } finally {
    await runtime.stop();
  }
  return faults;
}
