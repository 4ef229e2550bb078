// The least that `plan` can cost: the same calls with the same two libraries, decoded, and one line of output.
//
// `floor.ts SOCKET` makes the calls of a plan with a ledger; `floor.ts SOCKET each` those of a plan without one, which
// looks up every sandbox.

import { Client, credentials } from "@grpc/grpc-js";
import { fromJSON } from "@grpc/proto-loader";

import { readSchema } from "../../src/cri/schema.ts" with { type: "macro" };

const { messages, methods } = readSchema();
const [socket = "", each] = process.argv.slice(2);
const library = fromJSON({ nested: messages }, { keepCase: true, longs: BigInt, defaults: true });
const client = new Client(`unix://${socket}`, credentials.createInsecure(), {
  "grpc.default_authority": "localhost",
  "grpc.max_receive_message_length": 16 * 1024 * 1024,
});

interface Codec {
  readonly serialize: (fields: object) => Buffer;
  readonly deserialize: (bytes: Buffer) => object;
}

const codecOf = (name: string): Codec => library[name] as unknown as Codec;

async function call(name: string, request: object = {}): Promise<object> {
  const method = methods[name];
  if (method === undefined) throw new Error(`the proto has no method ${name}`);
  const { serialize } = codecOf(method.requestType);
  const { deserialize } = codecOf(method.responseType);
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  if (method.responseStream) {
    const stream = client.makeServerStreamRequest(method.path, serialize, deserialize, request);
    stream.on("data", () => undefined);
    // The runtime does not stream.
    stream.on("error", resolve);
    stream.on("end", () => resolve({}));
  } else
    client.makeUnaryRequest(method.path, serialize, deserialize, request, (error, answer) =>
      answer === undefined ? reject(error ?? new Error("no answer")) : resolve(answer),
    );
  return promise;
}

await call("Version");
await Promise.all([call("Version"), call("Status", { verbose: true })]);
await Promise.all([call("StreamImages"), call("ImageFsInfo"), call("StreamPodSandboxes")]);
const [, listed] = (await Promise.all([
  call("ListImages"),
  call("ListPodSandbox"),
  call("ListContainers"),
])) as [object, { readonly items: readonly { readonly id: string }[] }, object];

const AT_ONCE = 16;
const waiting = each === undefined ? [].values() : listed.items.values();
const worker = async (): Promise<void> => {
  for (const { id } of waiting)
    await call("PodSandboxStatus", { pod_sandbox_id: id, verbose: true });
};
await Promise.all(Array.from({ length: AT_ONCE }, worker));
console.log(`${listed.items.length} sandboxes`);
process.exit(0);
