// The fake runtime as a process of its own: `main.ts --socket PATH --node FILE.json`, until SIGTERM or SIGINT.
//
// The file is a NodeDescription, with `traits` and `faults` beside it where they are wanted. Other flags: `--store DIR`
// (layers become real files), `--release-delay-ms N`, `--calls FILE` (each call as a line of JSON).
import { appendFileSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import type { NodeDescription } from "./describe.ts";
import type { Fault, FaultScope } from "./faults.ts";
import { startFakeRuntime } from "./server.ts";
import type { Traits } from "./traits.ts";

interface NodeFile extends NodeDescription {
  readonly traits?: Partial<Traits>;
  readonly ghosts?: readonly string[];
  readonly faults?: readonly (FaultScope & { readonly method: string; readonly fault: Fault })[];
}

const { values } = parseArgs({
  options: {
    socket: { type: "string" },
    node: { type: "string" },
    store: { type: "string" },
    "release-delay-ms": { type: "string", default: "0" },
    calls: { type: "string" },
  },
});
if (values.socket === undefined || values.node === undefined)
  throw new Error("--socket PATH and --node FILE.json are needed");

const file = JSON.parse(readFileSync(values.node, "utf8")) as NodeFile;
const { traits = {}, ghosts = [], faults = [], ...node } = file;
const runtime = await startFakeRuntime({
  socket: values.socket,
  node,
  traits,
  store: { directory: values.store, releaseDelayMs: Number(values["release-delay-ms"]) },
});
for (const ghost of ghosts) runtime.node.ghosts.add(ghost);
for (const { method, fault, ...scope } of faults) runtime.fail(method, fault, scope);
const callsFile = values.calls;
if (callsFile !== undefined)
  for (const method of runtime.methods)
    runtime.before(method, (request) => {
      appendFileSync(callsFile, `${JSON.stringify({ method, request })}\n`);
    });

console.log(`listening on ${runtime.endpoint}`);
for (const signal of ["SIGTERM", "SIGINT"] as const)
  process.once(signal, () => {
    void runtime.stop().then(() => process.exit(0));
  });
