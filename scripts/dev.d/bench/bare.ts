// The bare cost of calls: made on one connection, with their answers read and thrown away.
//
// `bare.ts SOCKET` reads a JSON list of steps and prints a JSON list of what each took.

import { join } from "node:path";

import { Client, credentials } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

/** Calls of some methods, each once for each ID, so many at once; an empty ID stands for a call without a subject. */
export interface BareStep {
  readonly methods: readonly string[];
  readonly ids: readonly string[];
  readonly atOnce: number;
}

export interface BareCost {
  readonly wallMs: number;
  readonly processorMs: number;
  readonly bytes: number;
}

const [socket = ""] = process.argv.slice(2);
const work = await Bun.stdin.text();
const definition = loadSync(join(import.meta.dir, "../../../proto/runtime-v1.proto"), {
  keepCase: true,
});
const methods = new Map(
  ["runtime.v1.RuntimeService", "runtime.v1.ImageService"].flatMap((name) =>
    Object.entries(definition[name] ?? {}),
  ),
);
const client = new Client(`unix://${socket}`, credentials.createInsecure(), {
  "grpc.max_receive_message_length": 64 * 1024 * 1024,
  "grpc.default_authority": "localhost",
});

const requestFor = (id: string): object =>
  id === "" ? {} : { container_id: id, pod_sandbox_id: id, image: { image: id }, verbose: true };

async function call(name: string, id: string): Promise<number> {
  const method = methods.get(name);
  if (method === undefined) throw new Error(`the proto has no method ${name}`);
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      method.path,
      (fields: object) => method.requestSerialize(fields),
      (bytes: Buffer) => bytes,
      requestFor(id),
      (error, answer) => (error === null ? resolve(answer?.length ?? 0) : reject(error)),
    );
  });
}

async function cost({ methods: names, ids, atOnce }: BareStep): Promise<BareCost> {
  const before = process.cpuUsage();
  const startedAt = performance.now();
  let bytes = 0;
  const waiting = ids.values();
  const worker = async (): Promise<void> => {
    for (const id of waiting)
      for (const name of names) {
        const read = await call(name, id);
        bytes += read;
      }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, ids.length) }, worker));
  const used = process.cpuUsage(before);
  return {
    wallMs: performance.now() - startedAt,
    processorMs: (used.user + used.system) / 1000,
    bytes,
  };
}

const costs: BareCost[] = [];
for (const step of JSON.parse(work) as readonly BareStep[]) costs.push(await cost(step));
console.log(JSON.stringify(costs));
client.close();
