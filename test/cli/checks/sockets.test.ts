// Which runtime is meant, and what is said where that is not clear.

import { expect, test } from "bun:test";

import { socketCheck } from "../../../src/cli/checks/sockets.ts";
import type { SocketFact } from "../../../src/cli/openers.ts";

const answering = (endpoint: string, name = "containerd"): SocketFact => ({
  endpoint,
  answer: { kind: "runtime", name, version: "1.7.24" },
});

const silent = (endpoint: string): SocketFact => ({
  endpoint,
  answer: {
    kind: "error",
    error: "permission",
    message: `${endpoint} permission denied; run as root`,
  },
});

const A = "unix:///run/a.sock";
const B = "unix:///run/b.sock";

test.each<[string, readonly SocketFact[], string | null, string, string]>([
  ["the only one that answers", [answering(A)], null, "ok", `${A} answers (containerd 1.7.24)`],
  [
    "the only one of two",
    [silent(A), answering(B)],
    null,
    "ok",
    `${B} answers (containerd 1.7.24)`,
  ],
  [
    "several that answer",
    [answering(A), answering(B, "cri-o")],
    null,
    "failed",
    `several runtimes answer, so run and gc refuse to run: ${A} answers (containerd 1.7.24) and ${B} answers (cri-o 1.7.24)`,
  ],
  ["no socket at all", [], null, "failed", "none of the known sockets exists"],
  [
    "one that may not be opened",
    [silent(A)],
    null,
    "failed",
    `${A} permission denied; run as root`,
  ],
  [
    "the configured one",
    [answering(A)],
    A,
    "ok",
    `${A} answers (containerd 1.7.24), as configured`,
  ],
  [
    "another beside the configured one",
    [answering(A), answering(B)],
    A,
    "ok",
    `${A} answers (containerd 1.7.24), as configured; also ${B} answers (containerd 1.7.24)`,
  ],
  [
    "another instead of the configured one",
    [silent(A), answering(B)],
    A,
    "failed",
    `${A} permission denied; run as root`,
  ],
])("%s", (_what, facts, named, result, message) => {
  expect(socketCheck(facts, named)).toMatchObject({ result, message });
});
