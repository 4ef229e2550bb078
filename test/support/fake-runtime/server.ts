// A container runtime for tests: a real gRPC server on a real unix socket, over a node in memory.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

import type { NodeDescription } from "./describe.ts";
import { type CodeName, type Fault, Faults, type FaultScope, type Hook } from "./faults.ts";
import { type FakeSpeaker, listStreams, Refusal, unaryMethods } from "./methods.ts";
import { FakeNode } from "./node.ts";
import type { StoreOptions } from "./store.ts";
import { containerd17, type Traits } from "./traits.ts";

export interface FakeRuntimeOptions {
  /** An empty node by default. */
  readonly node?: NodeDescription;
  /** Where it listens; in a directory of its own by default. */
  readonly socket?: string;
  readonly store?: StoreOptions;
  /** Where it differs from containerd 1.7. */
  readonly traits?: Partial<Traits>;
  readonly exec?: FakeSpeaker["exec"];
}

/** A call, in the order of arrival. */
export interface ReceivedCall {
  readonly method: string;
  readonly request: object;
  /** By `performance.now`. */
  readonly atMs: number;
  /** `null` until it has been answered. */
  code: CodeName | null;
}

export interface FakeRuntime {
  /** `unix:///…`. */
  readonly endpoint: string;
  readonly socket: string;
  readonly node: FakeNode;
  readonly calls: readonly ReceivedCall[];
  callsOf(method: string): readonly ReceivedCall[];
  /** What it was told to remove, in order. */
  removedImages(): readonly string[];
  /** Plants a fault in every call of a method ("*": of all); gives back what lifts it. */
  fail(method: string, fault: Fault, scope?: FaultScope): () => void;
  /** Runs before the runtime looks at a call; gives back what takes the hook away. */
  before(method: string, hook: Hook): () => void;
  /** Breaks every connection and stops listening. The node stays as it is. */
  crash(): Promise<void>;
  /** Listens again. */
  recover(): Promise<void>;
  stop(): Promise<void>;
}

export async function startFakeRuntime(options: FakeRuntimeOptions = {}): Promise<FakeRuntime> {
  const home = options.socket === undefined ? mkdtempSync(join(tmpdir(), "fake-cri-")) : null;
  const socket = options.socket ?? join(home ?? "", "cri.sock");
  const faults = new Faults();
  const calls: ReceivedCall[] = [];
  const speaker: FakeSpeaker = {
    node: new FakeNode(options.node ?? {}, options.store),
    traits: { ...containerd17, ...options.traits },
    exec: options.exec ?? (() => 0),
  };
  let server: Server | null = null;
  const crash = async (): Promise<void> => {
    server?.forceShutdown();
    server = null;
    rmSync(socket, { force: true });
  };
  const recover = async (): Promise<void> => {
    const drop = async (): Promise<void> => {
      await crash();
      await recover();
    };
    server ??= await listen(socket, { speaker, faults, calls, drop });
  };
  await recover();
  return {
    endpoint: `unix://${socket}`,
    socket,
    node: speaker.node,
    calls,
    callsOf: (method) => calls.filter((call) => call.method === method),
    removedImages: () =>
      calls
        .filter(({ method }) => method === "RemoveImage")
        .map(({ request }) => (request as { image: { image: string } }).image.image),
    fail: (method, fault, scope) => faults.plant(method, fault, scope),
    before: (method, hook) => faults.before(method, hook),
    crash,
    recover,
    stop: async () => {
      await crash();
      speaker.node.store.close();
      if (home !== null) rmSync(home, { recursive: true, force: true });
    },
  };
}

interface Context {
  readonly speaker: FakeSpeaker;
  readonly faults: Faults;
  readonly calls: ReceivedCall[];
  readonly drop: () => Promise<void>;
}

