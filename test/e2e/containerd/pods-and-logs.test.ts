// Dead containers, dead sandboxes and pod logs on real runtimes: after a pass exactly what is expected is left.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
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

describe.each([...releases])("pods of a node with containerd %s", (release) => {
  describe("in the kubelet's directory", () => {
    const flags = ["--containers", "--pod-source=kubelet-dir"];
    const given = prepared(release);

    test("lose what is over the limit or of deleted pods in two passes, and nothing else", async () => {
      const { node, scene } = given();
      for (const pod of scene.kubeletPods) makeKubeletPodDirectory(node, pod);
      const before = logsOf(node);
      const first = await gc(node, ...flags);
      expect(first.exitCode).toBe(0);
      // Absent once is not gone.
      const sandboxes = (await takeInventory(node)).sandboxes.map(({ id }) => id);
      expect(sandboxes).toContain(scene.gone.sandboxId);
      const second = await later(node, ...flags);
      expect(second.exitCode).toBe(0);
      await expectLeft(node, scene, before, [scene.gone]);
      const third = await gc(node, ...flags);
      expect(third.report.containers).toMatchObject({ containers: [], sandboxes: [], logs: [] });
    });

    test("share the node with foreign containers, which are removed only on request and only if dead", async () => {
      const { node, scene } = given();
      const wanted = [...flags, "--collect-foreign"];
      await gc(node, ...wanted);
      await later(node, ...wanted);
      const { sandboxes } = await takeInventory(node);
      expect(sandboxes.map(({ id }) => id)).not.toContain(scene.foreignDead.sandboxId);
      expect(sandboxes.map(({ id }) => id)).toContain(scene.foreignAlive.sandboxId);
      expect(await containersOf(node, scene.foreignAlive)).toEqual(["app 0 CONTAINER_RUNNING"]);
    });
  });

  describe("known only from the runtime", () => {
    const flags = ["--containers", "--pod-source=cri"];
    const given = prepared(release);

    test("are terminated, not deleted, until a day of observed time has passed, and then removed with all their content", async () => {
      const { node, scene } = given();
      const before = logsOf(node);
      for (let pass = 0; pass < 3; pass += 1)
        expect((await later(node, ...flags)).exitCode).toBe(0);
      await expectLeft(node, scene, before, []);
      const left = logsOf(node);
      for (let pass = 0; pass < 2; pass += 1)
        expect((await later(node, ...flags, "--dead-pod-ttl=100ms")).exitCode).toBe(0);
      await expectLeft(node, scene, left, [scene.gone, scene.rested]);
    });
  });
});

/** A pass far enough from the one before to count for deleted pods. */
async function later(node: ContainerdNode, ...flags: readonly string[]) {
  await passesApart(node.stateDirectory);
  return gc(node, ...flags);
}

/** A node with the scene on it, for the tests of one `describe`. */
function prepared(release: (typeof releases)[number]) {
  const made = {} as { node: ContainerdNode; scene: Scene };
  beforeAll(async () => {
    made.node = await startNode(release);
    made.scene = await makeScene(made.node);
  });
  afterAll(async () => {
    await made.node?.stop();
  });
  return () => made;
}

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
    ...makeStrays(node, { outside, running: running[0]! }),
  };
}

async function makeWeb(node: ContainerdNode, web: Pod) {
  const end = (name: string, attempt: number) => runToEnd(node, web, { name, image, attempt });
  await end("init", 0);
  const over = [await end("app", 0), await end("app", 1), await end("twice", 0)];
  await end("app", 2);
  await end("twice", 1);
  for (const { logFile } of over) makeRotations(logFile ?? "");
  const running = await startContainer(node, web, { name: "app", image, attempt: 3 });
  makeRotations(running.logFile ?? "");
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
  makeRotations(dead.logFile ?? "");
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
  { outside, running }: { readonly outside: string; readonly running: PodContainer },
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
  const nowhere = `${orphan}/app/nowhere.log`;
  const unknown = `${links}/orphan_default_app-${"0".repeat(64)}.log`;
  symlinkSync(nowhere, unknown);
  // Of a container that runs, of no container, and one that leads to another place.
  symlinkSync(nowhere, `${links}/web_default_app-${running.id}.log.old`);
  symlinkSync(nowhere, `${links}/other_default_rotating-${running.id}.log`);
  symlinkSync(`${outside}/nowhere`, `${links}/else_default_app-${"1".repeat(64)}.log`);
  return { orphan, deadLinks: [unknown] };
}

