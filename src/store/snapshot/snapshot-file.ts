// A node as one JSON document: written by `crigc snapshot`, read by `crigc plan --snapshot`, the same node again.

import * as v from "valibot";

import { messageOf, StoreError } from "../../model/errors.ts";
import { exactJson, parseExactJson } from "../../model/exact-json.ts";
import type { Ledger } from "../../model/ledger.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { toRfc3339 } from "../../model/time.ts";
import { shapeOf } from "../codec.ts";
import { ledgerCodec } from "../ledger/ledger-document.ts";
import { snapshotShape } from "./snapshot-schema.ts";

/** A node with 30,000 containers has 20 MB. */
export const SNAPSHOT_BYTES_MAX = 128 * 1024 * 1024;

export interface RecordedNode {
  readonly snapshot: Snapshot;
  readonly ledger: Ledger;
}

/** Fields are only ever added. Clock readings stand in `…Ns`, whole, where reports round to `…Ms`. */
export function snapshotText({ snapshot, ledger }: RecordedNode): string {
  const { clocks, imageVolumes, containerEnds, resolutions, sandboxImages, ...others } = snapshot;
  // What was read of images is in the ledger.
  const { origins: _, ...rest } = others;
  const document = {
    apiVersion: "crigc/v1",
    kind: "Snapshot",
    ...rest,
    clocks: { wall: toRfc3339(clocks.wall), uptimeNs: clocks.uptime, bootId: clocks.bootId },
    observedAt: toRfc3339(snapshot.observedAt),
    containers: snapshot.containers.map((it) => ({ ...it, createdAt: toRfc3339(it.createdAt) })),
    sandboxes: snapshot.sandboxes.map((it) => ({ ...it, createdAt: toRfc3339(it.createdAt) })),
    imageVolumes: [...imageVolumes].map(([id, it]) => ({ ...it, id })),
    containerEnds: [...containerEnds].map(([id, at]) => ({ id, finishedAt: toRfc3339(at) })),
    resolutions: [...resolutions].map(([reference, it]) => ({ ...it, reference })),
    sandboxImages: [...sandboxImages].map(([id, name]) => ({ id, name })),
    ledger: ledgerCodec.write(ledger),
  };
  return `${exactJson(document, 1)}\n`;
}

/** Throws `StoreError` of kind `corrupt`, naming the first field that is wrong. `path` is for messages. */
export function readSnapshotText(text: string, path: string): RecordedNode {
  if (text.length > SNAPSHOT_BYTES_MAX)
    throw broken(
      path,
      `it has ${text.length} characters and at most ${SNAPSHOT_BYTES_MAX} are read`,
    );
  let value: unknown;
  try {
    value = parseExactJson(text);
  } catch (error) {
    throw broken(path, `it is no JSON: ${messageOf(error)}`);
  }
  const head = v.safeParse(headShape, value);
  if (!head.success)
    throw broken(path, 'it is no document of apiVersion "crigc/v1" and kind "Snapshot"');
  const snapshot = checked(snapshotShape, value, path);
  const { ledger } = checked(v.object({ ledger: shapeOf(ledgerCodec) }), value, path);
  return { snapshot, ledger };
}

function checked<Output>(
  shape: v.GenericSchema<unknown, Output>,
  value: unknown,
  path: string,
): Output {
  const parsed = v.safeParse(shape, value, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  throw broken(path, `${v.getDotPath(issue) ?? "the document"} is wrong: ${issue.message}`);
}

const headShape = v.object({ apiVersion: v.literal("crigc/v1"), kind: v.literal("Snapshot") });

const broken = (path: string, what: string): StoreError =>
  new StoreError(
    "corrupt",
    `reading the snapshot ${path} failed: ${what}; write one with crigc snapshot`,
  );
