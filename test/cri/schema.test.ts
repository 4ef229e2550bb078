// The proto has the names, numbers and types of CRI, as the fake runtime's proto declares them apart from it; and the types
// of what is decoded have every field of the proto.
import { describe, expect, test } from "bun:test";

import protobuf from "protobufjs";

import {
  decodeAnswer,
  encodeRequest,
  ENTRIES_FIELD,
  isStream,
  pathOf,
} from "../../src/cri/codec.ts";
import type {
  Answer,
  ContainerMessage,
  ContainerStatusMessage,
  FilesystemUsageMessage,
  ImageMessage,
  Method,
  SandboxMessage,
} from "../../src/cri/messages.ts";
import { readSchema } from "../../src/cri/schema.ts";
import { methods as declared, typesOf } from "./declared.ts";

const { messages, methods } = readSchema();
const names = Object.keys(methods) as Method[];

const strings = { key: "value" };
const sandbox: SandboxMessage = {
  id: "id",
  metadata: { name: "name", uid: "uid", namespace: "namespace", attempt: 1 },
  state: 1,
  created_at: 1n,
  labels: strings,
};
const container: ContainerMessage = {
  id: "id",
  pod_sandbox_id: "id",
  metadata: { name: "name", attempt: 1 },
  image: { image: "image" },
  image_ref: "ref",
  state: 1,
  created_at: 1n,
  labels: strings,
  image_id: "id",
};
const status: ContainerStatusMessage = {
  id: "id",
  state: 1,
  image: { image: "image" },
  image_ref: "ref",
  labels: strings,
  annotations: strings,
  mounts: [{ image: { image: "image" } }],
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

/** Every answer with every field: the compiler refuses one that the types lack, the test one that the proto lacks. */
const answers: { readonly [M in Method]: Answer<M> } = {
  Version: { runtime_name: "name", runtime_version: "1", runtime_api_version: "v1" },
  Status: { info: strings },
  ListPodSandbox: { items: [sandbox] },
  StreamPodSandboxes: { pod_sandboxes: [sandbox] },
  PodSandboxStatus: { status: { id: "id", state: 1, network: { ip: "ip" } } },
  StopPodSandbox: {},
  RemovePodSandbox: {},
  ListContainers: { containers: [container] },
  StreamContainers: { containers: [container] },
  ContainerStatus: { status },
  ListContainerStats: { stats: [{ attributes: { id: "id" }, writable_layer: usage }] },
  StopContainer: {},
  RemoveContainer: {},
  ExecSync: { exit_code: 1 },
  ListImages: { images: [image] },
  StreamImages: { images: [image] },
  ImageStatus: { image, info: strings },
  RemoveImage: {},
  ImageFsInfo: { image_filesystems: [usage], container_filesystems: [usage] },
};

describe("the proto", () => {
  test.each(names)("declares %s as CRI does", (name) => {
    expect(pathOf(name)).toBe(declared.get(name)?.path ?? "");
    expect(isStream(name)).toBe(declared.get(name)?.streamed ?? false);
    const { requestType = "", responseType = "" } = methods[name] ?? {};
    const [request, response] = typesOf(pathOf(name));
    expect(numbered(requestType)).toEqual(numberedIn(request, requestType));
    expect(numbered(responseType)).toEqual(numberedIn(response, responseType));
  });

  test.each(names)("has in the answer to %s what the types have, and nothing else", (name) => {
    const sent = declared.get(name)?.answer(asLibrary(answers[name]) as object);
    // Decoding fills in every declared field, so one that the types lack shows, too.
    expect(decodeAnswer(name, sent ?? Buffer.alloc(0))).toEqual(answers[name]);
  });

  test("has the entries of every list in its only field", () => {
    const lists = names.filter((it) => /^(?:List(?!ContainerStats)|Stream)/.test(it));
    expect(lists).toHaveLength(6);
    for (const name of lists) {
      const fields = messages[methods[name]?.responseType ?? ""]?.fields ?? {};
      expect(Object.values(fields).map(({ id }) => id)).toEqual([ENTRIES_FIELD]);
    }
  });

  test("seconds and lengths of more than seven bits are sent completely", () => {
    const sent = { container_id: "c".repeat(300), cmd: ["a", ""], timeout: 2 ** 31 };
    const read = declared.get("ExecSync")?.asked(encodeRequest("ExecSync", sent));
    expect(read).toEqual({ ...sent, timeout: String(2 ** 31) });
  });
});

type Numbered = { readonly [field: string]: readonly unknown[] };

const numbered = (message: string): Numbered =>
  Object.fromEntries(
    Object.entries(messages[message]?.fields ?? {}).map(
      ([name, { id, type, rule = null, keyType = null }]) => [
        name,
        [id, rule, keyType, messages[type] === undefined ? type : numbered(type)],
      ],
    ),
  );

/** The fields with the names of those of our message; enums are `int32`. */
const numberedIn = (theirs: protobuf.Type | null, message: string): Numbered =>
  Object.fromEntries(
    Object.entries(messages[message]?.fields ?? {}).flatMap(([name, { type }]) => {
      const field = theirs?.fields[name];
      if (field === undefined) return [];
      const { id, repeated, resolvedType } = field;
      const keyType = field instanceof protobuf.MapField ? field.keyType : null;
      const own = resolvedType instanceof protobuf.Enum ? "int32" : field.type;
      const inner = resolvedType instanceof protobuf.Type ? numberedIn(resolvedType, type) : own;
      return [[name, [id, repeated ? "repeated" : null, keyType, inner]]];
    }),
  );

/** With integers as the library takes them. */
const asLibrary = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, it: unknown) => (typeof it === "bigint" ? `${it}` : it)));
