// Start-up, plans and the idle agent, measured beside a program that prints one line, and held against the figures to reach.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { measureContainerd } from "./bench-parts/containerd.ts";
import { judge } from "./bench-parts/figures.ts";
import { measureIdle } from "./bench-parts/idle.ts";
import { LargeBench, type LargeResult } from "./bench-parts/large.ts";
import { machineLines } from "./bench-parts/machine.ts";
import { type Command, measureRuns, undisturbed } from "./bench-parts/runs.ts";
import {
  agentLines,
  figureLines,
  growthLines,
  idleLines,
  largeLines,
  megabytes,
  runLines,
} from "./bench-parts/tables.ts";
import { buildPrograms, NodeUnderTest } from "./bench-parts/world.ts";

const { values } = parseArgs({
  options: {
    check: { type: "boolean", default: false },
    rounds: { type: "string", default: "21" },
    "idle-seconds": { type: "string", default: "60" },
    sizes: { type: "string", default: "100,1000,10000,20000" },
    soak: { type: "string" },
    containerd: { type: "string" },
    executable: { type: "string" },
  },
});
const rounds = wholeNumber("rounds", values.rounds);
const idleSeconds = wholeNumber("idle-seconds", values["idle-seconds"]);
const sizes = values.sizes.split(",").map((size) => wholeNumber("sizes", size));
const soakPasses = values.soak === undefined ? null : wholeNumber("soak", values.soak);
/** At which the agent is watched; the figures to reach are of this size. */
const agentSize = 10_000;

const scratch = mkdtempSync(join(tmpdir(), "crigc-bench-"));
const nodes: NodeUnderTest[] = [];
try {
  if (values.containerd === undefined) process.exitCode = await main();
  else await measureContainerd(values.containerd, rounds);
} finally {
  for (const node of nodes) await node.stop();
  rmSync(scratch, { recursive: true, force: true });
}

async function main(): Promise<number> {
  const programs = await buildPrograms(scratch, values.executable);
  const priority = undisturbed();
  console.log(machineLines(programs.crigc, priority).join("\n"));
  const small = await startNode(100, programs.crigc, priority);
  const large = await startNode(1000, programs.crigc, priority);
  const runs = await measureRuns(
    {
      line: [...priority, programs.printLine],
      version: [...priority, programs.crigc, "version"],
      floor: [...priority, programs.floor, small.socket],
      plan: [...priority, ...small.plan("filled")],
      firstFloor: [...priority, programs.floor, small.socket, "each"],
      firstPlan: [...priority, ...small.plan("none")],
      largePlan: [...priority, ...large.plan("filled")],
      firstLargePlan: [...priority, ...large.plan("none")],
    },
    rounds,
  );
  console.log(`\n${runLines(runs).join("\n")}`);
  const idle = await measureIdle(small.agent(), idleSeconds);
  console.log(`\n${idleLines(idle).join("\n")}`);
  const figures = judge({ ...runs, idle });
  console.log(`\n${figureLines(figures).join("\n")}`);
  await measureLarge(programs.crigc, priority);
  return values.check && figures.some(({ missed }) => missed) ? 1 : 0;
}

async function measureLarge(program: string, priority: Command): Promise<void> {
  let before: LargeResult | null = null;
  for (const images of sizes) {
    const bench = await LargeBench.start({ directory: scratch, program, images, priority });
    try {
      const result = await bench.run();
      console.log(`\n${largeLines(result).join("\n")}`);
      if (before !== null) console.log(`\n${growthLines(before, result).join("\n")}`);
      before = result;
      if (images === agentSize)
        console.log(`\n${agentLines(result, await bench.agent(idleSeconds)).join("\n")}`);
      if (soakPasses !== null && images === sizes.at(-1)) {
        const [early, late] = await bench.soak(soakPasses);
        const more = ((late / early - 1) * 100).toFixed(1);
        console.log(
          `\n${soakPasses} passes of the agent: ${megabytes(early)} in the second tenth of them, ${megabytes(late)} in the last (${more} % more)`,
        );
      }
    } finally {
      await bench.stop();
    }
  }
}

async function startNode(
  count: number,
  program: string,
  priority: Command,
): Promise<NodeUnderTest> {
  const node = await NodeUnderTest.start({ count, program, directory: scratch, priority });
  nodes.push(node);
  return node;
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  console.error(`bench: --${name} is a whole number above 0, not ${text}`);
  process.exit(2);
}
