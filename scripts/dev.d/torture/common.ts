// What every kind of torture has in common: its request and result, the places of a node, and a look at its state.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import type { Ledger } from "../../../src/model/ledger.ts";
import { openReader } from "../../../src/state/reader.ts";
import type { FakeRuntime } from "../../../test/support/fake-runtime/server.ts";
import type { Random } from "../../../test/support/random.ts";

export type Torture = {
  readonly rounds: number;
  readonly random: Random;
  /** Of `performance.now()`: no round begins after it. */
  readonly deadlineMs: number;
};

export type Result = {
  readonly name: string;
  readonly tried: number;
  /** Each says what must not be, and in which round. */
  readonly faults: readonly string[];
  readonly figures: string;
};

/** Makes the directories of a node below `home`; the flags that tie the program to it. */
export function nodeFlags(
  home: string,
  { endpoint }: FakeRuntime,
  stateDir: string,
): readonly string[] {
  for (const name of ["root", "keep.d", "pods", "containers"])
    mkdirSync(join(home, name), { recursive: true });
  return [
    `--container-runtime-endpoint=${endpoint}`,
    `--state-dir=${stateDir}`,
    `--run-dir=${home}/run`,
    `--keep-dir=${home}/keep.d`,
    `--pod-logs-dir=${home}/pods`,
    `--container-logs-dir=${home}/containers`,
    `--root-dir=${home}/root`,
    "--pod-source=cri",
    "--boot-grace=0s",
  ];
}

export type Recorded = {
  readonly ledger: Ledger;
  /** Of images, the oldest first. */
  readonly removals: readonly { readonly image: string; readonly atMs: number }[];
  readonly notices: readonly string[];
};

/** Reads a state directory as the program would, without changing it. */
export function readState(directory: string): Recorded {
  const notices: string[] = [];
  const notify = (message: string): void => void notices.push(message);
  const places = { directory, runDirectory: directory, userId: 0, machineId: "" };
  const reader = openReader({ ...places, notify }, false);
  const removals = reader
    .history()
    .removals.filter(({ kind, result }) => kind === "image" && result === "removed")
    .map(({ subject, at }) => ({ image: subject, atMs: Number(at / 1_000_000n) }));
  return { ledger: reader.ledger, removals, notices };
}
