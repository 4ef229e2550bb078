// A response counts only if it is complete and its status is OK; broken connections are replaced.
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import {
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer as createSocketServer, type Server } from "node:net";
import { join } from "node:path";

import { codeName, detailsOf } from "../../src/cri/errors.ts";
import { disconnect, exchange } from "../../src/cri/transport.ts";
import { scratch } from "../support/scratch.ts";

// gRPC is spoken by the library; these are responses that a server of the library would not send.
type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

const directory = scratch();
const socket = join(directory, "cri.sock");
const endpoint = `unix://${socket}`;
const sessions = new Set<ServerHttp2Session>();
let answer: Answer = () => undefined;
let requests: { readonly headers: IncomingHttpHeaders; readonly bytes: Buffer }[] = [];

const listening = (on: Pick<Server, "listen">, path: string): Promise<void> =>
  new Promise((resolve) => {
    on.listen(path, resolve);
  });

const server = createServer();
server.on("session", (session) => sessions.add(session));
server.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
  const pieces: Buffer[] = [];
  stream.on("error", () => undefined);
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  stream.on("end", () => {
    requests.push({ headers, bytes: Buffer.concat(pieces) });
    answer(stream, headers);
  });
});
await listening(server, socket);
beforeEach(() => {
  disconnect(endpoint);
  requests = [];
});
afterAll(() => {
  disconnect(endpoint);
  for (const session of sessions) session.destroy();
  server.close();
});

const framed = (text: string): Buffer => {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(text.length, 1);
  return Buffer.concat([prefix, Buffer.from(text)]);
};

/** With these bytes as its data, piece by piece, and these trailers; `null`: it is broken off without any. */
const answering =
  (pieces: readonly Buffer[], trailers: Readonly<Record<string, string>> | null): Answer =>
  (stream) => {
    void (async () => {
      stream.respond(
        { ":status": 200, "content-type": "application/grpc" },
        { waitForTrailers: trailers !== null },
      );
      stream.on("wantTrailers", () => stream.sendTrailers(trailers ?? {}));
      for (const piece of pieces) {
        stream.write(piece);
        await Bun.sleep(2);
      }
      stream.end();
    })();
  };

const ok = { "grpc-status": "0" };

interface Outcome {
  readonly messages: readonly string[];
  /** Code and details; `null` for success. */
  readonly error: readonly [code: string, details: string] | null;
}

const ask = { request: Buffer.from("ask"), signal: undefined };

async function call({ to = endpoint, timeoutMs = 5000, isStream = false } = {}): Promise<Outcome> {
  const messages: string[] = [];
  const onMessage = (bytes: Buffer): unknown => messages.push(bytes.toString());
  try {
    await exchange(to, { path: "/a.B/C", isStream }, { ...ask, timeoutMs, onMessage });
    return { messages, error: null };
  } catch (thrown) {
    return { messages, error: [codeName(thrown), detailsOf(thrown)] };
  }
}

describe("a call", () => {
  test("sends its request uncompressed, with the timeout", async () => {
    answer = answering([framed("yes")], ok);
    expect(await call({ timeoutMs: 1500 })).toEqual({ messages: ["yes"], error: null });
    expect(requests).toHaveLength(1);
    expect(requests[0]?.bytes).toEqual(framed("ask"));
    const {
      ":path": path,
      "grpc-timeout": timeout,
      "grpc-encoding": encoding,
    } = requests[0]?.headers ?? {};
    expect([path, encoding]).toEqual(["/a.B/C", undefined]);
    expect(Number.parseInt(String(timeout), 10)).toBeWithin(1000, 1501);
  });

  test.each([100_000_000, 1e15])(
    "with a timeout of %d ms waits for its response",
    async (timeoutMs) => {
      answer = answering([framed("yes")], ok);
      expect(await call({ timeoutMs })).toEqual({ messages: ["yes"], error: null });
    },
  );

  test("is cancelled with the error of the receiver if that throws", async () => {
    answer = answering([framed("one"), framed("two")], ok);
    const fault = new Error("unreadable");
    const onMessage = (): void => {
      throw fault;
    };
    const method = { path: "/a.B/C", isStream: true };
    const reading = exchange(endpoint, method, { ...ask, timeoutMs: 5000, onMessage });
    expect(await reading.catch((thrown: unknown) => thrown)).toBe(fault);
  });
});

describe("a response is rejected that", () => {
  test.each<[string, Answer, string, RegExp]>([
    [
      "ends within a message",
      answering([framed("whole").subarray(0, 7)], ok),
      "INTERNAL",
      /The response ends within a message/,
    ],
    [
      "ends without a status",
      answering([framed("whole")], null),
      "UNAVAILABLE",
      /without a status/,
    ],
    [
      "is longer than a message may be",
      answering([Buffer.from([0, 16, 0, 0, 1])], ok),
      "RESOURCE_EXHAUSTED",
      /larger than max \(268435457 vs 268435456\)$/,
    ],
  ])("%s", async (_, given, code, message) => {
    answer = given;
    const { error } = await call();
    expect(error).toEqual([code, expect.stringMatching(message)]);
  });

  test.each([0, 1, 4, 5, 6])("ends %d bytes into a further message of a stream", async (length) => {
    answer = answering([framed("one"), framed("two").subarray(0, length)], ok);
    const error = length === 0 ? null : ["INTERNAL", "The response ends within a message"];
    expect(await call({ isStream: true })).toEqual({ messages: ["one"], error } as Outcome);
  });
});

describe("the connection", () => {
  test("is one connection for all who use the socket, and is made again after it was closed", async () => {
    answer = answering([framed("yes")], ok);
    const before = sessions.size;
    await Promise.all([call(), call()]);
    expect(sessions.size).toBe(before + 1);
    disconnect(endpoint);
    disconnect(endpoint);
    await call();
    expect(sessions.size).toBe(before + 2);
  });

  test("says that the connection broke to every call on it, and makes another one", async () => {
    answer = () => undefined;
    const calls = [call(), call()];
    while (requests.length < 2) await Bun.sleep(2);
    [...sessions].at(-1)?.destroy();
    for (const { error } of await Promise.all(calls)) expect(error?.[0]).toBe("UNAVAILABLE");
    answer = answering([framed("again")], ok);
    expect((await call()).messages).toEqual(["again"]);
  });

  test("is tried again at once after it failed, however often it failed before", async () => {
    const path = join(directory, "late.sock");
    const to = `unix://${path}`;
    for (let attempt = 0; attempt < 5; attempt += 1)
      expect((await call({ to })).error).toEqual([
        "UNAVAILABLE",
        expect.stringContaining("ENOENT"),
      ]);
    const late = createServer();
    late.on("stream", (stream: ServerHttp2Stream) => answering([framed("here")], ok)(stream, {}));
    await listening(late, path);
    expect(await call({ to })).toEqual({ messages: ["here"], error: null });
    disconnect(to);
    late.close();
  });

  test("to a peer that says nothing is made once, however often it is opened", async () => {
    const path = join(directory, "silent.sock");
    let peers = 0;
    const silent = createSocketServer((peer) => {
      peers += 1;
      peer.on("error", () => undefined);
      peer.on("data", () => undefined);
    });
    await listening(silent, path);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      disconnect(`unix://${path}`);
      expect((await call({ to: `unix://${path}`, timeoutMs: 50 })).error?.[0]).toBe(
        "DEADLINE_EXCEEDED",
      );
    }
    expect(peers).toBe(1);
    silent.close();
  });
});
