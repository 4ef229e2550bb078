// Dead containers, dead sandboxes and pod logs on real runtimes: after a pass exactly what is expected is left.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { randomUUID } from "node:crypto";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { loadImages } from "../../support/containerd/import.ts";
import { takeInventory } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  createContainer,
  execInContainer,
  makeKubeletPodDirectory,
  type Pod,
  type PodContainer,
  type PodOptions,
  runPod,
  runToEnd,
  startContainer,
  stopPod,
} from "../../support/containerd/pods.ts";
import { releases } from "../../support/containerd/release.ts";
import { gc, plan } from "../../support/containerd/reports.ts";
import { passesApart } from "../../support/ledger.ts";
import { changesOf, treeOf } from "../../support/tree.ts";

setDefaultTimeout(120_000);

const image = "docker.io/library/app:1";

const flags = ["--containers", "--pod-source=kubelet-dir"];

describe.each([...releases])("a node with containerd %s", (release) => {
  test("loses dead containers over the limit and what deleted pods left, in two passes, and nothing else; foreign ones on request, once dead", async () => {
    await using node = await startNode(release);
    const scene = await makeScene(node);
    for (const pod of scene.kubeletPods) makeKubeletPodDirectory(node, pod);
    const before = treeOf(dirname(node.podLogsDirectory));
    const sandboxes = async () => (await takeInventory(node)).sandboxes.map(({ id }) => id);
    /** A pass far enough from the one before to count for deleted pods. */
    const pass = async (...more: readonly string[]) => {
      const { exitCode, report } = await gc(node, ...flags, ...more);
      expect(exitCode).toBe(0);
      await passesApart(node.stateDirectory);
      return report.containers;
    };
    await pass();
    // Absent once is not gone.
    expect(await sandboxes()).toContain(scene.gone.sandboxId);
    await pass();
    expect(await pass()).toMatchObject({ containers: [], sandboxes: [], logs: [] });
    await expectLeft(node, scene, before);

    for (let time = 0; time < 2; time += 1) await pass("--collect-foreign");
    expect(await sandboxes()).not.toContain(scene.foreignDead.sandboxId);
    expect(await sandboxes()).toContain(scene.foreignAlive.sandboxId);
    for (const { id } of scene.running)
      expect(await execInContainer(node, id, ["echo", "alive"])).toBe("alive\n");
  });
});

interface Scene {
  /** Lives: `app` runs after three restarts, `twice` ended twice, `init` once, `later` was never started. */
  readonly web: Pod;
  /** Its second sandbox runs `app`, the first is stopped. */
  readonly renewed: { readonly old: Pod; readonly now: Pod };
  /** Stopped, and the kubelet still knows it. */
  readonly rested: Pod;
  /** Stopped, and the kubelet has forgotten it; its logs hold links that lead out of the directory. */
  readonly gone: Pod;
  readonly foreignDead: Pod;
  readonly foreignAlive: Pod;
  readonly kubeletPods: readonly Pod[];
  readonly running: readonly PodContainer[];
  /** Of `web`: what the default limits take. */
  readonly over: readonly PodContainer[];
  /** A log directory of which neither the runtime nor the kubelet knows a pod. */
  readonly orphan: string;
  /** Beside the log directories. */
  readonly outside: string;
  /** Legacy links that lead nowhere, and whose container is gone. */
  readonly deadLinks: readonly string[];
}

async function makeScene(node: ContainerdNode): Promise<Scene> {
  await loadImages(node, [{ names: [image] }]);
  const outside = `${dirname(node.podLogsDirectory)}/outside`;
  mkdirSync(outside);
  writeFileSync(`${outside}/precious`, "precious");
  const web = await runPod(node, { name: "web" });
  const { running, over } = await makeWeb(node, web);
  const stopped = async (name: string, options: Partial<PodOptions> = {}): Promise<Pod> => {
    const pod = await runPod(node, { name, ...options });
    await runToEnd(node, pod, { name: "app", image });
    await stopPod(node, pod);
    return pod;
  };
  const old = await runPod(node, { name: "renewed" });
  await stopPod(node, old);
  const now = await runPod(node, { name: "renewed", uid: old.uid, attempt: 1 });
  const rested = await stopped("rested");
  const gone = await makeGone(node, outside);
  const foreignDead = await stopped("foreign-dead", { fromKubernetes: false });
  const foreignAlive = await runPod(node, { name: "foreign-alive", fromKubernetes: false });
  const alive = [
    await startContainer(node, now, { name: "app", image }),
    await startContainer(node, foreignAlive, { name: "app", image }),
  ];
  return {
    web,
    renewed: { old, now },
    rested,
    gone,
    foreignDead,
    foreignAlive,
    kubeletPods: [web, now, rested],
    running: [...running, ...alive],
    over,
    outside,
    ...makeStrays(node, { outside, web }),
  };
}

