/** Fills what commands open with the real runtime, machine and state directory. */

import { createReadStream } from "node:fs";

import type { Openers, RecordedNode } from "../cli/openers.ts";
import type { Config } from "../config/config.ts";
import { reasonOf } from "../host/files/errno.ts";
import { stateFiles } from "../host/state/state-files.ts";
import { ConfigError, StoreError } from "../model/errors.ts";
import { instantFromMs } from "../model/time.ts";
import type { Severity } from "../report/log/line.ts";
import { createLog, type Log } from "../report/log/log.ts";
import { terminalProgress } from "../report/table/progress.ts";
import { clean, type Screen } from "../report/terminal.ts";
import { openStoreReader } from "../store/open.ts";
import { readSnapshotText, SNAPSHOT_BYTES_MAX, snapshotText } from "../store/snapshot-file.ts";
import type { AgentWorld } from "./agent-world.ts";
import { runAgent } from "./agent.ts";
import { eventCaller } from "./event-caller.ts";
import { journalOf } from "./journal.ts";
import { openCollector, openNode } from "./node.ts";
import { toolsOf } from "./tools.ts";

export interface OpenersWorld extends Omit<AgentWorld, "logOf"> {
  readonly stderr: (text: string) => void;
  /** What begins a line of the log on stderr. */
  readonly logPrefix: (severity: Severity) => string;
  /** What stderr is: progress is drawn there. */
  readonly errorScreen: Screen;
}

export function openersOf(world: OpenersWorld): Openers {
  const now = () => instantFromMs(Date.now());
  const sink = (line: string, severity: Severity): void =>
    world.stderr(`${world.logPrefix(severity)}${line}\n`);
  const logOf = (config: Config): Log => createLog({ ...config.logging, sink, now });
  // A command that looks into the state directory more than once hears the same of it each time.
  const said = new Set<string>();
  const notify = (message: string): void => {
    if (!said.has(message)) world.stderr(`crigc: ${clean(message)}\n`);
    said.add(message);
  };
  return {
    ...toolsOf({ userId: world.self.userId, notify }),
    node: (config) => openNode(config),
    collector: (config) => {
      const progress = terminalProgress(world.errorScreen, world.stderr);
      return openCollector(config, {
        self: world.self,
        starting: (candidate, meter) =>
          progress.starting({
            image: candidate.image,
            gainedBytes: meter.totals().measuredFreedBytes,
            wantedBytes: meter.wantedBytes(),
          }),
        journalOf: (recorder) => {
          const log = createLog({
            ...config.logging,
            sink: (line, severity) => {
              progress.clear();
              sink(line, severity);
            },
            now,
          });
          const hook = eventCaller(
            () => config.eventHook,
            (message) => log.warning(message),
          );
          const journal = journalOf({
            log: () => log,
            recorder,
            now,
            // The report comes next, and what is drawn would stand in front of it.
            onPass: () => progress.clear(),
            onEvent: (event) => hook.call(event),
          });
          return { log, journal, ended: () => hook.close() };
        },
      });
    },
    agent: (run) => runAgent(run, { ...world, logOf }),
    state: (config) =>
      openStoreReader({
        directory: config.paths.stateDir,
        files: stateFiles,
        notify: (notice) => notify(notice.message),
      }),
    recorded: recordedNode,
    snapshotText,
  };
}

/** The file was named on the command line, so what is wrong with it is wrong usage. */
async function recordedNode(path: string): Promise<RecordedNode> {
  try {
    return readSnapshotText(await boundedText(path), path);
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown;
    throw new ConfigError([{ source: "--snapshot", text: path, message: thrown.message }]);
  }
}

async function boundedText(path: string): Promise<string> {
  try {
    const chunks: Buffer[] = [];
    let length = 0;
    // Pipes are welcome, and a device or a growing file has no end.
    for await (const chunk of createReadStream(path)) {
      if (!Buffer.isBuffer(chunk)) continue;
      length += chunk.length;
      if (length > SNAPSHOT_BYTES_MAX)
        throw new Error(`a snapshot has at most ${SNAPSHOT_BYTES_MAX} bytes, and it has more`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  } catch (thrown) {
    throw new StoreError(
      "unreadable",
      `reading the snapshot ${path} failed: ${reasonOf(thrown)}; write one with crigc snapshot`,
      { cause: thrown },
    );
  }
}
