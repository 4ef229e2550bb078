// Runs commands one after another in rounds, so that what disturbs the machine meanwhile disturbs all of them alike.

export type Command = readonly string[];

export interface Runs {
  readonly wallMs: readonly number[];
  /** User and system time of all threads. */
  readonly processorMs: readonly number[];
}

/** Real-time priority where this user may have it: then what else the machine does hardly counts. */
export function undisturbed(): Command {
  const command = ["chrt", "--fifo", "10"];
  if (Bun.which("chrt") === null) return [];
  return Bun.spawnSync([...command, "true"]).exitCode === 0 ? command : [];
}

/** Rounds that only warm caches, and the runtime that answers. */
const warmUpRounds = 3;

export async function measureRuns<Name extends string>(
  commands: Readonly<Record<Name, Command>>,
  rounds: number,
): Promise<Readonly<Record<Name, Runs>>> {
  const entries = Object.entries<Command>(commands).map(([name, command]) => {
    const runs = { wallMs: [] as number[], processorMs: [] as number[] };
    return { name, command, runs };
  });
  for (let round = -warmUpRounds; round < rounds; round += 1) {
    for (const { command, runs } of entries) {
      const { wallMs, processorMs } = await runOnce(command);
      if (round < 0) continue;
      runs.wallMs.push(wallMs);
      runs.processorMs.push(processorMs);
    }
  }
  const measured: Record<string, Runs> = Object.fromEntries(
    entries.map(({ name, runs }) => [name, runs]),
  );
  return measured as Record<Name, Runs>;
}

async function runOnce(
  command: Command,
): Promise<{ readonly wallMs: number; readonly processorMs: number }> {
  const startedAt = performance.now();
  const child = Bun.spawn([...command], { stdio: ["ignore", "ignore", "pipe"] });
  const exitCode = await child.exited;
  const wallMs = performance.now() - startedAt;
  if (exitCode !== 0)
    throw new Error(`${command.join(" ")} ended with ${exitCode}: ${await child.stderr.text()}`);
  const usage = child.resourceUsage();
  if (usage === undefined) throw new Error(`${command[0]} left no word of what it used`);
  return { wallMs, processorMs: Number(usage.cpuTime.total) / 1000 };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Half of the values lie within so much of each other. */
export function spread(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (share: number): number =>
    sorted[Math.round(share * (sorted.length - 1))] ?? Number.NaN;
  return at(0.75) - at(0.25);
}
