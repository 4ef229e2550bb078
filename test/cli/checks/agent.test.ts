// Whether an agent runs, by the document that it gives.

import { expect, test } from "bun:test";

import { agentCheck } from "../../../src/cli/checks/agent.ts";

const check = (document: object | string) =>
  agentCheck(
    {
      kind: "answered",
      text: typeof document === "string" ? document : JSON.stringify(document),
    },
    "1.2.3",
  );

const well = {
  apiVersion: "crigc/v1",
  kind: "Status",
  pid: 7,
  version: "1.2.3",
  dryRun: false,
  runtimeError: null,
  configurationError: null,
  ledgerError: null,
};

test.each<[string, object | string, string, string]>([
  ["that is well", well, "ok", "running (process 7, version 1.2.3)"],
  ["that runs dry", { ...well, dryRun: true }, "ok", ", as a dry run"],
  [
    "whose runtime is away",
    { ...well, runtimeError: "no socket" },
    "failed",
    "the runtime does not answer: no socket",
  ],
  [
    "whose configuration was refused",
    { ...well, configurationError: "crigc.yaml:3: x" },
    "failed",
    "a changed configuration was rejected: crigc.yaml:3: x",
  ],
  ["of another version", { ...well, version: "1.2.2" }, "warning", "this crigc is version 1.2.3"],
  ["that is none: no JSON", "hello", "failed", "another program answers"],
  ["that is none: another document", { kind: "Plan" }, "failed", "another program answers"],
  ["that is none: null", "null", "failed", "another program answers"],
])("an agent %s", (_what, document, result, message) => {
  expect(check(document)).toMatchObject({ result, message: expect.stringContaining(message) });
});

test("a missing agent is only a warning, because a timer may run gc", () => {
  expect(agentCheck({ kind: "none", why: "socket not found" }, "1.2.3")).toMatchObject({
    result: "warning",
    message: "no agent answers; only crigc gc removes anything (socket not found)",
  });
});