async function makeWeb(node: ContainerdNode, web: Pod) {
  const end = (name: string, attempt: number) => runToEnd(node, web, { name, image, attempt });
  await end("init", 0);
  const over = [await end("app", 0), await end("app", 1), await end("twice", 0)];
  await end("app", 2);
  await end("twice", 1);
  for (const { logFile } of over) makeRotations(logFile);
  const running = await startContainer(node, web, { name: "app", image, attempt: 3 });
  makeRotations(running.logFile);
  await createContainer(node, web, { name: "later", image });
  return { running: [running], over };
}

/** As the kubelet names them; and one of another container whose name only begins alike. */
function makeRotations(logFile: string): void {
  for (const suffix of [".20260101-010203", ".20260101-020304.gz", ".20260101-030405.tmp"])
    writeFileSync(`${logFile}${suffix}`, "rotated");
}

async function makeGone(node: ContainerdNode, outside: string): Promise<Pod> {
  const gone = await runPod(node, { name: "gone" });
  const dead = await runToEnd(node, gone, { name: "app", image });
  makeRotations(dead.logFile);
  await runToEnd(node, gone, { name: "moved", image });
  await stopPod(node, gone);
  // A directory that was moved to a larger disk and linked back: it is not ours to empty.
  renameSync(`${gone.logDirectory}/moved`, `${outside}/moved`);
  symlinkSync(`${outside}/moved`, `${gone.logDirectory}/moved`);
  symlinkSync(`${outside}/precious`, `${gone.logDirectory}/app/0.log.20260101-040506`);
  symlinkSync(outside, `${gone.logDirectory}/escape`);
  return gone;
}

/** What lies beside pods' logs, and must stay; and what belonged to pods, and may go. */
function makeStrays(
  node: ContainerdNode,
  { outside, web }: { readonly outside: string; readonly web: Pod },
) {
  const logs = node.podLogsDirectory;
  mkdirSync(`${logs}/lost+found`);
  writeFileSync(`${logs}/lost+found/#12`, "found");
  mkdirSync(`${logs}/backup`);
  writeFileSync(`${logs}/notes_of_${randomUUID()}`, "a file with a pod's name");
  symlinkSync(outside, `${logs}/default_linked_${randomUUID()}`);
  const orphan = `${logs}/default_orphan_${randomUUID()}`;
  mkdirSync(`${orphan}/app`, { recursive: true });
  writeFileSync(`${orphan}/app/0.log`, "orphaned");

  const links = node.containerLogsDirectory;
  const unknown = `${links}/orphan_default_app-${"0".repeat(64)}.log`;
  symlinkSync(`${orphan}/app/7.log`, unknown);
  // Links to a file that is not a container's log, to the log of a container that never started, and to another place.
  symlinkSync(`${orphan}/app/nowhere.log`, `${links}/orphan_default_app.log`);
  symlinkSync(`${web.logDirectory}/later/0.log`, `${links}/web_default_later.log`);
  symlinkSync(`${outside}/nowhere`, `${links}/else_default_app-${"1".repeat(64)}.log`);
  return { orphan, deadLinks: [unknown] };
}

/** The whole state: what is there, and that what is not there is exactly what was to go. */
async function expectLeft(
  node: ContainerdNode,
  scene: Scene,
  before: ReturnType<typeof treeOf>,
): Promise<void> {
  const { containers, sandboxes } = await takeInventory(node);
  const { web, renewed, rested, foreignDead, foreignAlive } = scene;
  const left = [web, renewed.now, rested, foreignDead, foreignAlive];
  expect(sandboxes.map(({ id }) => id).toSorted()).toEqual(
    left.map(({ sandboxId }) => sandboxId).toSorted(),
  );
  const podOf = new Map(sandboxes.map(({ id, name }) => [id, name]));
  const found = containers.map((it) => `${podOf.get(it.sandboxId)}: ${it.name} ${it.attempt}`);
  expect(found.toSorted()).toEqual([
    "foreign-alive: app 0",
    "foreign-dead: app 0",
    "renewed: app 0",
    "rested: app 0",
    "web: app 2",
    "web: app 3",
    "web: init 0",
    "web: later 0",
    "web: twice 1",
  ]);
  const top = dirname(node.podLogsDirectory);
  /** Logs of containers over the limit and of the pod that is gone, with their links. */
  const gone = [
    ...[scene.gone.logDirectory, scene.orphan].map((tree) => `${tree}/`),
    ...scene.over.map(({ logFile }) => `${logFile}.`),
    ...scene.over.map(({ legacyLink }) => legacyLink),
    ...scene.deadLinks,
    `${node.containerLogsDirectory}/gone_default_`,
  ];
  // With a dot, so that a log is told from one whose name only begins alike.
  const isGone = (path: string): boolean =>
    gone.some((start) => [`${path}/`, `${path}.`].some((it) => it.startsWith(start)));
  const expected = Object.keys(before).filter((path) => isGone(`${top}/${path}`));
  expect(changesOf(before, treeOf(top))).toEqual(
    Object.fromEntries(expected.map((path) => [path, "gone"])),
  );
  const { strays } = (await plan(node, "--pod-source=none")).containers;
  expect(strays).toEqual(expect.arrayContaining(["backup", "lost+found"]));
}
