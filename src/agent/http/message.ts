/** Parses the head of an HTTP/1.1 request and writes the response: just enough HTTP for one GET per connection. */

import { withoutBlanks } from "../../model/values.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type ReadRequest =
  | { readonly kind: "request"; readonly method: string; readonly url: URL }
  /** The end of the head has not arrived yet. */
  | { readonly kind: "incomplete" }
  | { readonly kind: "invalid"; readonly status: 400 | 431 | 505; readonly why: string };

/** Limit of a head; a scraper sends some 300 bytes. */
export const HEAD_MAX_BYTES = 8 * 1024;

const LINE = /^([!#$%&'*+.^_`|~\w-]+) (\S+) (HTTP\/\d\.\d)$/;
/** The value is trimmed afterwards. */
const HEADER = /^([!#$%&'*+.^_`|~\w-]+):([^\0\r\n]*)$/;
/** RFC 3986: a name or an address, and a port. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[\w\-.~%!$&'()*+,;=]*)(?::\d{0,5})?$/;

/** `head`: everything received so far, one character per byte. */
export function readRequest(head: string): ReadRequest {
  const end = /\r?\n\r?\n/.exec(head);
  if (end === null || end.index > HEAD_MAX_BYTES) {
    if (head.length <= HEAD_MAX_BYTES) return { kind: "incomplete" };
    return { kind: "invalid", status: 431, why: `the head exceeds ${HEAD_MAX_BYTES} bytes` };
  }
  const [first = "", ...lines] = head.slice(0, end.index).split(/\r?\n/);
  const [, method, target, version] = LINE.exec(first) ?? [];
  if (method === undefined || target === undefined || version === undefined)
    return invalid("invalid request line");
  if (!version.startsWith("HTTP/1."))
    return { kind: "invalid", status: 505, why: `unsupported version ${version}` };
  const hosts: string[] = [];
  for (const line of lines) {
    const [, name, value] = HEADER.exec(line) ?? [];
    if (name === undefined || value === undefined) return invalid("invalid header line");
    if (name.toLowerCase() === "host") hosts.push(withoutBlanks(value));
  }
  const [host] = hosts;
  if (hosts.length > 1 || (host === undefined && version !== "HTTP/1.0"))
    return invalid("expected one Host header");
  if (host !== undefined && !HOST.test(host)) return invalid("invalid Host header");
  const url = urlOf(target);
  return url === null ? invalid("invalid request target") : { kind: "request", method, url };
}

const invalid = (why: string): ReadRequest => ({ kind: "invalid", status: 400, why });

/** The host does not matter, only path and query. */
function urlOf(target: string): URL | null {
  const text = target.startsWith("/") ? `http://crigc${target}` : target;
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return null;
  return new URL(text);
}

export function answerText(answer: Answer, method: string): string {
  const { status, headers, body } = answer;
  const lines = Object.entries({
    ...headers,
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  const reason = REASONS[status] ?? "";
  const head = `HTTP/1.1 ${status} ${reason}\r\n${lines.join("")}\r\n`;
  return method === "HEAD" ? head : head + body;
}

const REASONS: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
  505: "HTTP Version Not Supported",
};
