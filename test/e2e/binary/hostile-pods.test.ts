// Pods whose authors mean harm, in every field that is theirs: nobody else's image, container, log or file is touched, the
// rest of the node is still collected, and what is printed is harmless.
import { expect, test } from "bun:test";
import { existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";

import {
  type ContainerDescription,
  hexId,
  imageIdOf,
  type SandboxDescription,
} from "../../support/fake-runtime/describe.ts";
import { passesApart } from "../../support/ledger.ts";
import { put } from "../../support/scratch.ts";
import { changesOf, treeOf } from "../../support/tree.ts";
import { type Json, startNode, type TestNode } from "./node.ts";

const VICTIM = imageIdOf("victim");
const OTHERS = [VICTIM, imageIdOf("pinned"), imageIdOf("kept"), imageIdOf("ended")];
const EVIL = imageIdOf("evil");
const victimTag = "r.example/victim/app:1";
const MIB = "x".repeat(1024 * 1024);

/** What an author may write where a name belongs. */
const NAMES = [
  "",
  "..",
  "../../victim",
  "/",
  "a/b",
  victimTag,
  VICTIM,
  VICTIM.slice(0, 15),
  VICTIM.slice(7, 13),
  VICTIM.slice(7),
  "sha256:",
  "victim",
  hexId("victim-app"),
  "__proto__",
  "constructor",
  "toString",
  "a\u0000b",
  "a\nI0101 00:00:00.000000 image-gc] forged",
  "\u001b]0;owned\u0007\u001b[2J",
  "\u009b31m",
  "\u202egnp.exe",
  "\ufeff\u200b",
  "<script>alert(1)</script>",
  '"} 1\nforged_metric{a="',
  "${HOME} $(reboot) `reboot`",
  "%s%n",
  "*",
  "**",
  MIB,
] as const;
const HOOKS = [
  "",
  "{",
  "null",
  '{"exec":{"command":["hang"]}}',
  '{"exec":{"command":[""]}}',
  '{"httpGet":{"host":"127.0.0.1","port":1,"path":"/\\r\\nX: y"}}',
  '{"httpGet":{"host":"a b","port":"__proto__","httpHeaders":[{"name":"a\\r\\nb","value":"\\u0000"}]}}',
  '{"httpGet":{"host":"@localhost:9419/../","port":65536,"path":"//other/"}}',
  '{"sleep":{"seconds":1e308}}',
  '{"__proto__":{"exec":{"command":["x"]}}}',
  MIB,
] as const;

/** Whose logs are behind links, in its own directory or in another one. */
const CONTAINERS = ["main", "linked", "../default_victim_uid-victim/app", "..", "app"];

/** Without IDs. */
interface Evil {
  readonly sandbox: Omit<SandboxDescription, "id">;
  readonly containers: readonly Omit<ContainerDescription, "id" | "sandboxId">[];
}

const base = {
  uid: "uid-evil",
  name: "evil",
  namespace: "default",
  state: "not-ready",
} as const;

const annotated = (hook = "", grace = "86400") => ({
  "io.kubernetes.container.preStopHandler": hook,
  "io.kubernetes.pod.terminationGracePeriod": grace,
  "io.kubernetes.container.ports": hook,
});

const withPaths = HOOKS.map((hook, at): Evil => {
  const name = CONTAINERS[at % CONTAINERS.length] ?? "";
  return {
    sandbox: base,
    containers: (["unknown", "exited"] as const).map((state, attempt) => {
      return { name, image: victimTag, state, attempt, annotations: annotated(hook) };
    }),
  };
});

const withNames = NAMES.map((it): Evil => {
  const names = { uid: it, name: it, namespace: it };
  const container = { name: it, image: it, annotations: annotated(it, it) };
  return { sandbox: { ...base, ...names }, containers: [{ ...container, state: "exited" }] };
});

/** Under the other pod's UID, and with it in the labels alone; what they name is the other's, too. */
const impostors = (["created", "running", "exited", "unknown"] as const).flatMap((state, at) => {
  const grace = ["0", "-1", "1e9", "999999999999999"][at];
  // The runtime has looked up what a volume names before there is a container.
  const volume = [VICTIM, victimTag, "r.example/elsewhere:1"].slice(at, at + 1);
  const pod = {
    ...base,
    name: "victim",
    state: state === "running" ? ("ready" as const) : base.state,
  };
  const labels = { "io.kubernetes.pod.uid": "uid-victim", __proto__x: "" };
  return [
    { ...pod, uid: "uid-victim" },
    { ...pod, labels },
  ].map((sandbox): Evil => ({
    sandbox,
    containers: ["app", "evil"].map((name) => ({
      name,
      image: VICTIM,
      state,
      imageVolumes: volume,
      annotations: annotated(HOOKS[3], grace),
    })),
  }));
});

test.each([
  ["the worst logs, hooks and grace periods", withPaths],
  ["the worst names", withNames],
  ["those that pass for another pod", impostors],
])(
  "%s lead to no removal of other pods' data, and everything else is collected",
  (_, pods) => live(pods),
  120_000,
);

async function live(pods: readonly Evil[]): Promise<void> {
  await using node = await startNode({
    exec: (_, [word]) => (word === "hang" ? new Promise<number>(() => undefined) : 1),
    traits: { name: "run\u001b[1mtime", version: "v2.1.0" },
    flags: [
      "--boot-grace=0s",
      "--dead-pod-ttl=0s",
      "--maximum-dead-containers-per-container=0",
      "--minimum-image-ttl-duration=0s",
      "--keep=r.example/kept/**",
    ],
  });
  const outside = makeOthers(node);
  makeTrash(node);
  for (const [at, pod] of pods.entries()) addEvil(node, pod, at);
  const before = filesOfOthers(node, outside);
  const said: string[] = [];
  const { images } = await node.json(["images"]);
  expect(images.flatMap((it: Json) => it.repoTags).toSorted()).toEqual(
    node.runtime.node.images.flatMap(({ repoTags }) => repoTags ?? []).toSorted(),
  );
  const message = `no${NAMES.slice(10, 18).join("")}`;
  node.runtime.fail("RemoveImage", { kind: "error", code: "UNKNOWN", message }, { times: 1 });
  for (const words of [
    ["images"],
    ["explain", hexId("evil 0 0")],
    ["doctor"],
    ["plan", "--all-unused"],
    ["gc", "--all-unused", "-v3"],
    ["gc", "--all-unused", "-o", "json", "--logging-format=json", "-v3"],
    ["history"],
  ]) {
    if (words[0] === "gc") await passesApart(node.stateDir);
    const { exitCode, stdout, stderr, tookMs } = await node.crigc(...words);
    said.push(stdout, stderr);
    expect(exitCode, `crigc ${words.join(" ")}: ${stderr.slice(-600)}`).toBeOneOf([0, 3, 5, 8]);
    expect(tookMs).toBeLessThan(60_000);
  }
  // Its images, containers and sandboxes are there, untouched.
  const touched = node.runtime.calls
    .filter(({ method }) => /^(?:Remove|Stop|ExecSync)/.test(method))
    .map(({ request }) => JSON.stringify(request));
  for (const id of [...OTHERS, hexId("victim"), hexId("victim-app"), hexId("victim-ended")])
    expect(touched.filter((request) => request.includes(id))).toEqual([]);
  expect(changesOf(before, filesOfOthers(node, outside))).toEqual({});
  // What nobody uses is gone, whatever the others did.
  expect(node.removedImages()).toContain(imageIdOf("trash"));
  expect(node.runtime.node.containers.has(hexId("trash-app"))).toBe(false);
  expect(existsSync(join(node.podLogsDir, "default_orphan_uid-orphan"))).toBe(false);
  for (const text of said) {
    // oxlint-disable-next-line no-control-regex -- they are what is looked for
    expect(
      /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u200b-\u200f\ufeff]/.exec(text)?.[0],
    ).toBeUndefined();
    expect(text.split("\n").filter((line) => line.startsWith("I0101"))).toEqual([]);
  }
  expect(existsSync("/etc/passwd")).toBe(true);
}

