import { join } from "node:path";
const [d, n] = process.argv.slice(2);
const r = Bun.spawn(
  [process.execPath, "scripts/bench-parts/large-runtime.ts", join(d!, "cri.sock"), n!, d!],
  {
    stdio: ["ignore", "inherit", "inherit"],
    ipc(m) {
      console.log(JSON.stringify(m));
    },
  },
);
await r.exited;
