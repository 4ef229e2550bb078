// The shapes that rows of the history are held against when they are read, and what they become.

import * as v from "valibot";

import type { Event } from "../model/event.ts";
import { passId } from "../model/ids.ts";
import type { Signal } from "../model/limits.ts";
import type { Step } from "../model/pass.ts";
import type { FilesystemRole } from "../model/snapshot.ts";
import { duration, instant } from "../model/time.ts";
import {
  bytesColumn,
  countColumn,
  durationColumn,
  flagColumn,
  instantColumn,
  textsColumn,
} from "./columns.ts";
import type { DiskSample, PassRow, Removal } from "./history-rows.ts";

const passIdColumn = v.pipe(v.string(), v.transform(passId));
/** A word of a closed set. The history decides nothing, so a word that a later version added is shown as it stands. */
const word = <Word extends string>() => v.custom<Word>((cell) => typeof cell === "string");

const nullableBytes = v.nullable(bytesColumn);

export const removalShape = v.pipe(
  v.object({
    pass_id: passIdColumn,
    kind: word<Removal["kind"]>(),
    subject: v.string(),
    names: textsColumn,
    trigger: word<Removal["trigger"]>(),
    signal: v.nullable(word<Signal>()),
    reason: v.string(),
    result: word<Removal["result"]>(),
    message: v.nullable(v.string()),
    reported_bytes: nullableBytes,
    measured_bytes: nullableBytes,
    settled: v.nullable(word<NonNullable<Removal["settled"]>>()),
    at: instantColumn,
    took: v.nullable(durationColumn),
  }),
  v.transform(({ pass_id, reported_bytes, measured_bytes, ...row }): Removal => ({
    ...row,
    passId: pass_id,
    reportedBytes: reported_bytes,
    measuredBytes: measured_bytes,
  })),
);

// Nanoseconds stand as text, since JSON numbers end at 2^53.
const nanoseconds = v.pipe(
  v.string(),
  v.regex(/^-?\d+$/),
  v.transform((text) => BigInt(text)),
);

const stepShape = v.object({
  name: word<Step["name"]>(),
  startedAt: v.pipe(nanoseconds, v.transform(instant)),
  took: v.pipe(nanoseconds, v.transform(duration)),
  error: v.nullable(v.string()),
});

export const passShape = v.pipe(
  v.object({
    id: passIdColumn,
    kind: word<PassRow["kind"]>(),
    purpose: word<PassRow["purpose"]>(),
    signals: v.pipe(v.string(), v.parseJson(), v.array(word<Signal>())),
    started_at: instantColumn,
    ended_at: v.nullable(instantColumn),
    dry_run: flagColumn,
    error: v.nullable(v.string()),
    images_end: v.nullable(word<NonNullable<PassRow["imagesEnd"]>>()),
    containers_end: v.nullable(word<NonNullable<PassRow["containersEnd"]>>()),
    removed: countColumn,
    failed: countColumn,
    wanted_bytes: nullableBytes,
    reported_freed_bytes: nullableBytes,
    measured_freed_bytes: nullableBytes,
    available_before_bytes: nullableBytes,
    available_after_bytes: nullableBytes,
    capacity_bytes: nullableBytes,
    steps: v.pipe(v.string(), v.parseJson(), v.array(stepShape)),
  }),
  v.transform((row): PassRow => ({
    id: row.id,
    kind: row.kind,
    purpose: row.purpose,
    signals: row.signals,
    startedAt: row.started_at,
    endedAt: row.ended_at,
    dryRun: row.dry_run,
    error: row.error,
    imagesEnd: row.images_end,
    containersEnd: row.containers_end,
    removed: row.removed,
    failed: row.failed,
    wantedBytes: row.wanted_bytes,
    reportedFreedBytes: row.reported_freed_bytes,
    measuredFreedBytes: row.measured_freed_bytes,
    availableBeforeBytes: row.available_before_bytes,
    availableAfterBytes: row.available_after_bytes,
    capacityBytes: row.capacity_bytes,
    steps: row.steps,
  })),
);

export const eventShape = v.pipe(
  v.object({
    at: instantColumn,
    pass_id: v.nullable(passIdColumn),
    reason: word<Event["reason"]>(),
    message: v.string(),
  }),
  v.transform(({ pass_id, ...row }): Event => ({ ...row, passId: pass_id })),
);

export const sampleShape = v.pipe(
  v.object({
    at: instantColumn,
    device: v.string(),
    path: v.string(),
    mountpoint: v.string(),
    roles: v.pipe(v.string(), v.parseJson(), v.array(word<FilesystemRole>())),
    capacity_bytes: bytesColumn,
    available_bytes: bytesColumn,
    inodes: bytesColumn,
    inodes_free: bytesColumn,
  }),
  v.transform((row): DiskSample => ({
    at: row.at,
    device: row.device,
    path: row.path,
    mountpoint: row.mountpoint,
    roles: row.roles,
    capacityBytes: row.capacity_bytes,
    availableBytes: row.available_bytes,
    inodes: row.inodes,
    inodesFree: row.inodes_free,
  })),
);
