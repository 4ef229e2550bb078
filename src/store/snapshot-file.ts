// A node as one JSON document, written by `crigc snapshot` and read by `crigc plan --snapshot`, without loss.

import { messageOf, StoreError } from "../model/errors.ts";
import { exactJson, parseExactJson } from "../model/exact-json.ts";
import { containerId, imageId, podUid, sandboxId } from "../model/ids.ts";
import type { ContainerCreation, Ledger } from "../model/ledger.ts";
import type {
  Clocks,
  Container,
  CreationReading,
  Filesystem,
  Image,
  ImageVolumes,
  KeepRule,
  KeepRules,
  LogReading,
  Manifest,
  PodReading,
  Resolution,
  RuntimeInfo,
  Sandbox,
  Snapshot,
} from "../model/snapshot.ts";
import {
  added,
  branded,
  byKind,
  bytes,
  count,
  durationNs,
  FieldError,
  flag,
  list,
  mapBy,
  nullable,
  oneOf,
  optional,
  record,
  text,
  texts,
  time,
  under,
} from "./codec.ts";
import { ledgerCodec, ledgerMaps } from "./ledger-document.ts";

/** A node with 30,000 containers takes 20 MB. */
export const SNAPSHOT_BYTES_MAX = 128 * 1024 * 1024;

export interface RecordedNode {
  readonly snapshot: Snapshot;
  readonly ledger: Ledger;
}

const head = { apiVersion: "crigc/v1", kind: "Snapshot" } as const;

/** Fields are only ever added. Clock readings are exact, in `…Ns`; reports round to `…Ms`. */
export const snapshotText = ({ snapshot, ledger }: RecordedNode): string =>
  `${exactJson(nodeCodec.write({ ...head, ...snapshot, ledger }), 1)}\n`;

/** Throws `StoreError` `corrupt`, naming the first invalid field. `path` is for messages. */
export function readSnapshotText(content: string, path: string): RecordedNode {
  if (content.length > SNAPSHOT_BYTES_MAX)
    throw broken(path, `it has ${content.length} characters; the maximum is ${SNAPSHOT_BYTES_MAX}`);
  let document: unknown;
  try {
    document = parseExactJson(content);
  } catch (error) {
    throw broken(path, `it is not valid JSON: ${messageOf(error)}`);
  }
  try {
    const { apiVersion: _, kind: __, ledger, ...snapshot } = nodeCodec.read(document);
    return { snapshot, ledger };
  } catch (error) {
    if (!(error instanceof FieldError)) throw error;
    const [field] = error.path;
    throw broken(
      path,
      field === undefined || Object.hasOwn(head, field)
        ? `it is not a document of apiVersion "${head.apiVersion}" and kind "${head.kind}"`
        : `${error.path.join(".")} is invalid: ${error.message}`,
    );
  }
}

const broken = (path: string, what: string): StoreError =>
  new StoreError(
    "corrupt",
    `cannot read the snapshot ${path}: ${what}; write one with crigc snapshot`,
  );

const image = record<Image>({
  id: branded(imageId),
  repoTags: texts,
  repoDigests: texts,
  sizeBytes: bytes,
  pinned: flag,
});

const container = record<Container>({
  id: branded(containerId),
  sandboxId: branded(sandboxId),
  name: text,
  attempt: count,
  podUid: branded(podUid),
  podName: text,
  podNamespace: text,
  imageName: text,
  imageRef: text,
  imageId: text,
  state: oneOf("created", "running", "exited", "unknown"),
  createdAt: time,
});

const sandbox = record<Sandbox>({
  id: branded(sandboxId),
  podUid: branded(podUid),
  metadataUid: branded(podUid),
  name: text,
  namespace: text,
  attempt: count,
  state: oneOf("ready", "not-ready"),
  createdAt: time,
});

const imageVolumes = byKind<ImageVolumes>({
  known: { references: texts },
  gone: {},
  unsupported: {},
  unknown: { message: text },
});

const resolution = byKind<Resolution>({
  image: { id: branded(imageId) },
  absent: {},
  unknown: { message: text },
});

const filesystem = record<Filesystem>({
  roles: list(oneOf("imagefs", "containerfs", "nodefs")),
  path: text,
  mountpoint: text,
  device: text,
  capacityBytes: bytes,
  availableBytes: bytes,
  inodes: bytes,
  inodesFree: bytes,
  imageUsedBytes: nullable(bytes),
  imageInodesUsed: added(nullable(bytes), null),
  containerUsedBytes: nullable(bytes),
});

const source = oneOf("cri", "kubelet-dir", "kubelet-api");

const fault = record({ kind: oneOf("invalid", "unreadable"), message: text });

const manifests = optional(
  list(record<Manifest>({ path: text, images: texts, fault: nullable(fault) })),
);

const pod = record({
  uid: branded(podUid),
  origin: added(oneOf("api", "static", "listed", "directory"), "api"),
  finished: flag,
  evicted: flag,
  images: texts,
});

const pods = byKind<PodReading>({
  ready: { source, pods: list(pod), manifests },
  none: { why: text, manifests },
  failed: { source, message: text, manifests },
});

const logs = byKind<LogReading>(
  {
    read: {
      podLogsDirectory: text,
      podLogs: list(record({ entry: text, uid: branded(podUid) })),
      strays: texts,
      danglingLinks: list(record({ entry: text, containerId: text })),
      sizeBytes: nullable(bytes),
    },
    failed: { message: text },
  },
  "read",
);

const clocks = record<Clocks>({ wall: time, uptime: durationNs, bootId: text });

const creation = record<ContainerCreation>({
  podUid: branded(podUid),
  sandboxId: branded(sandboxId),
  name: text,
  markedAt: time,
});

const creations = record<CreationReading>({ clocks, inProgress: list(creation) });

type Node = typeof head & Snapshot & { readonly ledger: Ledger };

const nodeCodec = record<Node>({
  apiVersion: oneOf(head.apiVersion),
  kind: oneOf(head.kind),
  clocks,
  observedAt: time,
  runtime: record<RuntimeInfo>({
    endpoint: text,
    imageEndpoint: text,
    name: text,
    version: text,
    apiVersion: text,
    sandboxImages: texts,
    instance: added(text, ""),
  }),
  images: list(image),
  containers: list(container),
  sandboxes: list(sandbox),
  imageVolumes: mapBy("id", containerId, imageVolumes),
  containerEnds: mapBy("id", containerId, under("finishedAt", time)),
  resolutions: mapBy("reference", (reference) => reference, resolution),
  sandboxImages: ledgerMaps.sandboxImages,
  filesystems: list(filesystem),
  pods,
  creations: added(nullable(creations), null),
  logs: nullable(logs),
  keep: record<KeepRules>({
    rules: list(record<KeepRule>({ pattern: text, source: text, pinned: optional(flag) })),
    problems: list(record({ source: text, message: text })),
    directoriesRead: texts,
  }),
  ledger: ledgerCodec,
});
