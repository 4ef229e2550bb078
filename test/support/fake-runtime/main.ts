// The fake runtime as a process of its own: `main.ts --socket PATH --node FILE.json`, until SIGTERM or SIGINT.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import type { NodeDescription } from "./describe.ts";
import { startFakeRuntime } from "./server.ts";

const { values } = parseArgs({ options: { socket: { type: "string" }, node: { type: "string" } } });
if (values.socket === undefined || values.node === undefined)
  throw new Error("--socket PATH and --node FILE.json are needed");
const runtime = await startFakeRuntime({
  socket: values.socket,
  node: JSON.parse(readFileSync(values.node, "utf8")) as NodeDescription,
});
console.log(`listening on ${runtime.endpoint}`);
for (const signal of ["SIGTERM", "SIGINT"] as const)
  process.once(signal, () => {
    void runtime.stop().then(() => process.exit(0));
  });
