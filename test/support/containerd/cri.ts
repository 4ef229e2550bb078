// A small CRI client for tests: makes pods on a real runtime and reads back what is there.

import { resolve } from "node:path";

import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

/** An answer of CRI, with the field names of its proto: states as names, figures and times as text. */
// oxlint-disable-next-line typescript/no-explicit-any
export type Answer = any;

export interface CriClient {
  readonly call: (method: string, request: object, deadlineMs?: number) => Promise<Answer>;
  readonly close: () => void;
}

const definition = loadSync(resolve(import.meta.dir, "../../../proto/runtime-v1.proto"), {
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
});

export function connectCri(socket: string): CriClient {
  const client = new grpc.Client(`unix://${socket}`, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": 16 * 1024 * 1024,
    // A runtime that restarts is asked again soon, not after grpc's growing pauses.
    "grpc.max_reconnect_backoff_ms": 200,
    "grpc.initial_reconnect_backoff_ms": 50,
  });
  const call: CriClient["call"] = (name, request, deadlineMs = 60_000) => {
    const { path, requestSerialize, responseDeserialize } = methodOf(name);
    const options = { deadline: Date.now() + deadlineMs };
    const { promise, resolve: answered, reject } = Promise.withResolvers<Answer>();
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      options,
      (error, answer) =>
        error
          ? reject(new Error(`${path} failed: ${error.message}`, { cause: error }))
          : answered(answer),
    );
    return promise;
  };
  return { call, close: () => client.close() };
}

function methodOf(name: string): grpc.MethodDefinition<object, object> {
  for (const service of ["RuntimeService", "ImageService"]) {
    const methods = definition[`runtime.v1.${service}`] as grpc.ServiceDefinition;
    const method = methods[name];
    if (method !== undefined) return method;
  }
  throw new Error(`the proto declares no method ${name}`);
}