async function listen(socket: string, context: Context): Promise<Server> {
  const server = new Server({ "grpc.max_receive_message_length": 64 * 1024 * 1024 });
  for (const name of serviceNames) {
    const declared = definition[name] as ServiceDefinition;
    server.addService(servedRaw(declared), implementation(declared, context));
  }
  rmSync(socket, { force: true });
  await new Promise<void>((fulfil, reject) => {
    server.bindAsync(`unix://${socket}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? fulfil() : reject(error),
    );
  });
  return server;
}

const serviceNames = ["runtime.v1.RuntimeService", "runtime.v1.ImageService"];

const definition = loadSync(join(import.meta.dir, "../../../proto/runtime-v1.proto"), {
  keepCase: true,
  longs: String,
  defaults: true,
});

/** Handlers give finished bytes, so that their size can be judged and that they can be garbage. */
function servedRaw(declared: ServiceDefinition): ServiceDefinition {
  const entries = Object.entries(declared).map(([name, method]) => [
    name,
    { ...method, responseSerialize: (bytes: Buffer) => bytes },
  ]);
  return Object.fromEntries(entries) as ServiceDefinition;
}

type Encode = (answer: object) => Buffer;

function implementation(
  declared: ServiceDefinition,
  context: Context,
): UntypedServiceImplementation {
  const handlers = Object.entries(declared).map(([name, method]) => {
    const encode: Encode = (answer) => method.responseSerialize(answer);
    return [
      name,
      method.responseStream ? stream(name, encode, context) : unary(name, encode, context),
    ];
  });
  return Object.fromEntries(handlers) as UntypedServiceImplementation;
}

const garbage = Buffer.from([0x0a, 0xff, 0xff, 0xff, 0x0f, 0x07]);

type Reply = (error: object | null, bytes?: Buffer) => void;

function unary(method: string, encode: Encode, context: Context) {
  return (call: ServerUnaryCall<object, Buffer>, reply: Reply): Promise<void> =>
    serve(method, call.request, context, {
      refuse: (refusal) => reply(refusal),
      answer: async (fault) => {
        const handle = unaryMethods[method];
        if (handle === undefined) throw new Refusal("UNIMPLEMENTED", `unknown method ${method}`);
        const answer = await handle(context.speaker, call.request);
        if (fault?.kind === "drop") return context.drop();
        const edited = fault?.kind === "edit" ? fault.edit(answer) : answer;
        const bytes = fault?.kind === "garbage" ? garbage : limited(encode(edited), context);
        return () => reply(null, bytes);
      },
    });
}

function stream(method: string, encode: Encode, context: Context) {
  return (call: ServerWritableStream<object, Buffer>): Promise<void> =>
    serve(method, call.request, context, {
      refuse: (refusal) => call.emit("error", refusal),
      answer: async (fault) => {
        if (fault?.kind === "drop") return context.drop();
        if (fault?.kind === "garbage") call.write(garbage);
        const list = listStreams[method]?.(context.speaker);
        if (list?.has !== true) throw new Refusal("UNIMPLEMENTED", `unknown method ${method}`);
        const size = context.speaker.traits.batchSize;
        for (let at = 0; at < list.items.length; at += size) {
          const batch = { [list.field]: list.items.slice(at, at + size) };
          call.write(limited(encode(fault?.kind === "edit" ? fault.edit(batch) : batch), context));
        }
        return () => call.end();
      },
    });
}

interface Answering {
  readonly refuse: (refusal: { readonly code: number; readonly details: string }) => unknown;
  /** What ends a call that was answered in full; nothing where it was not. */
  readonly answer: (fault: Fault | undefined) => Promise<(() => unknown) | void>;
}

/** Hooks, then faults, then the runtime; what it refuses becomes an error of gRPC. */
async function serve(
  method: string,
  request: object,
  { faults, calls }: Context,
  { refuse, answer }: Answering,
): Promise<void> {
  const received: ReceivedCall = { method, request, atMs: performance.now(), code: null };
  calls.push(received);
  try {
    await faults.runHooks(method, request);
    const fault = faults.take(method, request);
    if (fault?.kind === "hang") return;
    if (fault?.kind === "delay") await Bun.sleep(fault.ms);
    if (fault?.kind === "error")
      throw new Refusal(fault.code, fault.message ?? `${method} was made to fail`);
    const end = await answer(fault);
    if (end === undefined) return;
    received.code = "OK";
    end();
  } catch (thrown) {
    received.code = thrown instanceof Refusal ? thrown.code : "UNKNOWN";
    const details = thrown instanceof Error ? thrown.message : String(thrown);
    refuse({ code: status[received.code], details });
  }
}

function limited(bytes: Buffer, { speaker }: Context): Buffer {
  const limit = speaker.traits.messageLimitBytes;
  if (bytes.length <= limit) return bytes;
  throw new Refusal(
    "RESOURCE_EXHAUSTED",
    `grpc: trying to send message larger than max (${bytes.length} vs. ${limit})`,
  );
}
