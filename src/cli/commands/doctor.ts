/** `crigc doctor`: check what collection depends on, with advice for each problem. */

import type { Config } from "../../config/config.ts";
import type { Openers } from "../../engine/openers.ts";
import { ConfigError, HostError, messageOf, RuntimeError } from "../../model/errors.ts";
import type { DirectoryFact } from "../../node/directories.ts";
import {
  doctorDocument,
  doctorTable,
  failed,
  ok,
  type Verdict,
  type Verdicts,
  warning,
} from "../../report/doctor.ts";
import { humanBytes } from "../../report/words.ts";
import { kubeletChecks } from "../checks/kubelet.ts";
import { keepCheck, nodeChecks } from "../checks/node.ts";
import { command, type CommandContext, DOCUMENT, print } from "../command.ts";
import { exit } from "../exit.ts";
import { planNode } from "../node-plan.ts";
import { writableLayersOf } from "./node.ts";

export const doctor = command({
  name: "doctor",
  summary: "check runtime, rights, filesystems, keep rules and kubelet",
  doc: "Says what to do about each problem. Exits 8 if a check failed; warnings do not count.",
  formats: DOCUMENT,
  run: async (context) => {
    const document = doctorDocument(await examine(context));
    await print(context, { document, table: doctorTable });
    return document.healthy ? exit.done : exit.unknown;
  },
});

async function examine(context: CommandContext): Promise<Verdicts> {
  try {
    return await verdictsOn(context, context.config);
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    const message = thrown.issues.map((it) => `${it.source}: ${it.message}`).join("; ");
    return [["configuration", failed(message, "crigc config --check FILE checks one file alone")]];
  }
}

/** All checks that a valid configuration allows, in display order. */
async function verdictsOn(context: CommandContext, config: Config): Promise<Verdicts> {
  const { open } = context;
  const { files, values, limits } = config;
  const machine = open.machine(config);
  const socket = await socketCheck(machine.runtime);
  const node = socket.result === "ok" ? await look(context) : null;
  const { snapshot } = node?.prepared ?? {};
  const images = snapshot?.filesystems.find(({ roles }) => roles.includes("imagefs")) ?? null;
  const directory = { path: values.stateDir, fact: machine.directory(values.stateDir) };
  return [
    ["configuration", ok(`valid; ${files.join(", ") || "no configuration file"}`)],
    ["user", userCheck(open.userId)],
    ["socket", socket],
    ...(node === null ? [] : [["node", node.verdict] as const]),
    ...(node?.prepared ? nodeChecks(node.prepared, limits, node.written) : []),
    ["state-directory", directoryCheck({ ...directory, failure: open.state(config).failure })],
    ["keep-rules", keepCheck(await open.keepRules(config), snapshot?.images ?? null)],
    ...kubeletChecks(machine.kubelet(), config, images),
  ];
}

/** The node as planned from. `prepared`: `null` if it could not be read. */
async function look(context: CommandContext) {
  try {
    const prepared = await planNode(context);
    return { prepared, written: await writableLayersOf(context), verdict: null };
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError) && !(thrown instanceof HostError)) throw thrown;
    const verdict = failed(
      messageOf(thrown),
      "fix it, then run crigc doctor again; until then nothing is removed",
    );
    return { prepared: null, written: null, verdict };
  }
}

const userCheck = (userId: number): Verdict =>
  userId === 0
    ? ok("running as root")
    : warning(
        `running as user ${userId}, who may see less than the agent does and cannot delete pod logs`,
        "run as root (sudo crigc …)",
      );

async function socketCheck(runtime: ReturnType<Openers["machine"]>["runtime"]): Promise<Verdict> {
  try {
    const { endpoint, name, version } = await runtime();
    return ok(`${endpoint} answers (${name} ${version})`);
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError)) throw thrown;
    return failed(thrown.message);
  }
}

/** With less, the ledger, the history or a hold may not fit. */
const STATE_NEEDS_BYTES = 64n << 20n;

/** `failure`: which of its files cannot be used and why, or `null`. */
export function directoryCheck({
  path,
  fact,
  failure,
}: {
  readonly path: string;
  readonly fact: DirectoryFact;
  readonly failure: string | null;
}): Verdict {
  const elsewhere = "run as root, or set another directory with --state-dir";
  if (fact.kind === "failed") return failed(`${path} cannot be used: ${fact.message}`, elsewhere);
  if (fact.kind === "absent")
    return fact.creatable
      ? ok(`${path} does not exist yet; crigc will create it`)
      : failed(`${path} does not exist and cannot be created`, elsewhere);
  if (!fact.writable) return failed(`${path} cannot be written`, elsewhere);
  if (failure !== null) return warning(failure);
  const room = humanBytes(fact.availableBytes);
  const lacksInodes = fact.inodes > 0n && fact.inodesFree === 0n;
  if (lacksInodes || fact.availableBytes < STATE_NEEDS_BYTES)
    return warning(
      `${path} is nearly full (${lacksInodes ? "no inodes" : room} left): ledger and holds may not be saved`,
      "free space on its filesystem",
    );
  return ok(`${path} is writable, ${room} left`);
}