/** Another pod that runs, with a dead container beside; images that are pinned, kept or used; a file outside of all logs. */
function makeOthers(node: TestNode): string {
  const { node: runtime } = node.runtime;
  for (const [id, tag] of [
    [VICTIM, victimTag],
    [imageIdOf("pinned"), "r.example/p:1"],
    [imageIdOf("kept"), "r.example/kept/a:1"],
    [imageIdOf("ended"), "r.example/ended:1"],
    [EVIL, "r.example/evil:1"],
  ] as const)
    runtime.addImage({ id, repoTags: [tag], sizeBytes: 1, pinned: tag.endsWith("/p:1") });
  runtime.addSandbox({ id: hexId("victim"), uid: "uid-victim", name: "victim" });
  const directory = join(node.podLogsDir, "default_victim_uid-victim");
  for (const [container, image, state] of [
    ["app", victimTag, "running"],
    // The newest of its name in a pod that lives.
    ["ended", imageIdOf("ended"), "exited"],
  ] as const) {
    for (const file of ["0.log", "0.log.20260101-000000.gz"])
      put(directory, `${container}/${file}`, "a line\n");
    runtime.addContainer({
      id: hexId(`victim-${container}`),
      sandboxId: hexId("victim"),
      name: container,
      image,
      state,
    });
  }
  const outside = join(node.home, "outside");
  for (const file of ["secret", "0.log", "0.log.1"]) put(outside, file, "secret\n");
  const own = join(node.podLogsDir, "default_evil_uid-evil");
  for (const file of ["0.log", "0.log.\u001b[2J", "0.log.\u202e"]) put(own, `main/${file}`);
  symlinkSync(join(directory, "app"), join(own, "linked"));
  symlinkSync(directory, join(own, "app"));
  symlinkSync(outside, join(own, "main", "outside"));
  symlinkSync(join(directory, "app", "0.log"), join(own, "main", "0.log.to-victim"));
  symlinkSync(join(outside, "secret"), join(own, "main", "1.log"));
  symlinkSync(
    join(outside, "secret"),
    join(node.home, "containers", `evil_default_main-${hexId("e")}.log`),
  );
  return outside;
}

