// The types that the program reads answers by and the tables that decode them say the same.
import { describe, expect, test } from "bun:test";

import type {
  Answers,
  ContainerMessage,
  ContainerStatusMessage,
  FilesystemUsageMessage,
  ImageMessage,
  SandboxMessage,
  UnaryMethods,
} from "../../src/cri/messages.ts";
import { criSchema } from "../../src/cri/proto.ts";
import type { Field, MessageType } from "../../src/cri/schema.ts";

const strings = new Map([["key", "value"]]);

const sandbox: SandboxMessage = {
  id: "id",
  metadata: { name: "name", uid: "uid", namespace: "namespace", attempt: 1 },
  state: 0,
  created_at: 1n,
  labels: strings,
};

const container: ContainerMessage = {
  id: "id",
  pod_sandbox_id: "id",
  metadata: { name: "name", attempt: 1 },
  image: { image: "image" },
  image_ref: "ref",
  state: 0,
  created_at: 1n,
  labels: strings,
  image_id: "id",
};

const status: ContainerStatusMessage = {
  id: "id",
  state: 0,
  finished_at: 1n,
  image: { image: "image" },
  image_ref: "ref",
  labels: strings,
  annotations: strings,
  mounts: [{ image: { image: "image" } }],
  log_path: "path",
  image_id: "id",
};

const image: ImageMessage = {
  id: "id",
  repo_tags: ["tag"],
  repo_digests: ["digest"],
  size: 1n,
  pinned: true,
};

const usage: FilesystemUsageMessage = {
  fs_id: { mountpoint: "path" },
  used_bytes: { value: 1n },
  inodes_used: { value: 1n },
};

/** Every answer with every field: the compiler refuses one that the types lack, the test one that the tables lack. */
const answers: Answers = {
  Version: { runtime_name: "name", runtime_version: "1", runtime_api_version: "v1" },
  Status: { info: strings },
  ListPodSandbox: { items: [sandbox] },
  StreamPodSandboxes: { pod_sandboxes: [sandbox] },
  PodSandboxStatus: { info: strings, status: { state: 0, network: { ip: "ip" } } },
  StopPodSandbox: {},
  RemovePodSandbox: {},
  ListContainers: { containers: [container] },
  StreamContainers: { containers: [container] },
  ContainerStatus: { status },
  StopContainer: {},
  RemoveContainer: {},
  ExecSync: { exit_code: 1 },
  GetContainerEvents: {
    container_id: "id",
    container_event_type: 1,
    containers_statuses: [status],
  },
  ListImages: { images: [image] },
  StreamImages: { images: [image] },
  ImageStatus: { image },
  RemoveImage: {},
  ImageFsInfo: { image_filesystems: [usage], container_filesystems: [usage] },
};

type Requests = { readonly [M in keyof UnaryMethods]: Required<UnaryMethods[M]["request"]> };

const requests: Requests = {
  Version: {},
  Status: { verbose: true },
  ListPodSandbox: { filter: { state: { state: 1 } } },
  PodSandboxStatus: { pod_sandbox_id: "id", verbose: true },
  StopPodSandbox: { pod_sandbox_id: "id" },
  RemovePodSandbox: { pod_sandbox_id: "id" },
  ListContainers: { filter: { state: { state: 1 }, pod_sandbox_id: "id" } },
  ContainerStatus: { container_id: "id" },
  StopContainer: { container_id: "id", timeout: 1 },
  RemoveContainer: { container_id: "id" },
  ExecSync: { container_id: "id", cmd: ["true"], timeout: 1 },
  ListImages: {},
  ImageStatus: { image: { image: "image" } },
  RemoveImage: { image: { image: "image" } },
  ImageFsInfo: {},
};

const { methods } = criSchema();

describe("messages", () => {
  test("there is a type for every method", () => {
    expect([...methods.keys()].toSorted()).toEqual(Object.keys(answers).toSorted());
  });

  test.each(Object.entries(answers))(
    "the answer of %s is typed as it is decoded",
    (name, answer) => {
      expect(faults(methods.get(name)?.response, answer)).toEqual([]);
    },
  );

  test.each(Object.entries(requests))("the request of %s is typed as it is sent", (name, sent) => {
    expect(faults(methods.get(name)?.request, sent)).toEqual([]);
  });
});

/** Where a value differs from a message's tables: fields missing on either side, values of another type. */
function faults(type: MessageType | undefined, value: object): readonly string[] {
  if (type === undefined) return ["no such method"];
  const missing = type.fields
    .filter(({ name }) => !(name in value))
    .map(({ name }) => `${type.name}.${name} has no type`);
  const wrong = Object.entries(value).flatMap(([name, inner]) => {
    const field = type.fields.find((it) => it.name === name);
    if (field === undefined) return [`${type.name}.${name} is not declared`];
    const items: unknown[] = field.repeated ? (inner as unknown[]) : [inner];
    return items.flatMap((item) => valueFaults(field, item));
  });
  return [...missing, ...wrong];
}

function valueFaults({ name, type }: Field, value: unknown): readonly string[] {
  if (type.kind === "message") return faults(type.message, value as object);
  if (type.kind === "strings") return value instanceof Map ? [] : [`${name} is a map`];
  // Seconds to wait are sent as a number; what is read is exact.
  const isSeconds = name === "timeout";
  const expected = type.kind === "enum" || isSeconds ? "number" : scalarTypes[type.scalar];
  return typeof value === expected ? [] : [`${name} is a ${expected}`];
}

const scalarTypes = {
  string: "string",
  bool: "boolean",
  int32: "number",
  uint32: "number",
  int64: "bigint",
  uint64: "bigint",
} as const;
