// Whether an agent runs, by the document that it gives.

import { expect, test } from "bun:test";

import { agentCheck } from "../../../src/cli/checks/machine.ts";

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
  ["that is healthy", well, "ok", "running (process 7, version 1.2.3)"],
  ["in a dry run", { ...well, dryRun: true }, "ok", ", as a dry run"],
  [
    "without a runtime",
    { ...well, runtimeError: "no socket" },
    "failed",
    "the runtime does not answer: no socket",
  ],
  [
    "with changed configuration files",
    { ...well, configurationError: "crigc.yaml:3: x" },
    "warning",
    "its configuration files differ from what is in force: crigc.yaml:3: x",
  ],
  ["of another version", { ...well, version: "1.2.2" }, "warning", "this crigc is version 1.2.3"],
  ["that answers text", "hello", "failed", "another program answers"],
  ["that answers another document", { kind: "Plan" }, "failed", "another program answers"],
  ["that answers null", "null", "failed", "another program answers"],
])("an agent %s is checked as expected", (_what, document, result, message) => {
  expect(check(document)).toMatchObject({ result, message: expect.stringContaining(message) });
});

test("a missing agent is only a warning, because a timer may run gc", () => {
  expect(agentCheck({ kind: "none", why: "socket not found" }, "1.2.3")).toMatchObject({
    result: "warning",
    message: "socket not found; without an agent, only crigc gc removes anything",
  });
});
