/** `crigc doctor`: check everything that collection depends on, with advice for each problem. */

import type { Config } from "../../config/config.ts";
import { ConfigError, HostError, messageOf, RuntimeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
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
import { kubeletChecks } from "../checks/kubelet.ts";
import {
  addressCheck,
  agentCheck,
  clockCheck,
  directoryCheck,
  hookCheck,
  ledgerCheck,
  socketCheck,
  stateDiskCheck,
  userCheck,
} from "../checks/machine.ts";
import { keepCheck, nodeChecks } from "../checks/node.ts";
import { command, type CommandContext, TABLE_OR_JSON } from "../command.ts";
import { exit } from "../exit.ts";
import { planNode } from "../node-plan.ts";
import { print } from "../output.ts";

export const doctor = command({
  name: "doctor",
  summary: "check runtime, filesystems, directories, clock, kubelet and agent",
  doc: "Says what to do about each problem. Exits 8 if a check failed; warnings do not count.",
  formats: TABLE_OR_JSON,
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
  const { stateDir, runDir, eventHook: hook, metricsBindAddress: address } = config.values;
  const machine = open.machine(config);
  const socket = socketCheck(await machine.sockets(), config.values.containerRuntimeEndpoint);
  const looked = socket.result === "ok" ? await look(context) : null;
  const { snapshot } = looked?.prepared ?? {};
  const images = snapshot?.filesystems.find(({ roles }) => roles.includes("imagefs")) ?? null;
  using store = open.state(config);
  const ledger = store.ledger();
  const notices = store.failure === null ? [] : [`cannot be read (${store.failure})`];
  const agent = await agentStatus(context, config);
  const directory = (path: string, flag: "--state-dir" | "--run-dir"): Verdict =>
    directoryCheck({ path, flag, userId: open.userId }, machine.directory(path));
  return [
    ["user", userCheck(open.userId)],
    ["socket", socket],
    ...nodeResults(looked, config.limits),
    ["state-directory", directory(stateDir, "--state-dir")],
    ["run-directory", directory(runDir, "--run-dir")],
    ["ledger", ledgerCheck(ledger, looked?.notices.length ? looked.notices : notices)],
    ["clock", clockCheck(open.now(), machine.bootId(), ledger)],
    [
      "keep-rules",
      keepCheck(
        await open.keepRules(config),
        snapshot === undefined ? null : { images: snapshot.images, ledger },
      ),
    ],
    ...kubeletChecks(machine.kubelet(), config, images),
    ["event-hook", hook === null ? null : hookCheck(hook, machine.executableFault(hook))],
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
    return { prepared: await planNode(context, { pullRecords: true, notify }), error: "", notices };
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError) && !(thrown instanceof HostError)) throw thrown;
    return { prepared: null, error: messageOf(thrown), notices };
  }
}

function nodeResults(looked: Awaited<ReturnType<typeof look>> | null, limits: Limits): Verdicts {
  if (looked === null) return [["node", skipped("no usable container runtime found")]];
  if (looked.prepared === null)
    return [["node", failed(looked.error, "nothing is removed until this works")]];
  return nodeChecks(looked.prepared, limits);
}

async function agentStatus({ open }: CommandContext, config: Config) {
  try {
    return { kind: "answered", text: await open.askAgent(config, "/status") } as const;
  } catch (thrown) {
    if (!(thrown instanceof HostError)) throw thrown;
    return { kind: "none", why: thrown.message } as const;
  }
}
