/** `crigc doctor`: check everything that collection depends on, with advice for each problem. */

import type { Config } from "../../config/config.ts";
import { fieldOf } from "../../config/fields.ts";
import { loadConfig } from "../../config/load.ts";
import { formatDuration } from "../../config/units.ts";
import { printedText } from "../../config/values.ts";
import { ConfigError, HostError, messageOf, RuntimeError } from "../../model/errors.ts";
import type { Limits, Threshold } from "../../model/limits.ts";
import type { Filesystem } from "../../model/snapshot.ts";
import type { KubeletFact } from "../../node/kubelet/pods.ts";
import {
  type DoctorCheck,
  doctorDocument,
  doctorTable,
  failed,
  ok,
  skipped,
  type Verdict,
  type Verdicts,
  warning,
} from "../../report/doctor.ts";
import type { StateReader } from "../../state/reader.ts";
import { leftoverChecks } from "../checks/leftovers.ts";
import {
  addressCheck,
  agentCheck,
  clockCheck,
  directoryCheck,
  ledgerCheck,
  socketCheck,
  stateDiskCheck,
  userCheck,
} from "../checks/machine.ts";
import { keepCheck, nodeChecks } from "../checks/node.ts";
import { command, type CommandContext, DOCUMENT } from "../command.ts";
import { exit } from "../exit.ts";
import { planNode } from "../node-plan.ts";
import { print } from "../output.ts";
import { writableLayersOf } from "./node.ts";

export const doctor = command({
  name: "doctor",
  summary: "check runtime, filesystems, directories, clock, kubelet and agent",
  doc: "Says what to do about each problem. Exits 8 if a check failed; warnings do not count.",
  formats: DOCUMENT,
  run: async (context) => {
    const document = doctorDocument(await examine(context));
    await print(context, { document, table: doctorTable });
    return document.healthy ? exit.done : exit.unknown;
  },
});

async function examine(context: CommandContext): Promise<readonly DoctorCheck[]> {
  const { config, verdict } = configured(context);
  const verdicts: Verdicts =
    config === null
      ? [["everything-else", skipped("the configuration is invalid")]]
      : await verdictsOn(context, config);
  return [["configuration", verdict] as const, ...verdicts].flatMap(([name, it]) =>
    it === null ? [] : [{ name, ...it }],
  );
}

function configured(context: CommandContext) {
  try {
    const { config } = context;
    const { files, warnings } = config;
    const from = files.length === 0 ? "no configuration file" : `read from ${files.join(", ")}`;
    const verdict =
      warnings.length === 0
        ? ok(`valid; ${from}`)
        : warning(`valid; ${warnings.join("; ")}`, "crigc config shows the values in force");
    return { config, verdict };
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    const message = thrown.issues.map((it) => `${it.source}: ${it.message}`).join("; ");
    const verdict = failed(message, "crigc config --check FILE checks one file alone");
    return { config: null, verdict };
  }
}

/** All checks that a valid configuration allows, in display order. */
async function verdictsOn(context: CommandContext, config: Config): Promise<Verdicts> {
  const { open, build } = context;
  const { stateDir, runDir, metricsBindAddress: address } = config.values;
  const machine = open.machine(config);
  const socket = socketCheck(await machine.sockets(), config.values.containerRuntimeEndpoint);
  const looked = socket.result === "ok" ? await look(context) : null;
  const { snapshot } = looked?.prepared ?? {};
  const images = snapshot?.filesystems.find(({ roles }) => roles.includes("imagefs")) ?? null;
  const store = open.state(config);
  const ledger = store.ledger();
  const notices = store.failure === null ? [] : [`cannot be read (${store.failure})`];
  const agent = await agentStatus(context, config);
  const directory = (path: string, flag: "--state-dir" | "--run-dir"): Verdict =>
    directoryCheck({ path, flag, userId: open.userId }, machine.directory(path));
  return [
    ["user", userCheck(open.userId)],
    ["socket", socket],
    ...nodeResults(looked, config.limits),
    ...leftoverResults(looked, store),
    ["state-directory", directory(stateDir, "--state-dir")],
    ["run-directory", directory(runDir, "--run-dir")],
    ["ledger", ledgerCheck(ledger, looked?.notices.length ? looked.notices : notices)],
    ["clock", clockCheck(open.now(), machine.bootId(), ledger)],
    ["keep-rules", keepCheck(await open.keepRules(config), snapshot?.images ?? null)],
    ...kubeletChecks(machine.kubelet(), config, images),
    // A running agent uses the address itself.
    [
      "metrics-address",
      address === null || agent.kind === "answered"
        ? null
        : addressCheck(address, await machine.addressFault(address)),
    ],
    ["state-filesystem", stateDiskCheck(stateDir, await machine.device(stateDir), images)],
    ["agent", agentCheck(agent, build.version)],
  ];
}

