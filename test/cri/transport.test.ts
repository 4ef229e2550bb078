// What comes over HTTP/2 is an answer only when all of it came, with a status that says so.
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import {
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer as createSocketServer } from "node:net";
import { join } from "node:path";

import { type CallError, codeName } from "../../src/cri/errors.ts";
import { wholeMessages } from "../../src/cri/frames.ts";
import { type Line, openLine } from "../../src/cri/transport.ts";
import { scratch } from "../support/scratch.ts";

type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

const directory = scratch();
const socket = join(directory, "cri.sock");
const endpoint = `unix://${socket}`;
const sessions = new Set<ServerHttp2Session>();
let answer: Answer = () => undefined;
let requests: { readonly headers: IncomingHttpHeaders; readonly bytes: Buffer }[] = [];

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
await new Promise<void>((resolve) => {
  server.listen(socket, resolve);
});
let line: Line = openLine(endpoint);
beforeEach(() => {
  line.close();
  line = openLine(endpoint);
  requests = [];
});
afterAll(() => {
  line.close();
  for (const session of sessions) session.destroy();
  server.close();
});

const framed = (text: string, flag = 0): Buffer => {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
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

async function call(
  options: { readonly deadlineMs?: number | null; readonly signal?: AbortSignal } = {},
): Promise<{ readonly messages: readonly string[]; readonly error: CallError | null }> {
  const messages: string[] = [];
  const error = await line
    .call({
      path: "/a.B/C",
      request: Buffer.from("ask"),
      deadlineMs: options.deadlineMs === undefined ? 5000 : options.deadlineMs,
      signal: options.signal,
      onPiece: wholeMessages((bytes) => messages.push(bytes.toString())),
    })
    .then(
      () => null,
      (thrown: CallError) => thrown,
    );
  return { messages, error };
}

describe("a call", () => {
  test("sends its request as gRPC has it, with the deadline", async () => {
    answer = answering([framed("yes")], ok);
    expect(await call({ deadlineMs: 1500 })).toEqual({ messages: ["yes"], error: null });
    expect(requests).toHaveLength(1);
    expect(requests[0]?.bytes).toEqual(framed("ask"));
    expect(requests[0]?.headers).toMatchObject({
      ":method": "POST",
      ":path": "/a.B/C",
      ":authority": "localhost",
      "content-type": "application/grpc",
      te: "trailers",
      "grpc-timeout": "1500m",
    });
  });

  test.each([
    [99_999_999, "99999999m"],
    [100_000_000, "100000S"],
    // Beyond what a timer counts to, and beyond what gRPC has digits for.
    [30 * 86_400_000, "2592000S"],
    [1e15, "99999999S"],
  ])("with a deadline of %d ms waits for its answer and names %s", async (deadlineMs, named) => {
    answer = answering([framed("yes")], { "grpc-status": "0" });
    expect(await call({ deadlineMs })).toEqual({ messages: ["yes"], error: null });
    expect(requests[0]?.headers["grpc-timeout"]).toBe(named);
  });

  test("without a deadline names none", async () => {
    answer = answering([framed("yes")], ok);
    await call({ deadlineMs: null });
    expect(requests[0]?.headers["grpc-timeout"]).toBeUndefined();
  });

  test("gives the memory of a long answer back while it arrives", async () => {
    answer = answering([framed("x".repeat(40_000))], ok);
    const held: ArrayBufferLike[] = [];
    const long: number[] = [];
    await line.call({
      path: "/a.B/C",
      request: Buffer.from("ask"),
      deadlineMs: 5000,
      signal: undefined,
      onPiece: ({ buffer }) => {
        held.push(buffer);
        if (buffer.byteLength >= 4096) long.push(buffer.byteLength);
      },
    });
    expect(long.length).toBeGreaterThan(1);
    expect(held.every(({ byteLength }) => byteLength < 4096)).toBe(true);
  });

  test("puts messages together, however they are cut", async () => {
    const bytes = Buffer.concat([framed("one"), framed(""), framed("x".repeat(40_000))]);
    for (const size of [1, 3, 5, 9000]) {
      const cut = size === 1 ? bytes.subarray(0, 20) : bytes;
      const pieces = Array.from({ length: Math.ceil(cut.length / size) }, (_, index) =>
        cut.subarray(index * size, (index + 1) * size),
      ).slice(0, 12);
      const rest = bytes.subarray(pieces.reduce((sum, piece) => sum + piece.length, 0));
      answer = answering([...pieces, rest], ok);
      const { messages, error } = await call();
      expect(error).toBeNull();
      expect(messages).toEqual(["one", "", "x".repeat(40_000)]);
    }
  });

  test("reads answers that are longer than its window", async () => {
    const long = "y".repeat(5_000_000);
    answer = answering([framed(long)], ok);
    const { messages, error } = await call();
    expect(error).toBeNull();
    expect(messages[0]?.length).toBe(long.length);
  });
});

describe("an answer is refused that", () => {
  test.each<[string, Answer, string, RegExp]>([
    [
      "ends within a message",
      answering([framed("whole").subarray(0, 7)], ok),
      "INTERNAL",
      /truncated/,
    ],
    [
      "ends within a prefix",
      answering([framed("whole").subarray(0, 3)], ok),
      "INTERNAL",
      /truncated/,
    ],
    [
      "ends without a status",
      answering([framed("whole")], null),
      "INTERNAL",
      /without a status, with code 0/,
    ],
    ["is compressed", answering([framed("zip", 1)], ok), "INTERNAL", /compressed/],
    [
      "is longer than a message may be",
      answering([Buffer.from([0, 1, 0, 0, 1])], ok),
      "RESOURCE_EXHAUSTED",
      /^larger than max \(16777217 vs\. 16777216\)$/,
    ],
    [
      "has a status beside its headers alone",
      (stream) => {
        const status = { "grpc-status": "5", "grpc-message": "no %22a%22%C3%A4 %" };
        stream.respond({ ":status": 200, ...status }, { endStream: true });
      },
      "NOT_FOUND",
      /^no %22a%22%C3%A4 %$/,
    ],
    [
      "has messages after its status",
      (stream) => {
        stream.respond({ ":status": 200, ...ok });
        stream.end(framed("late"));
      },
      "INTERNAL",
      /messages after its status/,
    ],
    [
      "is OK under another HTTP status",
      (stream) => stream.respond({ ":status": 502, ...ok }, { endStream: true }),
      "UNAVAILABLE",
      /HTTP status 502/,
    ],
    [
      "says why it failed",
      answering([], { "grpc-status": "9", "grpc-message": "in use by %22a%22" }),
      "FAILED_PRECONDITION",
      /^in use by "a"$/,
    ],
    ["has a status that is no number", answering([], { "grpc-status": "x" }), "UNKNOWN", /^$/],
    [
      "is a page of something else",
      (stream) => {
        stream.respond({ ":status": 503, "content-type": "text/html" });
        stream.end("<html>busy</html>");
      },
      "UNAVAILABLE",
      /HTTP status 503/,
    ],
  ])("%s", async (_, given, code, message) => {
    answer = given;
    const { error } = await call();
    expect(error?.name).toBe("CallError");
    expect(codeName(error)).toBe(code);
    expect(error?.message).toMatch(message);
  });

  test.each([
    [7, "UNAVAILABLE"],
    [8, "CANCELLED"],
    [11, "RESOURCE_EXHAUSTED"],
    [2, "INTERNAL"],
  ] as const)("is reset, with the code %d", async (reset, code) => {
    const path = join(directory, `reset-${reset}.sock`);
    // An empty SETTINGS, and to whatever comes RST_STREAM of the first stream.
    const resetting = createSocketServer((peer) => {
      peer.write(Buffer.from("000000040000000000", "hex"));
      peer.on("data", (bytes: Buffer) => {
        if (bytes.includes("ask"))
          peer.write(Buffer.from([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, reset]));
      });
    });
    await new Promise<void>((resolve) => {
      resetting.listen(path, resolve);
    });
    line.close();
    line = openLine(`unix://${path}`);
    const { error } = await call();
    expect(codeName(error)).toBe(code);
    expect(error?.message).toContain(`without a status, with code ${reset}`);
    line.close();
    resetting.close();
  });
});

describe("the line", () => {
  test("is one connection for all who use the socket, and outlives each of them", async () => {
    answer = answering([framed("yes")], ok);
    const before = sessions.size;
    const other = openLine(endpoint);
    await call();
    other.close();
    other.close();
    await call();
    expect(sessions.size).toBe(before + 1);
  });

  test("takes new calls elsewhere once the runtime says that it goes, and ends those under way", async () => {
    const slow = Promise.withResolvers<void>();
    answer = (stream) => {
      void slow.promise.then(() => answering([framed("late")], ok)(stream, {}));
    };
    const early = call();
    while (requests.length === 0) await Bun.sleep(2);
    const session = [...sessions].at(-1);
    session?.goaway(0);
    await Bun.sleep(20);
    answer = answering([framed("new")], ok);
    const before = sessions.size;
    expect(await call()).toEqual({ messages: ["new"], error: null });
    expect(sessions.size).toBe(before + 1);
    slow.resolve();
    expect(await early).toEqual({ messages: ["late"], error: null });
  });

  test("says that the connection broke to every call on it, and makes another one", async () => {
    answer = () => undefined;
    const calls = [call(), call()];
    while (requests.length < 2) await Bun.sleep(2);
    [...sessions].at(-1)?.destroy();
    for (const { error } of await Promise.all(calls)) expect(codeName(error)).toBe("UNAVAILABLE");
    answer = answering([framed("again")], ok);
    expect((await call()).messages).toEqual(["again"]);
  });

  test("gives up a call in time, and goes on with others", async () => {
    answer = () => undefined;
    const abort = new AbortController();
    const given = call({ signal: abort.signal });
    expect(codeName((await call({ deadlineMs: 30 })).error)).toBe("DEADLINE_EXCEEDED");
    abort.abort();
    expect(codeName((await given).error)).toBe("CANCELLED");
    answer = answering([framed("next")], ok);
    expect((await call()).messages).toEqual(["next"]);
  });

  test("leaves no connection where nothing answered before it was closed", async () => {
    const path = join(directory, "silent.sock");
    const peers: unknown[] = [];
    const closed = Promise.withResolvers<void>();
    const silent = createSocketServer((peer) => {
      peers.push(peer);
      peer.on("error", () => undefined);
      peer.on("data", () => undefined);
      peer.on("close", () => closed.resolve());
    });
    await new Promise<void>((resolve) => {
      silent.listen(path, resolve);
    });
    line.close();
    line = openLine(`unix://${path}`);
    expect(codeName((await call({ deadlineMs: 50 })).error)).toBe("DEADLINE_EXCEEDED");
    expect(peers).toHaveLength(1);
    line.close();
    await closed.promise;
    silent.close();
  });
});