type Tree = ReturnType<typeof treeOf>;

/** Everything below the directory of logs: pods' logs, legacy links, and what lies outside of both. */
const logsOf = (node: ContainerdNode): Tree => treeOf(dirname(node.podLogsDirectory));

/** The whole state: what is there, and that what is not there is exactly what was to go. */
async function expectLeft(
  node: ContainerdNode,
  scene: Scene,
  before: Tree,
  gonePods: readonly Pod[],
): Promise<void> {
  const { containers, sandboxes } = await takeInventory(node);
  const goneIds = gonePods.map(({ sandboxId }) => sandboxId);
  const { web, renewed, rested, gone, foreignDead, foreignAlive } = scene;
  const left = [web, renewed.now, rested, gone, foreignDead, foreignAlive].map(
    ({ sandboxId }) => sandboxId,
  );
  expect(sandboxes.map(({ id }) => id).toSorted()).toEqual(
    left.filter((id) => !goneIds.includes(id)).toSorted(),
  );
  const kept = new Map([
    ["web", ["app 2", "app 3", "init 0", "later 0", "twice 1"]],
    ["renewed", ["app 0"]],
    ["rested", ["app 0"]],
    ["gone", ["app 0", "moved 0"]],
    ["foreign-dead", ["app 0"]],
    ["foreign-alive", ["app 0"]],
  ]);
  for (const { name } of gonePods) kept.delete(name);
  const names = new Map(sandboxes.map(({ id, name }) => [id, name]));
  const found = Map.groupBy(containers, ({ sandboxId }) => names.get(sandboxId) ?? "none");
  expect(new Map([...found].map(([pod, list]) => [pod, list.map(nameOf).toSorted()]))).toEqual(
    kept,
  );
  for (const { id } of scene.running)
    expect(await execInContainer(node, id, ["echo", "alive"])).toBe("alive\n");
  expectLogsLeft(node, { scene, before, gonePods });
  const strays = (await plan(node, "--pod-source=none")).containers.strays;
  expect(strays).toEqual(expect.arrayContaining(["backup", "lost+found"]));
}

/** The only paths that are gone are logs of containers over the limit and of pods that are gone, with their links. */
function expectLogsLeft(
  node: ContainerdNode,
  result: { readonly scene: Scene; readonly before: Tree; readonly gonePods: readonly Pod[] },
): void {
  const { scene, before, gonePods } = result;
  const top = dirname(node.podLogsDirectory);
  const relative = (path: string) => path.slice(top.length + 1);
  const goneTrees = [
    ...gonePods.map(({ logDirectory }) => logDirectory),
    ...(gonePods.length > 0 ? [scene.orphan] : []),
  ].map(relative);
  const goneLinks = [
    ...scene.over.map(({ legacyLink }) => legacyLink ?? ""),
    ...scene.deadLinks,
  ].map(relative);
  const goneLogs = scene.over.map(({ logFile }) => relative(logFile ?? ""));
  const isGone = (path: string): boolean =>
    goneTrees.some((tree) => path === tree || path.startsWith(`${tree}/`)) ||
    goneLogs.some((log) => path === log || path.startsWith(`${log}.`)) ||
    goneLinks.includes(path) ||
    gonePods.some(({ name }) => path.startsWith(`containers/${name}_default_`));
  const expected = Object.keys(before).filter(isGone);
  const changes = changesOf(before, logsOf(node));
  expect(changes).toEqual(Object.fromEntries(expected.map((path) => [path, "gone"])));
}

async function containersOf(node: ContainerdNode, pod: Pod): Promise<readonly string[]> {
  const { containers } = await takeInventory(node);
  return containers
    .filter(({ sandboxId }) => sandboxId === pod.sandboxId)
    .map((container) => `${nameOf(container)} ${container.state}`)
    .toSorted();
}

const nameOf = ({ name, attempt }: { readonly name: string; readonly attempt: number }): string =>
  `${name} ${attempt}`;