/** The node as planned from. `prepared`: `null` if it could not be read. */
async function look(context: CommandContext) {
  const notices: string[] = [];
  try {
    const notify = (notice: string): void => void notices.push(notice);
    const prepared = await planNode(context, { notify });
    return { prepared, layers: await writableLayersOf(context), error: "", notices };
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError) && !(thrown instanceof HostError)) throw thrown;
    return { prepared: null, layers: null, error: messageOf(thrown), notices };
  }
}

type Looked = Awaited<ReturnType<typeof look>> | null;

function nodeResults(looked: Looked, limits: Limits): Verdicts {
  if (looked === null) return [["node", skipped("no usable container runtime found")]];
  if (looked.prepared === null)
    return [["node", failed(looked.error, "nothing is removed until this works")]];
  return nodeChecks(looked.prepared, limits);
}

function leftoverResults(looked: Looked, store: StateReader): Verdicts {
  if (!looked?.prepared) return [];
  const removals = store.failure === null ? store.removals({ kinds: ["image"] }) : [];
  return leftoverChecks(looked.prepared, removals, looked.layers);
}

async function agentStatus({ open }: CommandContext, config: Config) {
  try {
    return { kind: "answered", text: await open.askAgent(config, "/status") } as const;
  } catch (thrown) {
    if (!(thrown instanceof HostError)) throw thrown;
    return { kind: "none", why: thrown.message } as const;
  }
}

/** `images`: the image filesystem; `null`: the node could not be read. */
export function kubeletChecks(
  kubelet: KubeletFact,
  ours: Config,
  images: Filesystem | null,
): Verdicts {
  const { signs, file } = kubelet;
  const [sign] = signs;
  if (sign === undefined) return [["kubelet", ok("no sign of a kubelet on this node")]];
  const theirs = theirConfig(file);
  if (typeof theirs === "string")
    return [
      [
        "kubelet",
        warning(`this node has a kubelet (${sign}), but its settings cannot be read: ${theirs}`),
      ],
    ];
  const where =
    file === null
      ? "whose configuration file was not found; crigc assumes the kubelet's defaults"
      : `configured by ${file.path}`;
  return [
    ["kubelet", ok(`this node has a kubelet (${sign}), ${where}`)],
    ["kubelet-image-gc", thresholdCheck(theirs, ours)],
    ["kubelet-image-age", ageCheck(theirs)],
    ["kubelet-eviction", evictionCheck(theirs, ours, images)],
  ];
}

/** The kubelet's file, read like our own; a string says why it is invalid. */
function theirConfig(file: KubeletFact["file"]): Config | string {
  if (file?.text === null) return `${file.path}: ${file.why}`;
  const flags = file === null ? [] : [{ name: "config", written: "", text: file.path } as const];
  try {
    return loadConfig({
      flags,
      env: {},
      reader: { file: () => file?.text ?? null, names: () => null },
    });
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.message.replaceAll("\n", "; ");
    throw thrown;
  }
}

