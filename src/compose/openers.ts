/** Fills what commands open with the real runtime, machine and state directory. */

import { createReadStream } from "node:fs";

import type { Openers } from "../cli/openers.ts";
import type { Config } from "../config/config.ts";
import { reasonOf } from "../host/files/errno.ts";
import { stateFiles } from "../host/state/state-files.ts";
import { ConfigError, StoreError } from "../model/errors.ts";
import { terminalProgress } from "../report/table/progress.ts";
import { clean } from "../report/terminal.ts";
import { openStoreReader, type StoreReader } from "../store/open.ts";
import {
  readSnapshotText,
  type RecordedNode,
  SNAPSHOT_BYTES_MAX,
  snapshotText,
} from "../store/snapshot-file.ts";
import { eventCaller } from "./event-caller.ts";
import { journalOf } from "./journal.ts";
import { openCollector, openNode } from "./node.ts";
import { toolsOf } from "./tools.ts";
import { logOf, now, type World } from "./world.ts";

export function openersOf(world: World): Openers {
  // A command that looks into the state directory more than once hears the same of it each time.
  const said = new Set<string>();
  const state = ({ paths }: Config): StoreReader =>
    openStoreReader({
      directory: paths.stateDir,
      files: stateFiles,
      notify: ({ message }) => {
        if (!said.has(message)) world.stderr(`crigc: ${clean(message)}\n`);
        said.add(message);
      },
    });
  return {
    ...toolsOf(world, state),
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
          const log = logOf(config, world, () => progress.clear());
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
    agent: async (run) => (await import("./agent.ts")).runAgent(run, world),
    state,
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
        throw new Error(`it is larger than ${SNAPSHOT_BYTES_MAX} bytes`);
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
