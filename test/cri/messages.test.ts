// The types that the program reads answers by and what the library makes of them are the same.
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
import { criCodec } from "../../src/cri/proto.ts";
import { type Field, fieldsOfMessage, methods } from "./declared.ts";

const strings = { key: "value" };

const sandbox: SandboxMessage = {
  id: "id",
  metadata: { name: "name", uid: "uid", namespace: "namespace", attempt: 1 },
  state: 0,
  created_at: "1",
  labels: strings,
};

const container: ContainerMessage = {
  id: "id",
  pod_sandbox_id: "id",
  metadata: { name: "name", attempt: 1 },
  image: { image: "image" },
  image_ref: "ref",
  state: 0,
  created_at: "1",
  labels: strings,
  image_id: "id",
};

const status: ContainerStatusMessage = {
  id: "id",
  state: 0,
  finished_at: "1",
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
  size: "1",
  pinned: true,
};

const usage: FilesystemUsageMessage = {
  fs_id: { mountpoint: "path" },
  used_bytes: { value: "1" },
  inodes_used: { value: "1" },
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
  ListContainerStats: { stats: [{ attributes: { id: "id" }, writable_layer: usage }] },
  ImageStatus: { image, info: { info: "{}" } },
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
  ListContainerStats: {},
  ImageStatus: { image: { image: "image" }, verbose: true },
  RemoveImage: { image: { image: "image" } },
  ImageFsInfo: {},
};

describe("messages", () => {
  test("there is a type for every method", () => {
    expect([...methods.keys()].toSorted()).toEqual(Object.keys(answers).toSorted());
  });

  test.each(entriesOf(answers))("the answer of %s is typed as it is read", async (name, answer) => {
    const codec = await criCodec();
    expect(codec.pathOf(name)).toBe(methods.get(name)?.path ?? "");
    expect<object>(codec.decode(name, methods.get(name)?.answer(answer) ?? noBytes)).toEqual(
      answer,
    );
    expect(missing(methods.get(name)?.response ?? "", answer)).toEqual([]);
  });

  test.each(entriesOf(requests))("the request of %s is typed as it is sent", async (name, sent) => {
    const codec = await criCodec();
    const read = methods.get(name)?.asked(codec.encode(name, sent)) ?? {};
    expect(read).toEqual(withTexts(sent));
    expect(missing(methods.get(name)?.request ?? "", sent)).toEqual([]);
  });
});

const noBytes = Buffer.alloc(0);

function entriesOf<Name extends string, Value>(
  record: Readonly<Record<Name, Value>>,
): [Name, Value][] {
  return Object.entries(record) as [Name, Value][];
}

/** Seconds to wait are sent as a number, and read as every integer of 64 bits is. */
function withTexts(sent: object): object {
  return "timeout" in sent ? { ...sent, timeout: String(sent.timeout) } : sent;
}

/** Declared fields that a value lacks. */
function missing(message: string, value: object): readonly string[] {
  return fieldsOfMessage(message).flatMap((field) => {
    if (!(field.name in value)) return [`${message}.${field.name} has no type`];
    const inner = (value as Readonly<Record<string, unknown>>)[field.name];
    const items: unknown[] = field.repeated ? (inner as unknown[]) : [inner];
    return items.flatMap((item) => missingInside(field, item));
  });
}

const missingInside = ({ type }: Field, item: unknown): readonly string[] =>
  type.kind === "message" ? missing(type.name, item as object) : [];
