// What the program reads of answers and writes into requests is what the proto declares, field by field.
import { describe, expect, test } from "bun:test";

import { decodeAnswer, encodeRequest, ENTRIES_FIELD, pathOf } from "../../src/cri/codec.ts";
import type {
  Answers,
  ContainerMessage,
  ContainerStatusMessage,
  FilesystemUsageMessage,
  ImageMessage,
  SandboxMessage,
  UnaryMethods,
} from "../../src/cri/messages.ts";
import { type Field, fieldsOfMessage, methods } from "./declared.ts";

const strings = { key: "value" };
const podLabels = {
  "io.kubernetes.pod.uid": "uid",
  "io.kubernetes.pod.name": "name",
  "io.kubernetes.pod.namespace": "namespace",
};

const sandbox: SandboxMessage = {
  id: "id",
  metadata: { name: "name", uid: "uid", namespace: "namespace", attempt: 1 },
  state: 1,
  created_at: 1n,
  labels: podLabels,
};

const container: ContainerMessage = {
  id: "id",
  pod_sandbox_id: "id",
  metadata: { name: "name", attempt: 1 },
  image: { image: "image" },
  image_ref: "ref",
  state: 1,
  created_at: 1n,
  labels: podLabels,
  image_id: "id",
};

const status: ContainerStatusMessage = {
  id: "id",
  state: 1,
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
  PodSandboxStatus: { info: strings, status: { id: "id", state: 1, network: { ip: "ip" } } },
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
  test("every method has a type", () => {
    expect([...methods.keys()].toSorted()).toEqual(Object.keys(answers).toSorted());
  });

  test.each(entriesOf(answers))(
    "the response of %s has the type that is decoded",
    (name, answer) => {
      expect(pathOf(name)).toBe(methods.get(name)?.path ?? "");
      const bytes = methods.get(name)?.answer(withTexts(answer)) ?? noBytes;
      expect<object>(decodeAnswer(name, bytes)).toEqual(answer);
      expect(missing(methods.get(name)?.response ?? "", answer)).toEqual([]);
    },
  );

  test.each(entriesOf(requests))("the request of %s has the type that is sent", (name, sent) => {
    const read = methods.get(name)?.asked(encodeRequest(name, sent)) ?? {};
    expect(read).toEqual("timeout" in sent ? { ...sent, timeout: String(sent.timeout) } : sent);
    expect(missing(methods.get(name)?.request ?? "", sent)).toEqual([]);
  });
});

test("the entries of every list are in its only field", () => {
  const lists = [...methods.values()].filter(({ name }) =>
    /^(?:List(?!ContainerStats)|Stream)/.test(name),
  );
  expect(lists).toHaveLength(6);
  for (const { response } of lists)
    expect(fieldsOfMessage(response).map(({ number }) => number)).toEqual([ENTRIES_FIELD]);
});

test("seconds and lengths of more than seven bits are sent completely", () => {
  const sent = { container_id: "c".repeat(300), cmd: ["a", ""], timeout: 2 ** 31 };
  const read = methods.get("ExecSync")?.asked(encodeRequest("ExecSync", sent));
  expect(read).toEqual({ ...sent, timeout: String(2 ** 31) });
});

const noBytes = Buffer.alloc(0);

function entriesOf<Name extends string, Value>(
  record: Readonly<Record<Name, Value>>,
): [Name, Value][] {
  return Object.entries(record) as [Name, Value][];
}

/** The library takes and gives integers of 64 bits as text. */
const withTexts = (value: object): object =>
  JSON.parse(
    JSON.stringify(value, (_, it: unknown) => (typeof it === "bigint" ? String(it) : it)),
  ) as object;

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
