// Writes traces of nodes that never were, from seeds: what docs/evidence.md compares the rules on. Also converts a list of requests.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { imageId } from "../src/model/ids.ts";
import { type NodeTrace, traceLines, type TraceUse } from "../src/model/trace.ts";
import { Random } from "../test/support/random.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MB = 1_000_000;
const BEGIN_MS = Date.UTC(2026, 0, 1);
const DAYS = 30;

interface Layer {
  readonly id: string;
  readonly sizeBytes: bigint;
}

/** Collects the lines of one node. */
class Node {
  readonly random: Random;
  readonly #images: NodeTrace["images"][number][] = [];
  readonly #present: NodeTrace["present"][number][] = [];
  readonly #uses: TraceUse[] = [];
  readonly #days: number;

  constructor(seed: number, days = DAYS) {
    this.random = new Random(seed);
    this.#days = days;
  }

  get untilMs(): number {
    return BEGIN_MS + Math.ceil(this.#days * DAY);
  }

  /** Log-normal around the median. */
  size(medianBytes: number, sigma: number): bigint {
    const [one, two] = [this.random.next(), this.random.next()];
    const normal = Math.sqrt(-2 * Math.log(1 - one)) * Math.cos(2 * Math.PI * two);
    return BigInt(Math.round(medianBytes * Math.exp(sigma * normal)));
  }

  layer(id: string, medianBytes: number, sigma = 0.6): Layer {
    return { id: digest(`layer ${id}`), sizeBytes: this.size(medianBytes, sigma) };
  }

  image(name: string, layers: readonly Layer[], key = name): string {
    const image = imageId(digest(key));
    const sizeBytes = layers.reduce((sum, layer) => sum + layer.sizeBytes, 0n);
    this.#images.push({ kind: "Image", image, names: [name], sizeBytes, layers });
    return image;
  }

  present(image: string, fromMs: number): void {
    const from = Math.round(fromMs);
    this.#present.push({ kind: "Present", image: imageId(image), fromMs: from, untilMs: null });
  }

  /** Uses after the end of the trace are left out. */
  use(image: string, fromMs: number, lastsMs: number): void {
    const from = Math.round(fromMs);
    if (from < BEGIN_MS || from >= this.untilMs) return;
    const untilMs = Math.min(from + Math.round(lastsMs), this.untilMs);
    this.#uses.push({ kind: "Use", image: imageId(image), name: null, fromMs: from, untilMs });
  }

  text(node: string): string {
    const trace: NodeTrace = {
      node,
      fromMs: BEGIN_MS,
      untilMs: this.untilMs,
      precisionMs: 0,
      capacityBytes: null,
      otherBytes: null,
      images: this.#images,
      present: this.#present,
      uses: this.#uses.toSorted((one, other) => one.fromMs - other.fromMs),
    };
    return [...traceLines(trace)].join("");
  }
}

const digest = (text: string): string =>
  `sha256:${createHash("sha256").update(text).digest("hex")}`;

/** Jobs on a schedule: each hour, day, week or month, for a few minutes. */
function cronJobs(node: Node): void {
  const bases = [0, 1, 2, 3].map((at) => node.layer(`cron base ${at}`, 250 * MB));
  const schedules = [...copies(8, HOUR), ...copies(24, DAY), ...copies(12, 7 * DAY)];
  for (const [at, every] of [...schedules, ...copies(6, 30 * DAY)].entries()) {
    const own = node.layer(`job ${at}`, 450 * MB);
    const image = node.image(`registry.example/job-${at}:1`, [node.random.pick(bases), own]);
    const first = BEGIN_MS + node.random.next() * every;
    for (let time = first; time < node.untilMs; time += every)
      node.use(image, time, (2 + 8 * node.random.next()) * MINUTE);
  }
}

/**
 * Services that always run, each on one of five bases. A new version every few days brings a new layer of its own, seldom
 * new dependencies; one in twelve is rolled back after some hours. `stagedMs`: how long before its start a version is pulled.
 */
function rollingUpgrades(node: Node, stagedMs = 0): void {
  const { random } = node;
  const bases = [0, 1, 2, 3, 4].map((at) => node.layer(`base ${at}`, 350 * MB));
  for (let service = 0; service < 25; service += 1) {
    const base = random.pick(bases);
    const every = (1 + 6 * random.next()) * DAY;
    let dependencies = node.layer(`dependencies ${service}.0`, 200 * MB);
    let [before, time] = ["", BEGIN_MS];
    for (let version = 0; time < node.untilMs; version += 1) {
      if (random.chance(0.2))
        dependencies = node.layer(`dependencies ${service}.${version + 1}`, 200 * MB);
      const own = node.layer(`service ${service}.${version}`, 120 * MB);
      const name = `registry.example/service-${service}:${version}`;
      const image = node.image(name, [base, dependencies, own]);
      if (stagedMs > 0 && time - stagedMs >= BEGIN_MS) node.present(image, time - stagedMs);
      const lasts = every * (0.5 + random.next());
      if (before !== "" && random.chance(1 / 12)) {
        const trial = Math.min(lasts, (1 + 8 * random.next()) * HOUR);
        node.use(image, time, trial);
        node.use(before, time + trial, lasts - trial);
      } else {
        node.use(image, time, lasts);
        before = image;
      }
      time += lasts;
    }
  }
}

/** Builds in working hours, some images far more often than others; a toolchain gets a new image each week or so. */
function ciNode(node: Node): void {
  const { random } = node;
  const bases = [0, 1, 2].map((at) => node.layer(`ci base ${at}`, 300 * MB));
  const tools = Array.from({ length: 120 }, (_, at) => ({ at, version: 0, image: "" }));
  const renew = (tool: (typeof tools)[number]): void => {
    tool.version += 1;
    const own = node.layer(`tool ${tool.at}.${tool.version}`, 700 * MB);
    const name = `registry.example/tool-${tool.at}:latest`;
    tool.image = node.image(name, [random.pick(bases), own], `${name} ${tool.version}`);
  };
  for (const tool of tools) renew(tool);
  const weights = tools.map((_, at) => 1 / (at + 1));
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  for (let day = 0; day < DAYS; day += 1) {
    const jobs = [5, 6].includes(day % 7) ? 40 : 400;
    for (const tool of tools) if (random.chance(1 / 10)) renew(tool);
    const starts = Array.from({ length: jobs }, () => 8 * HOUR + 10 * HOUR * random.next());
    for (const start of starts.toSorted((one, other) => one - other)) {
      let left = random.next() * all;
      const tool = tools.find((_, at) => (left -= weights[at] ?? 0) <= 0) ?? tools[0];
      const lasts = (2 + 28 * random.next()) * MINUTE;
      node.use(tool?.image ?? "", BEGIN_MS + day * DAY + start, lasts);
    }
  }
}

/** `seconds,image` lines after a heading. Sizes are drawn; a request takes no time. */
function requests(path: string, seed: number): Node {
  const rows = readFileSync(path, "utf8").trim().split("\n").slice(1);
  const uses = rows.map((row) => row.split(",")).map(([at, name = ""]) => [Number(at), name]);
  const last = Number(uses.at(-1)?.[0]);
  const node = new Node(seed, last / 86_400 + 1 / 24);
  const images = new Map<string, string>();
  for (const [seconds, name] of uses as [number, string][]) {
    const layers = (): readonly Layer[] => [node.layer(name, 4_500 * MB, 0.5)];
    const image =
      images.get(name) ?? node.image(`registry.example/${name.toLowerCase()}:1`, layers());
    images.set(name, image);
    node.use(image, BEGIN_MS + seconds * 1_000, 0);
  }
  return node;
}

const copies = <T>(times: number, value: T): readonly T[] => new Array<T>(times).fill(value);

const KINDS: Readonly<Record<string, (node: Node) => void>> = {
  "cron-jobs": cronJobs,
  "rolling-upgrades": (node) => rollingUpgrades(node),
  "ci-node": ciNode,
  "staged-images": (node) => rollingUpgrades(node, 3 * DAY),
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string", default: "1" }, requests: { type: "string" } },
});
const [kind = ""] = positionals;
const seed = Number(values.seed);
const make = KINDS[kind];
if (values.requests !== undefined)
  process.stdout.write(requests(values.requests, seed).text(`requests-${seed}`));
else if (make === undefined) {
  console.error(
    `usage: scripts/traces ${Object.keys(KINDS).join("|")} [--seed N]\n       scripts/traces --requests FILE.csv [--seed N]`,
  );
  process.exitCode = 2;
} else {
  const node = new Node(seed);
  make(node);
  process.stdout.write(node.text(`${kind}-${seed}`));
}
