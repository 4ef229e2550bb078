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

const protoFile = resolve(import.meta.dir, "../fake-runtime/cri.proto");
const maxMessageBytes = 16 * 1024 * 1024;

export function connectCri(socket: string): CriClient {
  const definition = loadSync(protoFile, {
    keepCase: true,
    longs: String,
    enums: String,
    defaults: true,
  });
  const client = new grpc.Client(`unix://${socket}`, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": maxMessageBytes,
    // A runtime that restarts is asked again soon, not after grpc's growing pauses.
    "grpc.max_reconnect_backoff_ms": 200,
    "grpc.initial_reconnect_backoff_ms": 50,
  });
  return {
    call: (method, request, deadlineMs = 60_000) =>
      callUnary(client, findMethod(definition, method), { request, deadlineMs }),
    close: () => client.close(),
  };
}

type Method = grpc.MethodDefinition<object, object>;

function findMethod(definition: ReturnType<typeof loadSync>, name: string): Method {
  for (const service of ["runtime.v1.RuntimeService", "runtime.v1.ImageService"]) {
    const methods = definition[service] as Readonly<Record<string, Method>> | undefined;
    const method = methods?.[name];
    if (method !== undefined) return method;
  }
  throw new Error(`cri.proto declares no method ${name}`);
}

function callUnary(
  client: grpc.Client,
  method: Method,
  { request, deadlineMs }: { readonly request: object; readonly deadlineMs: number },
): Promise<Answer> {
  return new Promise((fulfil, reject) => {
    client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      { deadline: Date.now() + deadlineMs },
      (error, answer) => {
        if (error) reject(new Error(`${method.path} failed: ${error.message}`, { cause: error }));
        else fulfil(answer);
      },
    );
  });
}
