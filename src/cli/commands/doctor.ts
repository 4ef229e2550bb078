/** `crigc doctor`: checks everything that collection stands on, and says what to do where something is not well. */

import type { Config } from "../../config/config.ts";
import type { Prepared } from "../../loop/pass/prepare.ts";
import { readOnlyPass } from "../../loop/pass/read-only.ts";
import { ConfigError, HostError, messageOf, RuntimeError } from "../../model/errors.ts";
import { printedJson } from "../../report/document/json.ts";
import {
  type DoctorCheck,
  doctorDocument,
  doctorTable,
  isHealthy,
} from "../../report/table/doctor.ts";
import { agentCheck } from "../checks/agent.ts";
import { failed, ok, skipped, warning } from "../checks/check.ts";
import { keepCheckOf } from "../checks/keep.ts";
import { kubeletChecks } from "../checks/kubelet.ts";
import { clockCheck, directoryCheck, ledgerCheck, userCheck } from "../checks/machine.ts";
import { namedChecks } from "../checks/named.ts";
import { nodeChecks } from "../checks/node.ts";
import { socketCheck } from "../checks/sockets.ts";
import type { Command, CommandContext } from "../command.ts";
import { exit } from "../exit.ts";

export const doctor: Command = {
  name: "doctor",
  summary: "check runtime, filesystems, directories, clock, kubelet and agent",
  doc: "Also checks sockets, keep rules and the ledger. Each check is ok, a warning, failed, or skipped because another one failed, and says what to do. Changes nothing. Exits 8 if a check failed; warnings do not count.",
  operands: [],
  options: [],
  json: true,
  readOnly: true,
  run: async (context, { output }) => {
    const report = { checks: await examine(context) };
    context.stdout(
      output === "json" ? printedJson(doctorDocument(report)) : doctorTable(report, context.screen),
    );
    return isHealthy(report) ? exit.done : exit.unknown;
  },
};

async function examine(context: CommandContext): Promise<readonly DoctorCheck[]> {
  const config = configured(context);
  if (!("config" in config))
    return [config.check, skipped("everything-else", "the configuration is invalid")];
  const machine = context.open.machine(config.config);
  const sockets = await machine.sockets();
  const socket = socketCheck(sockets, config.config.endpoints.runtime);
  const looked = socket.result === "ok" ? await look(context, config.config) : null;
  const node = looked !== null && "prepared" in looked ? looked.prepared : null;
  const agent = await agentStatus(context, config.config);
  return [
    config.check,
    userCheck(context.open.userId),
    socket,
    ...nodeResults(looked, config.config),
    ...memoryChecks(context, { config: config.config, notices: looked?.notices ?? [] }),
    keepCheckOf(
      await context.open.keepRules(config.config),
      node === null ? null : node.snapshot.images,
    ),
    ...kubeletChecks({
      kubelet: machine.kubelet(),
      ours: config.config,
      imageFilesystem:
        node?.snapshot.filesystems.find(({ roles }) => roles.includes("imagefs")) ?? null,
    }),
    ...(await namedChecks({
      config: config.config,
      machine,
      filesystems: node?.snapshot.filesystems ?? [],
      hasAgent: agent.kind === "answered",
    })),
    agentCheck(agent, context.build.version),
  ];
}

type Configured =
  { readonly config: Config; readonly check: DoctorCheck } | { readonly check: DoctorCheck };

function configured(context: CommandContext): Configured {
  const name = "configuration";
  try {
    const { config } = context;
    const from =
      config.files.length === 0 ? "no configuration file" : `read from ${config.files.join(", ")}`;
    const [first] = config.warnings;
    const check =
      first === undefined
        ? ok(name, `valid; ${from}`)
        : warning(
            name,
            `valid; ${config.warnings.join("; ")}`,
            "crigc config shows the values in force",
          );
    return { config, check };
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    const message = thrown.issues.map((it) => `${it.source}: ${it.message}`).join("; ");
    return { check: failed(name, message, "crigc config --check FILE checks one file alone") };
  }
}

type Looked =
  | { readonly prepared: Prepared; readonly notices: readonly string[] }
  | { readonly error: string; readonly notices: readonly string[] };

/** The node as a plan would be made from it. */
async function look(context: CommandContext, config: Config): Promise<Looked> {
  let notices: readonly string[] = [];
  try {
    const node = await context.open.node(config, context.signal);
    try {
      ({ notices } = node);
      const pass = {
        purpose: { kind: "periodic" },
        parts: { containers: "all", images: true },
      } as const;
      return { prepared: await readOnlyPass(node.engine, pass, context.signal), notices };
    } finally {
      node.close();
    }
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError) && !(thrown instanceof HostError)) throw thrown;
    return { error: messageOf(thrown), notices };
  }
}

function nodeResults(looked: Looked | null, config: Config): readonly DoctorCheck[] {
  if (looked === null) return [skipped("node", "no usable container runtime found")];
  if ("error" in looked)
    return [failed("node", looked.error, "nothing is removed until this works")];
  return nodeChecks(looked.prepared, config.limits);
}

function memoryChecks(
  context: CommandContext,
  { config, notices }: { readonly config: Config; readonly notices: readonly string[] },
): readonly DoctorCheck[] {
  const { stateDir, runDir } = config.paths;
  const { userId } = context.open;
  const machine = context.open.machine(config);
  const store = context.open.state(config);
  const ledger = store.ledger();
  const unread = store.failure === null ? [] : [`cannot be read (${store.failure})`];
  store.close();
  return [
    directoryCheck(
      { name: "state-directory", path: stateDir, flag: "--state-dir", userId },
      machine.directory(stateDir),
    ),
    directoryCheck(
      { name: "run-directory", path: runDir, flag: "--run-dir", userId },
      machine.directory(runDir),
    ),
    ledgerCheck(ledger, notices.length > 0 ? notices : unread),
    clockCheck({ now: context.open.now(), bootId: machine.bootId(), ledger }),
  ];
}

async function agentStatus(
  context: CommandContext,
  config: Config,
): Promise<Parameters<typeof agentCheck>[0]> {
  try {
    return { kind: "answered", text: await context.open.askAgent(config, "/status") };
  } catch (thrown) {
    if (!(thrown instanceof HostError)) throw thrown;
    return { kind: "none", why: thrown.message };
  }
}