/** An image, a dead container, a dead pod's logs that nothing keeps. */
function makeTrash(node: TestNode): void {
  const { node: runtime } = node.runtime;
  runtime.addImage({ id: imageIdOf("trash"), repoTags: ["r.example/trash:1"], sizeBytes: 1 });
  const dead = { id: hexId("trash"), uid: "uid-trash", name: "trash", state: "not-ready" } as const;
  runtime.addSandbox(dead);
  const image = "r.example/gone:1";
  runtime.addContainer({ id: hexId("trash-app"), sandboxId: dead.id, image, state: "exited" });
  put(node.podLogsDir, "default_orphan_uid-orphan/app/0.log");
}

function addEvil({ runtime: { node } }: TestNode, pod: Evil, at: number): void {
  const { sandbox, containers } = pod;
  const sandboxId = hexId(`evil ${at}`);
  node.addImage({
    id: imageIdOf(`evil ${at}`),
    repoTags: [`r.example/x${at}${sandbox.name}:1`],
    sizeBytes: 1,
  });
  node.addSandbox({ ...sandbox, id: sandboxId });
  for (const [index, it] of containers.entries())
    node.addContainer({ ...it, id: hexId(`evil ${at} ${index}`), sandboxId, imageRef: EVIL });
}

const filesOfOthers = (node: TestNode, outside: string): Readonly<Record<string, string>> => ({
  ...treeOf(join(node.podLogsDir, "default_victim_uid-victim")),
  ...Object.fromEntries(
    Object.entries(treeOf(outside)).map(([path, what]) => [`outside/${path}`, what]),
  ),
});
