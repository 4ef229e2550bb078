// What a container runtime answers: lists as bytes, messages, the documents inside verbose answers.

import fc from "fast-check";

import { cutEntries, MalformedError } from "../../../src/cri/codec.ts";
import {
  decodeContainer,
  decodeDetail,
  decodeFilesystems,
  decodeImage,
  decodeSandbox,
  decodeSandboxDetail,
  decodeVersion,
  decodeWritableLayers,
  imageConfig,
  sandboxImagesOf,
} from "../../../src/cri/decode.ts";
import { methods } from "../../../src/cri/messages.ts";
import { containerId, sandboxId } from "../../../src/model/ids.ts";
import { declared } from "../../cri/declared.ts";
import { bytesOf, jsonOf } from "../inputs.ts";
import { holds, refusedOr, same, type Target, textTarget } from "../target.ts";

const answer = (method: string, fields: object): Uint8Array =>
  new Uint8Array(declared.get(method)?.answer(fields) ?? []);

const labels = { "io.kubernetes.pod.uid": "uid", "io.kubernetes.pod.name": "web" };
const container = (id: string) => ({
  id,
  pod_sandbox_id: "s",
  metadata: { name: "c", attempt: 4_294_967_295 },
  image: { image: "nginx:1" },
  image_ref: "sha256:1",
  state: 1,
  created_at: "-9223372036854775808",
  labels,
});
const sandbox = {
  id: "s",
  metadata: { name: "web", uid: "uid", namespace: "d" },
  state: 0,
  labels,
};
const image = {
  id: "sha256:1",
  repo_tags: ["nginx:1"],
  size: "18446744073709551615",
  pinned: true,
};

const readers = {
  ListImages: (entry: Buffer) => decodeImage(methods.ListImages.answer.decode(entry)),
  ListContainers: (entry: Buffer) => decodeContainer(methods.ListContainers.answer.decode(entry)),
  ListPodSandbox: (entry: Buffer) => decodeSandbox(methods.ListPodSandbox.answer.decode(entry)),
};
type ListName = keyof typeof readers;

const lists: readonly (readonly [ListName, Uint8Array])[] = [
  ["ListImages", answer("ListImages", { images: [image, { ...image, id: "sha256:2" }] })],
  ["ListContainers", answer("ListContainers", { containers: [container("a"), container("b")] })],
  ["ListPodSandbox", answer("ListPodSandbox", { items: [sandbox, { ...sandbox, id: "t" }] })],
];

/** What the library reads of a field that is not there. */
const ABSENT: ReadonlySet<string> = new Set(['""', "null", "[]", "{}", "false", "0", '"0"']);

/** A list that is read entry by entry has what the library reads of the whole, or is refused. */
function checkList(method: ListName, bytes: Buffer): void {
  const ids: string[] = [];
  const read = (): number => {
    cutEntries(bytes, (entry) => ids.push(readers[method](entry).id));
    return ids.length;
  };
  if (refusedOr(read, MalformedError) === null) return;
  // It may refuse what crigc skips, fields that only the proto declares, and ignores their wire type.
  const all = refusedOr(() => declared.get(method)?.read(bytes), Error);
  if (all === null) return;
  const [whole = []] = Object.values(all ?? {}) as { id: string }[][];
  const { fields } = methods[method].answer;
  const skipped = whole.flatMap((entry) =>
    Object.entries(entry).filter(([name]) => !(name in fields)),
  );
  if (skipped.some(([, value]) => !ABSENT.has(JSON.stringify(value)))) return;
  same(ids.join(), whole.map(({ id }) => id).join(), `entries of ${method}`);
}

const list: Target = {
  name: "runtime-list",
  inputs: fc
    .tuple(fc.nat(2), bytesOf(lists.map(([, bytes]) => bytes)))
    .map(([which, bytes]) => new Uint8Array([which, ...bytes])),
  check: (input) => {
    const [method] = lists[(input[0] ?? 0) % lists.length] ?? ["ListImages" as const];
    checkList(method, Buffer.from(input.subarray(1)));
  },
};

const status = {
  id: "a",
  state: 2,
  log_path: "/var/log/pods/d_web_uid/c/0.log",
  labels,
  annotations: labels,
  image: { image: "nginx:1" },
  mounts: [{ image: { image: "data:1" } }, {}],
};
const use = { fs_id: { mountpoint: "/" }, used_bytes: { value: "18446744073709551615" } };
const messages = [
  answer("ContainerStatus", { status }),
  answer("PodSandboxStatus", {
    status: { id: "s", state: 1, network: { ip: "10.0.0.1" } },
    info: { info: "{}" },
  }),
  answer("ImageFsInfo", { image_filesystems: [use], container_filesystems: [use] }),
  answer("ListContainerStats", { stats: [{ attributes: { id: "a" }, writable_layer: use }] }),
  answer("Version", { runtime_name: "containerd", runtime_version: "v1.7.24" }),
];

const message: Target = {
  name: "runtime-message",
  inputs: bytesOf(messages),
  check: (input) => {
    const bytes = Buffer.from(input);
    const refused = <Result>(read: () => Result): Result | null => refusedOr(read, MalformedError);
    refused(() => decodeDetail(containerId("a"), methods.ContainerStatus.answer.decode(bytes)));
    refused(() =>
      decodeSandboxDetail(sandboxId("s"), methods.PodSandboxStatus.answer.decode(bytes)),
    );
    refused(() => decodeFilesystems(methods.ImageFsInfo.answer.decode(bytes)));
    refused(() => decodeWritableLayers(methods.ListContainerStats.answer.decode(bytes)));
    const version = refused(() => decodeVersion(methods.Version.answer.decode(bytes)));
    holds(version?.name !== "", "a runtime without a name");
  },
};

const diff = `sha256:${"0".repeat(64)}`;
const documents = [
  { imageSpec: { created: "2026-01-01T00:00:00Z", rootfs: { diff_ids: [diff, diff] } } },
  { image: "pause:3.9", config: { log_directory: "/var/log/pods/d_web_uid" } },
  { sandboxImage: "pause:3.8", cri: { pinned_images: { sandbox_image: "pause:3.9" } } },
  {
    runtimeSpec: {
      annotations: {
        "io.kubernetes.cri-o.ImageName": "pause:3.9",
        "io.kubernetes.cri-o.LogPath": "/var/log/pods/d_web_uid/s.log",
      },
    },
  },
];

const verbose = textTarget(
  "runtime-verbose",
  jsonOf(
    documents,
    "imageSpec created rootfs diff_ids image config sandboxImage runtimeSpec".split(" "),
  ),
  (text) => {
    const info = { info: text, config: text };
    holds(
      sandboxImagesOf(info).every((name) => name !== ""),
      "an empty sandbox image",
    );
    const { chain, builtAt } = imageConfig(info);
    holds(chain === null || (chain.length > 0 && chain.length <= 1024), "a chain without end");
    holds(builtAt === null || typeof builtAt === "bigint", "no time");
  },
);

export const runtimeTargets: readonly Target[] = [list, message, verbose];
