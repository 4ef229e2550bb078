// What lies around the executable does not change what it does: its working directory, proxies.
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { put, scratch } from "../../support/scratch.ts";
import { onAnyDisk, startNode } from "./node.ts";

const node = {
  images: [{ id: imageIdOf("one"), repoTags: ["r.example/one:1"], sizeBytes: 1_000 }],
};

/** A directory that does its best to be read: each file would leave a mark, or change the configuration. */
function hostileDirectory(): {
  readonly directory: string;
  readonly marks: () => readonly string[];
} {
  const directory = scratch();
  const marks = join(directory, "marks");
  const mark = (name: string): string =>
    `require("node:fs").mkdirSync(${JSON.stringify(join(marks, name))}, { recursive: true });`;
  const variables =
    "CRIGC_IMAGE_GC_HIGH_THRESHOLD=55\nCRIGC_DRY_RUN=true\nBUN_BE_BUN=1\nCONTAINER_RUNTIME_ENDPOINT=/nowhere.sock\n";
  for (const name of [".env", ".env.local", ".env.production", ".env.development", ".env.test"])
    put(directory, name, variables);
  put(directory, "evil.ts", mark("preload"));
  put(
    directory,
    "bunfig.toml",
    'preload = ["./evil.ts"]\nlogLevel = "debug"\n[run]\nbun = true\n[define]\n"CRIGC_VERSION" = "\'9.9.9\'"\n',
  );
  put(directory, ".bunfig.toml", 'preload = ["./evil.ts"]\n');
  const script = "touch marks-script";
  const scripts = { plan: script, config: script, version: script };
  const imports = { "#*": "./evil.ts" };
  const main = "./evil.ts";
  put(directory, "package.json", JSON.stringify({ name: "hostile", main, scripts, imports }));
  const paths = { "@grpc/grpc-js": [main], "node:fs": [main], valibot: [main] };
  for (const name of ["tsconfig.json", "jsconfig.json"])
    put(directory, name, JSON.stringify({ compilerOptions: { baseUrl: ".", paths } }));
  for (const name of ["@grpc/grpc-js", "@grpc/proto-loader", "valibot", "protobufjs", "bun"]) {
    put(directory, `node_modules/${name}/index.js`, mark(`module-${name.replace("/", "-")}`));
    put(directory, `node_modules/${name}/package.json`, JSON.stringify({ name, main: "index.js" }));
  }
  put(directory, "crigc.yaml", "kind: nonsense\n");
  put(directory, "plan.ts", mark("script"));
  put(directory, "plan", mark("script"));
  return { directory, marks: () => (existsSync(marks) ? readdirSync(marks) : []) };
}

test("a hostile working directory is ignored: no variable, module, script, preload or setting of it applies", async () => {
  const { directory, marks } = hostileDirectory();
  await using it = await startNode({ node });
  const within = { cwd: directory };
  const config = await it.within(within, "config", "-o", "json");
  expect(config).toMatchObject({ exitCode: 0, stderr: "" });
  const { values } = JSON.parse(config.stdout);
  expect(values.imageGCHighThresholdPercent).toMatchObject({ value: 85, source: "default" });
  expect(values.dryRun).toMatchObject({ value: false, source: "default" });
  for (const command of ["plan", "images", "gc", "snapshot", "version", "history"])
    expect(await it.within(within, command, ...onAnyDisk)).toMatchObject({ exitCode: 0 });
  expect(marks()).toEqual([]);
  expect(existsSync(join(directory, "marks-script"))).toBe(false);
});

describe.skipIf(process.getuid?.() !== 0)("a user who is not root", () => {
  /** The folder of the executable may be closed to them: an open file is not. */
  const asNobody = {
    within: [
      "sh",
      "-c",
      'exec 3<"$0"; exec setpriv --reuid 65534 --regid 65534 --clear-groups /proc/self/fd/3 "$@"',
    ],
  };

  test.each([
    ["plan", 3],
    ["gc", 3],
    ["images", 3],
    ["keep baseline", 3],
    ["status", 8],
    ["history", 1],
    ["hold 1m", 1],
    ["release", 1],
  ])("gets the advice of crigc %s to run as root", async (words, code) => {
    await using it = await startNode({ node });
    chmodSync(it.home, 0o755);
    chmodSync(join(it.home, "cri.sock"), 0o600);
    for (const directory of [it.stateDir, it.runDir]) mkdirSync(directory, { mode: 0o700 });
    const { exitCode, stdout, stderr } = await it.within(asNobody, ...words.split(" "));
    expect(stderr).toContain("permission denied");
    expect(stderr).toContain("; run as root (sudo crigc …)");
    expect(stderr).not.toContain("internal error");
    expect(stdout).toBe("");
    expect(exitCode).toBe(code);
  });
});
