// The shape of a recorded ledger, and how one is written: clock readings keep their nanoseconds.

import * as v from "valibot";

import { containerId, imageId, podUid, sandboxId } from "../model/ids.ts";
import type { Ledger } from "../model/ledger.ts";
import {
  bytesField,
  countField,
  durationField,
  mapField,
  textsField,
  timeField,
  timeTextOrNull,
  watchedField,
} from "./snapshot-fields.ts";

export const ledgerShape = v.pipe(
  v.object({
    bootId: v.string(),
    observedAt: v.nullable(timeField),
    uptimeNs: durationField,
    watchedNs: watchedField,
    graceUntilNs: v.nullable(watchedField),
    graceReason: v.nullable(v.picklist(["boot", "containers-vanished"])),
    hadContainers: v.boolean(),
    images: mapField(
      v.object({
        id: v.pipe(v.string(), v.transform(imageId)),
        firstSeenAt: timeField,
        firstSeenWatchedNs: watchedField,
        lastUsedAt: v.nullable(timeField),
        lastUsedWatchedNs: v.nullable(watchedField),
        names: v.string(),
        earlierNames: v.optional(textsField, []),
        sizeBytes: bytesField,
        ghost: v.nullable(
          v.pipe(
            v.object({ since: timeField, attempts: countField, retryWatchedNs: watchedField }),
            v.transform(({ retryWatchedNs, ...it }) => ({ ...it, retryWatched: retryWatchedNs })),
          ),
        ),
      }),
      ({ id, firstSeenWatchedNs, lastUsedWatchedNs, ...it }) =>
        [
          id,
          { ...it, firstSeenWatched: firstSeenWatchedNs, lastUsedWatched: lastUsedWatchedNs },
        ] as const,
    ),
    containers: mapField(
      v.object({
        id: v.pipe(v.string(), v.transform(containerId)),
        imageVolumes: v.nullable(textsField),
        finishedAt: v.nullable(timeField),
      }),
      ({ id, ...it }) => [id, it] as const,
    ),
    pods: mapField(
      v.object({
        uid: v.pipe(v.string(), v.transform(podUid)),
        absentPasses: countField,
        deadPasses: countField,
        deadSinceWatchedNs: v.nullable(watchedField),
        origin: v.optional(v.nullable(v.picklist(["api", "pending", "static"])), null),
      }),
      ({ uid, deadSinceWatchedNs, ...it }) =>
        [uid, { ...it, deadSinceWatched: deadSinceWatchedNs }] as const,
    ),
    sandboxImages: mapField(
      v.object({ id: v.pipe(v.string(), v.transform(sandboxId)), name: v.string() }),
      (it) => [it.id, it.name] as const,
    ),
    releases: mapField(
      v.object({ runtime: v.string(), promptRemovals: countField, lateRemovals: countField }),
      ({ runtime, ...it }) => [runtime, it] as const,
    ),
    keepDirectories: textsField,
  }),
  v.transform(({ uptimeNs, watchedNs, graceUntilNs, ...rest }): Ledger => ({
    ...rest,
    uptime: uptimeNs,
    watched: watchedNs,
    graceUntil: graceUntilNs,
  })),
);

export function ledgerDocument(ledger: Ledger) {
  return {
    bootId: ledger.bootId,
    observedAt: timeTextOrNull(ledger.observedAt),
    uptimeNs: ledger.uptime,
    watchedNs: ledger.watched,
    graceUntilNs: ledger.graceUntil,
    graceReason: ledger.graceReason,
    hadContainers: ledger.hadContainers,
    images: [...ledger.images].map(([id, it]) => ({
      id,
      firstSeenAt: timeTextOrNull(it.firstSeenAt),
      firstSeenWatchedNs: it.firstSeenWatched,
      lastUsedAt: timeTextOrNull(it.lastUsedAt),
      lastUsedWatchedNs: it.lastUsedWatched,
      names: it.names,
      earlierNames: it.earlierNames,
      sizeBytes: it.sizeBytes,
      ghost:
        it.ghost === null
          ? null
          : {
              since: timeTextOrNull(it.ghost.since),
              attempts: it.ghost.attempts,
              retryWatchedNs: it.ghost.retryWatched,
            },
    })),
    containers: [...ledger.containers].map(([id, it]) => ({
      id,
      imageVolumes: it.imageVolumes,
      finishedAt: timeTextOrNull(it.finishedAt),
    })),
    pods: [...ledger.pods].map(([uid, it]) => ({
      uid,
      absentPasses: it.absentPasses,
      deadPasses: it.deadPasses,
      deadSinceWatchedNs: it.deadSinceWatched,
      origin: it.origin,
    })),
    sandboxImages: [...ledger.sandboxImages].map(([id, name]) => ({ id, name })),
    releases: [...ledger.releases].map(([runtime, it]) => ({ runtime, ...it })),
    keepDirectories: ledger.keepDirectories,
  };
}
