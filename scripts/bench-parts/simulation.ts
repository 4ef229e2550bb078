// A month of a busy node, replayed: what `crigc simulate` takes for it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { imageId } from "../../src/model/ids.ts";
import { traceLines } from "../../src/model/trace.ts";
import { Random } from "../../test/support/random.ts";
import { peakOf } from "./process.ts";
import { type Command, median } from "./runs.ts";

const USES = 100_000;
const IMAGES = 300;
const DAYS = 30;
const DAY = 86_400_000;

export interface SimulationResult {
  readonly wallMs: number;
  readonly peakBytes: number;
}

/** Uses last minutes; some images have far more of them than others. */
function writeTrace(path: string): void {
  const random = new Random(1);
  const images = Array.from({ length: IMAGES }, (_, at) => ({
    kind: "Image" as const,
    image: imageId(`sha256:${at.toString(16).padStart(64, "0")}`),
    names: [`registry.example/image-${at}:1`],
    sizeBytes: BigInt(random.between(100, 1_500)) * 1_000_000n,
    layers: null,
  }));
  const starts = Array.from({ length: USES }, () => Math.floor(random.next() * DAYS * DAY));
  const uses = starts
    .toSorted((one, other) => one - other)
    .map((fromMs) => {
      const at = Math.floor(IMAGES * random.next() ** 3);
      const { image } = images[at] ?? random.pick(images);
      const untilMs = fromMs + random.between(1, 30) * 60_000;
      return { kind: "Use" as const, image, name: null, fromMs, untilMs };
    });
  const head = { node: "busy", fromMs: 0, untilMs: DAYS * DAY, precisionMs: 0 };
  const trace = { ...head, capacityBytes: null, otherBytes: null, images, present: [], uses };
  writeFileSync(path, [...traceLines(trace)].join(""));
}

export async function measureSimulation(
  program: Command,
  { directory, rounds }: { readonly directory: string; readonly rounds: number },
): Promise<SimulationResult> {
  const path = join(directory, "busy.trace");
  writeTrace(path);
  const wallMs: number[] = [];
  const peaks: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startedAt = performance.now();
    const child = Bun.spawn([...program, "simulate", `--trace=${path}`, "--capacity=40%"], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    peaks.push(await peakOf(child));
    if (child.exitCode !== 0) throw new Error(`crigc simulate ended with ${child.exitCode}`);
    wallMs.push(performance.now() - startedAt);
  }
  return { wallMs: median(wallMs), peakBytes: median(peaks) };
}
