// What is at the other end of the socket: a slow runtime, one that comes later, or several.
import { describe, expect, test } from "bun:test";

import { runProgram } from "../../support/program.ts";
import { startNode, usedAndUnused } from "./node.ts";

test("a runtime that takes two seconds to report its version, as on a busy node, is used", async () => {
  await using node = await startNode();
  node.runtime.fail("Version", { kind: "delay", ms: 2_000 }, { times: 1 });
  expect(await node.crigc("images")).toMatchObject({ exitCode: 0 });
});

test("run keeps trying, logs why, and starts when the runtime appears", async () => {
  await using node = await startNode();
  await node.runtime.crash();
  await using agent = node.start("run");
  await agent.untilSaid("trying again");
  expect(agent.said()).toContain(node.runtime.socket);
  expect((await node.status()).runtimeError).toContain(node.runtime.socket);
  await node.runtime.recover();
  await agent.untilSaid("connected to the runtime");
  expect(agent.said()).toMatch(/connecting to the runtime succeeded after \d/);
  expect((await node.firstPass()).runtimeError).toBeNull();
  expect(await agent.stop()).toBe(0);
});

test("an endpoint that is a file or a directory is named as such", async () => {
  await using node = await startNode();
  for (const [path, what] of [
    [node.configFile, "a file"],
    [node.home, "a directory"],
  ] as const) {
    const { exitCode, stderr } = await node.crigc("images", `--container-runtime-endpoint=${path}`);
    expect(exitCode).toBe(3);
    expect(stderr).toContain(`unix://${path} is ${what}, not a socket`);
  }
});

test("completion offers the names of the runtime's images, also beside an agent", async () => {
  await using node = await startNode({ node: usedAndUnused });
  const offered = async (): Promise<string> => {
    const result = await node.within({}, "__complete", ...node.flags, "rm", "r.example/u");
    return result.stdout;
  };
  expect(await offered()).toBe("r.example/used:1\t\nr.example/unused:1\t\n");
  await using _agent = node.start("run");
  await node.firstPass();
  expect(await offered()).toBe("r.example/used:1\t\nr.example/unused:1\t\n");
});

/** A /run with links to our runtimes, for one process: in a mount namespace, which takes no root. */
async function besideRuntimes(links: Readonly<Record<string, string>>, words: readonly string[]) {
  const lines = Object.entries(links).map(
    ([path, target]) => `mkdir -p "$(dirname ${path})" && ln -s ${target} ${path}`,
  );
  const script = ["mount -t tmpfs tmpfs /run", ...lines, 'exec "$@"'].join(" && ");
  return runProgram(words, { within: [...namespace, "sh", "-c", script, "sh"] });
}

const namespace = [
  "unshare",
  ...(process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"]),
  "--mount",
];
const canMount =
  Bun.spawnSync([...namespace, "sh", "-c", "mount -t tmpfs tmpfs /run"]).exitCode === 0;
if (!canMount) console.warn("tests of well-known sockets are skipped: /run cannot be mounted over");

describe.skipIf(!canMount)("without a configured socket", () => {
  test("run and gc refuse several answering runtimes, name them, and exit 2", async () => {
    await using one = await startNode();
    await using other = await startNode({ traits: { name: "cri-o", version: "1.30.1" } });
    const links = {
      "/run/containerd/containerd.sock": one.runtime.socket,
      "/run/crio/crio.sock": other.runtime.socket,
    };
    const flags = one.flags.filter((flag) => !flag.startsWith("--container-runtime-endpoint"));
    for (const command of ["run", "gc", "plan"]) {
      const { exitCode, stderr } = await besideRuntimes(links, [command, ...flags]);
      expect(exitCode).toBe(2);
      expect(stderr).toContain("/run/containerd/containerd.sock (containerd 1.7.24)");
      expect(stderr).toContain("/run/crio/crio.sock (cri-o 1.30.1)");
    }
    expect(one.changes()).toEqual([]);
  });
});
