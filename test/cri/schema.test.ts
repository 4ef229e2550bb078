// Names, numbers and types of CRI, as crigc's messages and the proto declare them apart from each other.
import { expect, test } from "bun:test";

import protobuf from "protobufjs";

import { cutEntries, ENTRIES_FIELD, type Fields } from "../../src/cri/codec.ts";
import { methods } from "../../src/cri/messages.ts";
import { declared, responseOf } from "./declared.ts";

test.each(Object.entries(methods))("%s is declared as in CRI", (name, method) => {
  const theirs = declared.get(name)!;
  const { path, isStream } = method;
  expect({ name: method.name, path, isStream }).toEqual({
    name,
    path: theirs.path,
    isStream: theirs.streamed,
  });
  const response = responseOf(path);

  if (!/^(?:List(?!ContainerStats)|Stream)/.test(name)) {
    const answer = sampleOf(method.answer.fields, response);
    expect(method.answer.decode(theirs.answer(asLibrary(answer))) as object).toEqual(answer);
    return;
  }
  const [entries, ...others] = response?.fieldsArray ?? [];
  expect([entries?.id, entries?.repeated, others]).toEqual([ENTRIES_FIELD, true, []]);
  const entry = sampleOf(method.answer.fields, entries?.resolvedType);
  const read: object[] = [];
  cutEntries(theirs.answer(asLibrary({ [entries?.name ?? ""]: [entry, entry] })), (bytes) =>
    read.push(method.answer.decode(bytes)),
  );
  expect(read).toEqual([entry, entry]);
});

type Methods = typeof methods;

const sandbox = { pod_sandbox_id: "sandbox" };
const container = { container_id: "container" };
const image = { image: { image: "image" } };

// With every field, because the library ignores one that the proto lacks.
const requests: { readonly [Name in keyof Methods]: Parameters<Methods[Name]["encode"]>[0] } = {
  Version: {},
  Status: { verbose: true },
  ListPodSandbox: { filter: { state: { state: 1 } } },
  StreamPodSandboxes: {},
  PodSandboxStatus: sandbox,
  StopPodSandbox: sandbox,
  RemovePodSandbox: sandbox,
  ListContainers: { filter: { state: { state: 1 }, ...sandbox } },
  StreamContainers: {},
  ContainerStatus: container,
  ListContainerStats: {},
  StopContainer: { ...container, timeout: 2 ** 40 },
  RemoveContainer: container,
  ExecSync: { ...container, cmd: ["a", ""], timeout: 2 ** 40 },
  ListImages: {},
  StreamImages: {},
  ImageStatus: { ...image, verbose: true },
  RemoveImage: image,
  ImageFsInfo: {},
};

test.each(Object.entries(requests))("a request %s is sent completely", (name, request) => {
  const encode = methods[name as keyof Methods].encode as (values: object) => Buffer;
  expect(declared.get(name)!.asked(encode(request))).toMatchObject(asLibrary(request));
});

const SAMPLES: Readonly<Record<string, unknown>> = {
  string: "text",
  bool: true,
  int32: -5,
  uint32: 2 ** 32 - 1,
  int64: -(2n ** 62n),
  uint64: 2n ** 64n - 1n,
};

/** A message with a value in each of our fields, by the types that the proto gives them. */
function sampleOf(ours: Fields, theirs: unknown): object {
  if (!(theirs instanceof protobuf.Type)) throw new Error("the proto has no such message");
  const samples = Object.entries(ours).map(([name, { fields }]) => {
    const field = theirs.fields[name];
    if (field === undefined) throw new Error(`${theirs.name} has no field ${name}`);
    if (field instanceof protobuf.MapField) return [name, { key: "value" }];
    const { resolvedType, repeated, type } = field.resolve();
    if (resolvedType instanceof protobuf.Enum) return [name, 1];
    const sample = fields === undefined ? SAMPLES[type] : sampleOf(fields, resolvedType);
    return [name, repeated ? [sample] : sample];
  });
  return Object.fromEntries(samples) as object;
}

/** As the library takes and gives it: integers of 64 bits as text. */
const asLibrary = (value: object): object =>
  JSON.parse(
    JSON.stringify(value, (_, it: unknown) =>
      typeof it === "bigint" || (typeof it === "number" && it >= 2 ** 40) ? `${it}` : it,
    ),
  ) as object;
