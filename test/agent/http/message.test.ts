import { describe, expect, test } from "bun:test";

import { answerText, HEAD_MAX_BYTES, readRequest } from "../../../src/agent/http/message.ts";

const read = (head: string) => readRequest(`${head}\r\n\r\n`);

describe("a request", () => {
  test.each([
    ["GET /metrics HTTP/1.1\r\nHost: localhost:9419", "/metrics"],
    ["GET /metrics HTTP/1.0", "/metrics"],
    ["GET http://node:9419/healthz?verbose=1 HTTP/1.1\r\nHost: node", "/healthz"],
    ["HEAD //metrics HTTP/1.1\r\nHost: [::1]:9419", "//metrics"],
    ["POST /metrics HTTP/1.1\r\nhOsT:\t\r\nX-Empty:", "/metrics"],
  ])("%j asks for the path %s", (head, path) => {
    const request = read(head);
    expect(request.kind === "request" && request.url.pathname).toBe(path);
  });

  test.each([
    ["GET /metrics HTTP/1.1\r\nHost: a b", "invalid Host header"],
    ["GET /metrics HTTP/1.1\r\nHost: a/b", "invalid Host header"],
    ["GET /metrics HTTP/1.1\r\nHost: a:b", "invalid Host header"],
    ["GET /metrics HTTP/1.1\r\nHost: a\r\nhost: a", "expected one Host header"],
    ["GET /metrics HTTP/1.1", "expected one Host header"],
    ["GET /metrics HTTP/1.1\r\nHost: a\r\n folded", "invalid header line"],
    ["GET /metrics HTTP/1.1\r\nHost : a", "invalid header line"],
    ["GET /metrics", "invalid request line"],
    ["", "invalid request line"],
    ["GET * HTTP/1.1\r\nHost: a", "invalid request target"],
    ["GET http://[/ HTTP/1.1\r\nHost: a", "invalid request target"],
    ["CONNECT a:443 HTTP/1.1\r\nHost: a", "invalid request target"],
    ["GET file:///etc/passwd HTTP/1.1\r\nHost: a", "invalid request target"],
  ])("%j is refused: %s", (head, why) => {
    expect(read(head)).toEqual({ kind: "invalid", status: 400, why });
  });

  test("is parsed in no time, whatever its headers", () => {
    const blanks = " ".repeat(HEAD_MAX_BYTES - 100);
    for (const header of [
      `X:${blanks}\0`,
      `X:${blanks}\rx`,
      `X: x${blanks}\0`,
      `Host:${blanks}a b`,
    ]) {
      const startedAt = process.cpuUsage();
      expect(read(`GET / HTTP/1.1\r\n${header}`)).toMatchObject({ status: 400 });
      expect(process.cpuUsage(startedAt).user).toBeLessThan(100_000);
    }
  });

  test("may have blanks around a header value", () => {
    expect(read("GET / HTTP/1.1\r\nHost:\t a.example:1 \t")).toMatchObject({ kind: "request" });
  });

  test("of another version than HTTP/1 is refused with 505", () => {
    expect(read("PRI * HTTP/2.0")).toMatchObject({ status: 505 });
  });

  test("is incomplete until its header ends, and refused once that is too long", () => {
    expect(readRequest("GET / HTTP/1.1\r\nHost: a\r\n")).toEqual({ kind: "incomplete" });
    const long = `GET / HTTP/1.1\r\nHost: a\r\nX: ${"a".repeat(9000)}`;
    expect(readRequest(long)).toMatchObject({ status: 431 });
    expect(read(long)).toMatchObject({ status: 431 });
  });
});

test("an answer to HEAD has the length of the body and no body", () => {
  const answer = { status: 200, headers: { allow: "GET" }, body: "ä\n" };
  expect(answerText(answer, "HEAD")).toBe(
    "HTTP/1.1 200 OK\r\nallow: GET\r\ncontent-length: 3\r\nconnection: close\r\n\r\n",
  );
  expect(answerText(answer, "GET")).toEndWith("\r\n\r\nä\n");
});
