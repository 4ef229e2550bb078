// Measures start-up, nodes of several sizes and the agent on the last of them: scripts/dev bench [OPTION…]
//
// A pass is set beside the bare cost of its calls: the same calls on one connection, with the answers thrown away.
//
//   --sizes N,N…       images of the nodes (100,1000,10000); each has twice as many containers and half as many sandboxes
//   --rounds N         of which the median counts (5)
//   --seconds N        for which the agent is watched, after a minute (60)
//   --executable FILE  instead of a new build

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import type { BareCost, BareStep } from "./bare.ts";
import { largeNode } from "./node.ts";
import { alive, peakOf, usageOf } from "./process.ts";

const top = join(import.meta.dir, "../../..");
const { values } = parseArgs({
  options: {
    sizes: { type: "string", default: "100,1000,10000" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "60" },
    executable: { type: "string" },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const sizes = values.sizes.split(",").map(Number);
if ([rounds, seconds, ...sizes].some((it) => !Number.isInteger(it) || it < 1)) {
  console.error("bench: --sizes, --rounds and --seconds take whole numbers above 0");
  process.exit(2);
}
/** By then the agent's first passes have ended, and their memory has been given back. */
const SETTLING_MS = 60_000;
/** Of the images, so many go in a pass that removes. */
const REMOVED_SHARE = 0.08;

const scratch = mkdtempSync(join(tmpdir(), "crigc-bench-"));
async function main(): Promise<void> {
  const program = values.executable ?? join(scratch, "crigc");
  if (values.executable === undefined) await output([join(top, "scripts/build"), program]);
  console.log(`${cpus().length} × ${cpus()[0]?.model}, ${(totalmem() / 1e9).toFixed(1)} GB`);
  console.log(`\n${row("", ["wall", "pass", "processor", "peak", "calls alone", "times"])}`);
  await measured("crigc version", [program, "version"], null);
  for (const images of sizes) {
    const node = await startNode(images, program);
    try {
      await measureNode(node, images);
      if (images === sizes.at(-1)) await measureAgent(node);
    } finally {
      await node.stop();
    }
  }
}

type BenchNode = Awaited<ReturnType<typeof startNode>>;

/** A runtime in a process of its own. */
async function startNode(images: number, program: string) {
  const directory = join(scratch, String(images));
  const at = (name: string): string => join(directory, name);
  for (const name of ["logs", "links", "root", "keep"]) mkdirSync(at(name), { recursive: true });
  const listening = Promise.withResolvers<void>();
  let answered = Promise.withResolvers<void>();
  const runtime = Bun.spawn(
    [
      process.execPath,
      join(import.meta.dir, "runtime.ts"),
      at("cri.sock"),
      String(images),
      directory,
    ],
    {
      stdio: ["ignore", "inherit", "inherit"],
      ipc: ({ kind }: { kind: string }) =>
        kind === "listening" ? listening.resolve() : answered.resolve(),
    },
  );
  await listening.promise;
  // No image has to go, however full the disk is that this runs on.
  const flags = Object.entries({
    "container-runtime-endpoint": at("cri.sock"),
    "state-dir": at("state"),
    "run-dir": at("run"),
    "pod-logs-dir": at("logs"),
    "container-logs-dir": at("links"),
    "root-dir": at("root"),
    "keep-dir": at("keep"),
    "pod-source": "cri",
    "boot-grace": "0s",
    "minimum-image-ttl-duration": "0s",
    "maximum-dead-containers-per-container": "-1",
    "image-gc-high-threshold": "100",
    "image-gc-low-threshold": "99",
    "eviction-hard": "nodefs.available<1Mi,imagefs.available<1Mi",
  }).map(([name, value]) => `--${name}=${value}`);
  return {
    socket: at("cri.sock"),
    command: (...words: readonly string[]) => [program, ...words, ...flags],
    /** What was removed is there again. */
    reset: async () => {
      answered = Promise.withResolvers<void>();
      runtime.send({ kind: "reset" });
      await answered.promise;
    },
    forget: () => rmSync(at("state"), { recursive: true, force: true }),
    stop: async () => {
      runtime.kill("SIGTERM");
      await runtime.exited;
    },
  };
}

async function measureNode(node: BenchNode, count: number): Promise<void> {
  console.log(`\n${count} images, ${count * 2} containers, ${Math.floor(count / 2)} sandboxes`);
  const { images, containers } = largeNode(count);
  const idsOf = (of: readonly { readonly id: string }[]) => of.map(({ id }) => id);
  const sizesOf = images.map((image) => Number(image["size"]));
  const removed = Math.round(count * REMOVED_SHARE);
  const all = sizesOf.reduce((sum, size) => sum + size, 0);
  const budget = all - Math.round((all / count) * removed);
  const lists: BareStep = {
    methods: ["ListImages", "ListContainers", "ListPodSandbox"],
    ids: [""],
    atOnce: 1,
  };
  const [, once, statuses, removals] = await bare(node, [
    // The first also opens the connection.
    lists,
    lists,
    { methods: ["ContainerStatus"], ids: idsOf(containers), atOnce: 16 },
    { methods: ["RemoveImage", "ImageStatus"], ids: idsOf(images.slice(-removed)), atOnce: 1 },
  ]);
  const sum = (...costs: readonly (BareCost | undefined)[]): number =>
    costs.reduce((ms, cost) => ms + (cost?.wallMs ?? Number.NaN), 0);
  const gc = node.command("gc", "-o", "json");
  const image = node.command("gc", "--images", `--image-store-budget=${budget}`, "-o", "json");
  await measured("first pass, nothing known", gc, sum(once, statuses), async () => {
    await node.reset();
    node.forget();
  });
  await measured("plan with a ledger", node.command("plan", "-o", "json"), sum(once));
  await measured("pass that finds nothing", gc, sum(once));
  await measured(`pass of ${removed} removals`, image, sum(once, removals), node.reset);
}

async function bare({ socket }: BenchNode, steps: readonly BareStep[]) {
  const command = [process.execPath, join(import.meta.dir, "bare.ts"), socket];
  return JSON.parse(await output(command, JSON.stringify(steps))) as readonly BareCost[];
}

async function output(command: readonly string[], input = ""): Promise<string> {
  const child = Bun.spawn([...command], { stdio: [new Blob([input]), "pipe", "pipe"], cwd: top });
  const [said, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if ((await child.exited) === 0) return said;
  throw new Error(`${command.slice(0, 3).join(" ")} failed: ${errors}`);
}

/** A line with the medians of all rounds. */
async function measured(
  name: string,
  command: readonly string[],
  bareMs: number | null,
  before: () => Promise<void> = async () => {},
): Promise<void> {
  const runs: { wall: number; pass: number; processor: number; peak: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await before();
    const startedAt = performance.now();
    const child = Bun.spawn([...command], { stdio: ["ignore", "pipe", "pipe"] });
    const [peak, said, errors] = await Promise.all([
      peakOf(child),
      child.stdout.text(),
      child.stderr.text(),
    ]);
    if ((await child.exited) !== 0) throw new Error(`${name} failed: ${errors}`);
    const wall = performance.now() - startedAt;
    const took = /"tookMs": ?(\d+)/.exec(said)?.[1];
    const processor = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000;
    runs.push({ wall, pass: Number(took ?? Number.NaN), processor, peak });
  }
  const wall = median(runs.map((run) => run.wall));
  const pass = median(runs.map((run) => run.pass));
  const ms = (value: number): string => (Number.isNaN(value) ? "" : `${value.toFixed(1)} ms`);
  const times = (Number.isNaN(pass) ? wall : pass) / (bareMs ?? Number.NaN);
  console.log(
    row(name, [
      ms(wall),
      ms(pass),
      ms(median(runs.map((run) => run.processor))),
      megabytes(median(runs.map((run) => run.peak))),
      ms(bareMs ?? Number.NaN),
      Number.isNaN(times) ? "" : times.toFixed(1),
    ]),
  );
}

async function measureAgent(node: BenchNode): Promise<void> {
  await node.reset();
  const child = Bun.spawn([...node.command("run")], { stdio: ["ignore", "ignore", "ignore"] });
  try {
    await alive(child, SETTLING_MS);
    const before = usageOf(child.pid);
    await alive(child, seconds * 1000);
    const after = usageOf(child.pid);
    const share = (after.processorMs - before.processorMs) / (seconds * 10);
    console.log(
      `crigc run: ${megabytes(after.residentBytes)}, ${megabytes(after.peakBytes)} at its highest, ${share.toFixed(2)} % of a core`,
    );
  } finally {
    child.kill("SIGTERM");
    await child.exited;
  }
}

const row = (name: string, cells: readonly string[]): string =>
  `${name.padEnd(28)}${cells.map((cell) => cell.padStart(13)).join("")}`;
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
const median = (of: readonly number[]): number =>
  of.toSorted((one, other) => one - other)[of.length >> 1] ?? Number.NaN;

try {
  await main();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
