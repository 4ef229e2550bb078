// What an agent finds around it while it runs: the node's kubelet, and a root directory of its own.
import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { startProgram } from "../../support/program.ts";
import { type Json, onAnyDisk, startNode, type TestNode } from "./node.ts";

const started = (node: TestNode): Promise<Json> =>
  node.status("the agent has looked at the node", ({ loops }) =>
    loops.some((loop: Json) => loop.lastEndedAt !== null),
  );

test("beside a kubelet the default thresholds are reached before the kubelet's, and config says why", async () => {
  await using it = await startNode();
  mkdirSync(join(it.home, "root", "pods"), { recursive: true });
  const { values } = await it.json(["config"]);
  expect(values.imageGCHighThresholdPercent).toMatchObject({
    value: 75,
    source: "kubelet",
    from: ["beside a kubelet"],
  });
  expect(values.evictionHard.value["imagefs.available"]).toBe("20%");
  const kubelets = await it.json(["config", "--compat=kubelet"]);
  expect(kubelets.values.imageGCHighThresholdPercent).toMatchObject({ value: 85 });
});

/** Everything of this machine below another root directory, as in a container. */
const contained = (home: string): readonly string[] => [
  ..."unshare --mount --propagation=private sh -c".split(" "),
  'root="$0/contained" && mkdir "$root" && mount -t tmpfs none "$root" && for it in /*; do if [ -d "$it" ] && [ ! -L "$it" ]; then mkdir "$root$it" && mount --rbind "$it" "$root$it"; else cp -P "$it" "$root/"; fi; done; exec chroot "$root" "$@"',
  home,
];

test("a command on the host adopts the thresholds of an agent in a container, and not its kubelet credentials", async () => {
  await using it = await startNode();
  const flags = [
    "--pod-source=cri",
    "--kubelet-token-file=/var/run/secrets/of-the-pod/token",
    "--kubelet-ca-file=/var/run/secrets/of-the-pod/ca.crt",
    "--image-gc-high-threshold=97",
  ];
  const node = it.flags.filter((flag) => !flag.startsWith("--pod-source"));
  await using agent = startProgram(["run", ...node, ...flags], { within: contained(it.home) });
  await started(it);
  const ran = await it.crigc("config", "-o", "json");
  expect(ran.stderr).toContain("its own kubeletCAFile, kubeletTokenFile");
  expect(JSON.parse(ran.stdout).values).toMatchObject({
    imageGCHighThresholdPercent: { value: 97, source: "agent" },
    kubeletTokenFile: { value: null, source: "default" },
  });
  const plan = await it.json(["plan"]);
  expect(plan.containers.podSource).toMatchObject({ kind: "ready" });
  expect(agent.exitCode()).toBeNull();
});

test("gc names the ages that single passes reach late, and none while an agent runs", async () => {
  await using it = await startNode({ flags: onAnyDisk });
  const ages = ["--minimum-image-ttl-duration=1h", "--image-maximum-gc-age=5h"];
  const ofMaximum = "age counts observed time, which hardly grows without a running agent";
  const notices = [
    "minimum image age of 1h",
    "TTL of dead pods of 1d",
    `maximum image ${ofMaximum}`,
  ];
  const said = async () => {
    const { stderr } = await it.crigc("gc", ...ages);
    const { notes } = (await it.json(["plan", ...ages])).images;
    return { gc: notices.filter((text) => stderr.includes(text)), plan: notes };
  };
  expect(await said()).toEqual({ gc: notices, plan: [`the maximum ${ofMaximum}`] });
  await using agent = it.start("run");
  await started(it);
  expect(await said()).toEqual({ gc: [], plan: [] });
  expect(await agent.stop()).toBe(0);
});

/** Its /proc shows another boot ID and uptime, as that of a shell does in a node that is a container. */
const ofAnotherBoot = (home: string): readonly string[] => [
  ..."unshare --mount --propagation=private sh -c".split(" "),
  'proc=/proc/sys/kernel/random; cat $proc/uuid >"$0/boot" && echo 3.00 1.00 >"$0/uptime" && mount --bind "$0/boot" $proc/boot_id && mount --bind "$0/uptime" /proc/uptime && exec "$@"',
  home,
];

test("gc in a shell that reads another boot ID and uptime than the agent takes neither for another boot", async () => {
  await using it = await startNode({ flags: onAnyDisk });
  await using agent = it.start("run");
  const { bootId, uptimeMs } = await it.firstPass();
  const shell = { within: ofAnotherBoot(it.home) };
  for (const _ of [1, 2]) {
    const { stdout, exitCode } = await it.within(shell, "gc", "-o", "json");
    expect([exitCode, JSON.parse(stdout).images.end]).toEqual([0, "nothing-to-do"]);
  }
  expect(await it.status()).toMatchObject({ bootId, bootGraceMs: null });
  const { clocks } = JSON.parse((await it.within(shell, "snapshot")).stdout).node;
  expect(clocks.bootId).toBe(bootId);
  expect(clocks.uptimeNs / 1e6).toBeWithin(uptimeMs, uptimeMs + 60_000);
  expect(agent.exitCode()).toBeNull();
});

test("the remaining grace period of the status shrinks between two passes", async () => {
  await using it = await startNode({ flags: ["--boot-grace=99999h", ...onAnyDisk] });
  await using _ = it.start("run");
  const { bootGraceMs } = await it.firstPass();
  const later = await it.status("it has shrunk", (status) => status.bootGraceMs < bootGraceMs);
  expect(later.lastPasses).toHaveLength(2);
});