/** With two collectors on a node, the kubelet knows no keep rule and forgets on restart. */
function thresholdCheck(theirs: Config, ours: Config): Verdict {
  const { highPercent, lowPercent } = theirs.limits.images;
  const first = ours.limits.images.highPercent;
  if (highPercent === 100) return ok("the kubelet's own image GC is off");
  const removes = `the kubelet also removes images, from ${highPercent}% down to ${lowPercent}%, and ignores keep rules`;
  return warning(
    first < highPercent ? removes : `${removes}; crigc begins no earlier, at ${first}%`,
    "set imageGCHighThresholdPercent: 100 in its configuration and restart it",
  );
}

function ageCheck({ limits }: Config): Verdict | null {
  const { maximumAge } = limits.images;
  if (maximumAge <= 0n) return null;
  return warning(
    `the kubelet removes images unused for ${formatDuration(maximumAge)}, and ignores keep rules`,
    "remove imageMaximumGCAge from its configuration and set --image-maximum-gc-age instead",
  );
}

/** The kubelet evicts pods, for space that unused images take, unless crigc frees it first. */
function evictionCheck(theirs: Config, ours: Config, images: Filesystem | null): Verdict {
  const nearest = nearestOf(theirs, images);
  const first = nearestOf(ours, images);
  if (nearest === "unknown" || first === "unknown")
    return skipped("thresholds in bytes need the image filesystem, which could not be read");
  if (nearest === null) return ok("the kubelet evicts no pods for disk usage of images");
  const evicts = `the kubelet evicts pods at ${wordsOf(nearest)}`;
  if (first !== null && first.percent > nearest.percent)
    return ok(`crigc frees space at ${wordsOf(first)}, before ${evicts}`);
  return warning(
    `${evicts}; crigc ${first === null ? "does not free space before, because --eviction-hard is off" : `frees space no earlier, at ${wordsOf(first)}`}`,
    `set --eviction-hard to ${thresholdsAbove(nearest, ours)}`,
  );
}

/** All of crigc's thresholds, because a value replaces the others, with one above the kubelet's. */
function thresholdsAbove({ threshold, percent }: Nearest, { values }: Config): string {
  const amount = `${Math.min(99, Math.ceil(percent) + MARGIN_PERCENT)}%`;
  const statements = { ...values.evictionHard, [threshold.signal]: amount };
  return printedText(fieldOf("evictionHard").type, statements);
}

const MARGIN_PERCENT = 5;

interface Nearest {
  readonly threshold: Threshold;
  /** Percent of the filesystem that must be free. */
  readonly percent: number;
}

const wordsOf = ({ threshold, percent }: Nearest): string =>
  `${threshold.signal}<${Math.round(percent * 10) / 10}%`;

/** The threshold on the image filesystem that is met first as it fills; `unknown` if one is in bytes of an unread disk. */
function nearestOf(config: Config, filesystem: Filesystem | null): Nearest | null | "unknown" {
  const isNodefs = filesystem?.roles.includes("nodefs") === true;
  const found: Nearest[] = [];
  for (const threshold of config.limits.pressure.thresholds) {
    const { signal } = threshold;
    if (signal !== "imagefs.available" && !(isNodefs && signal === "nodefs.available")) continue;
    const percent = percentOf(threshold, filesystem);
    if (percent === null) return "unknown";
    found.push({ threshold, percent });
  }
  return found.toSorted((one, other) => other.percent - one.percent)[0] ?? null;
}

/** Percent of the filesystem that must be available; `null`: unknown. */
function percentOf({ amount }: Threshold, filesystem: Filesystem | null): number | null {
  if (amount.kind === "fraction") return Math.round(amount.value * 10_000) / 100;
  if (filesystem === null || filesystem.capacityBytes <= 0n) return null;
  return Number((amount.value * 10_000n) / filesystem.capacityBytes) / 100;
}
