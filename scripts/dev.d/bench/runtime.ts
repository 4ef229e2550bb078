// A container runtime that costs little: each entry is encoded once, and a list is the entries that are left, side by side.
//
// `runtime.ts SOCKET IMAGES MOUNTPOINT`, started with IPC: any message brings back what was removed.

import { join } from "node:path";

import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

import { largeNode, type Message } from "./node.ts";

const [socket = "", images = "", mountpoint = ""] = process.argv.slice(2);
const definition = loadSync(join(import.meta.dir, "../../../proto/runtime-v1.proto"), {
  keepCase: true,
  longs: String,
  defaults: true,
});
const services = ["runtime.v1.RuntimeService", "runtime.v1.ImageService"].map(
  (name) => definition[name] as ServiceDefinition,
);
const methods = Object.assign({}, ...services) as ServiceDefinition;

const encoded = (method: string, answer: object): Buffer =>
  methods[method]?.responseSerialize(answer) ?? Buffer.alloc(0);

const empty = Buffer.alloc(0);

/** What a list may be narrowed down to. */
interface Filter {
  readonly state?: { readonly state: number } | null;
  readonly pod_sandbox_id?: string;
}

/** The entries of one list, as bytes, with what was removed of them. */
class Entries {
  readonly #encoded: ReadonlyMap<string, Buffer>;
  readonly #messages: ReadonlyMap<string, Message>;
  readonly #bySandbox: ReadonlyMap<unknown, readonly Message[]>;
  readonly #removed = new Set<string>();
  /** Answers by their filter, while nothing is removed. */
  #answers = new Map<string, Buffer>();

  constructor(method: string, field: string, messages: readonly Message[]) {
    this.#messages = new Map(messages.map((message) => [message.id, message]));
    this.#encoded = new Map(
      messages.map((message) => [message.id, encoded(method, { [field]: [message] })]),
    );
    this.#bySandbox = Map.groupBy(messages, (message) => message["pod_sandbox_id"]);
  }

  has(id: string): boolean {
    return this.#encoded.has(id) && !this.#removed.has(id);
  }

  remove(id: string): void {
    if (!this.has(id)) return;
    this.#removed.add(id);
    this.#answers.clear();
  }

  reset(): void {
    if (this.#removed.size > 0) this.#answers.clear();
    this.#removed.clear();
  }

  /** Those that are left, narrowed down as a runtime does. */
  list({ state, pod_sandbox_id: sandbox = "" }: Filter = {}): Buffer {
    const key = `${state?.state} ${sandbox}`;
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const among = sandbox === "" ? this.#messages.values() : (this.#bySandbox.get(sandbox) ?? []);
    const pieces: Buffer[] = [];
    for (const { id, state: itsState } of among)
      if (!this.#removed.has(id) && (state == null || state.state === itsState))
        pieces.push(this.#encoded.get(id) ?? empty);
    const answer = Buffer.concat(pieces);
    this.#answers.set(key, answer);
    return answer;
  }
}

const node = largeNode(Number(images));
const messagesById = new Map(
  [...node.images, ...node.containers, ...node.sandboxes].map((message) => [message.id, message]),
);
const lists = {
  images: new Entries("ListImages", "images", node.images),
  containers: new Entries("ListContainers", "containers", node.containers),
  sandboxes: new Entries("ListPodSandbox", "items", node.sandboxes),
};

const statuses = new Map<string, Buffer>();
function statusOf(id: string, make: (message: Message) => Buffer): Buffer {
  const known = statuses.get(id);
  if (known !== undefined) return known;
  const bytes = make(messagesById.get(id) ?? { id });
  statuses.set(id, bytes);
  return bytes;
}

const gone = (id: string): never => {
  throw Object.assign(new Error(`${id}: not found`), { code: status.NOT_FOUND });
};

// Requests are what the loader made of the proto: plain objects with every field set.
// oxlint-disable-next-line typescript/no-explicit-any
type Handler = (request: any) => Buffer;

const handlers: Readonly<Record<string, Handler>> = {
  Version: () =>
    encoded("Version", {
      version: "0.1.0",
      runtime_name: "containerd",
      runtime_version: "v2.1.9",
      runtime_api_version: "v1",
    }),
  Status: () => encoded("Status", { status: { conditions: [] }, info: {} }),
  ImageFsInfo: () =>
    encoded("ImageFsInfo", {
      image_filesystems: [{ fs_id: { mountpoint }, used_bytes: { value: "1000000000" } }],
    }),
  ListImages: () => lists.images.list(),
  ListContainers: ({ filter }) => lists.containers.list(filter ?? {}),
  ListPodSandbox: ({ filter }) => lists.sandboxes.list(filter ?? {}),
  ContainerStatus: ({ container_id: id }) =>
    lists.containers.has(id)
      ? statusOf(id, (message) =>
          encoded("ContainerStatus", {
            status: { ...message, finished_at: message["created_at"], mounts: [], log_path: "" },
          }),
        )
      : gone(id),
  PodSandboxStatus: ({ pod_sandbox_id: id }) =>
    lists.sandboxes.has(id)
      ? statusOf(id, (message) =>
          encoded("PodSandboxStatus", {
            status: { ...message, network: { ip: "10.0.0.1" } },
            info: { info: JSON.stringify({ pid: 4321, image: "registry.k8s.io/pause:3.10" }) },
          }),
        )
      : gone(id),
  ImageStatus: ({ image }) =>
    lists.images.has(image.image)
      ? encoded("ImageStatus", { image: messagesById.get(image.image) })
      : empty,
  RemoveImage: ({ image }) => {
    lists.images.remove(image.image);
    return empty;
  },
  StopContainer: () => empty,
  RemoveContainer: ({ container_id: id }) => {
    lists.containers.remove(id);
    return empty;
  },
  StopPodSandbox: () => empty,
  RemovePodSandbox: ({ pod_sandbox_id: id }) => {
    lists.sandboxes.remove(id);
    return empty;
  },
};

const served = (service: ServiceDefinition): ServiceDefinition =>
  Object.fromEntries(
    Object.entries(service)
      .filter(([name]) => handlers[name] !== undefined)
      .map(([name, method]) => [name, { ...method, responseSerialize: (bytes: Buffer) => bytes }]),
  ) as ServiceDefinition;

const implementation = (service: ServiceDefinition): UntypedServiceImplementation =>
  Object.fromEntries(
    Object.keys(service).map((name) => [
      name,
      (
        call: ServerUnaryCall<object, Buffer>,
        reply: (error: object | null, bytes?: Buffer) => void,
      ) => {
        try {
          reply(null, handlers[name]?.(call.request));
        } catch (thrown) {
          reply(thrown as object);
        }
      },
    ]),
  ) as UntypedServiceImplementation;

const server = new Server({ "grpc.max_send_message_length": -1 });
for (const service of services) server.addService(served(service), implementation(served(service)));
server.bindAsync(`unix://${socket}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
  process.send?.({ kind: "listening" });
});

process.on("message", () => {
  for (const list of Object.values(lists)) list.reset();
  process.send?.({ kind: "reset" });
});
process.on("disconnect", () => process.exit(0));
