// Which runtime crigc uses, and what doctor reports if the choice is not clear.

import { expect, test } from "bun:test";

import { socketCheck } from "../../../src/cli/checks/machine.ts";
import type { SocketFact } from "../../../src/cli/openers.ts";

const answering = (endpoint: string, name = "containerd"): SocketFact => ({
  endpoint,
  answer: { kind: "runtime", name, version: "1.7.24" },
});

const silent = (endpoint: string): SocketFact => ({
  endpoint,
  answer: {
    kind: "error",
    message: `${endpoint} permission denied; run as root`,
  },
});

const A = "unix:///run/a.sock";
const B = "unix:///run/b.sock";

test.each<[string, readonly SocketFact[], string | null, string, string]>([
  ["a single socket that answers", [answering(A)], null, "ok", `${A} answers (containerd 1.7.24)`],
  [
    "two sockets of which one answers",
    [silent(A), answering(B)],
    null,
    "ok",
    `${B} answers (containerd 1.7.24)`,
  ],
  [
    "two sockets that answer",
    [answering(A), answering(B, "cri-o")],
    null,
    "failed",
    `several runtimes answer, so run and gc refuse to run: ${A} answers (containerd 1.7.24) and ${B} answers (cri-o 1.7.24)`,
  ],
  ["no socket", [], null, "failed", "none of the known sockets exists"],
  [
    "a socket without permission",
    [silent(A)],
    null,
    "failed",
    `${A} permission denied; run as root`,
  ],
  [
    "the configured socket",
    [answering(A)],
    A,
    "ok",
    `${A} answers (containerd 1.7.24), as configured`,
  ],
  [
    "another socket that answers besides the configured one",
    [answering(A), answering(B)],
    A,
    "ok",
    `${A} answers (containerd 1.7.24), as configured; also ${B} answers (containerd 1.7.24)`,
  ],
  [
    "another socket that answers instead of the configured one",
    [silent(A), answering(B)],
    A,
    "failed",
    `${A} permission denied; run as root`,
  ],
])("doctor's check of the sockets: %s", (_what, facts, named, result, message) => {
  expect(socketCheck(facts, named)).toMatchObject({ result, message });
});
