// Random nodes under random faults: what is used, pinned, kept or the sandbox image is never handed to RemoveImage.
import { expect, test } from "bun:test";

import {
  type ContainerDescription,
  type ImageDescription,
  imageIdOf,
  type SandboxDescription,
} from "../../support/fake-runtime/describe.ts";
import type { CodeName, Fault } from "../../support/fake-runtime/faults.ts";
import { Random, SEED } from "../../support/random.ts";
import { removable, startNode } from "./node.ts";

const NODES = Number(process.env["CRIGC_NODES"] ?? 12);

interface RandomNode {
  readonly images: readonly ImageDescription[];
  readonly sandboxes: readonly SandboxDescription[];
  readonly containers: readonly ContainerDescription[];
  readonly protectedIds: ReadonlySet<string>;
}

function randomNode(random: Random, seed: number, mountsImages: boolean): RandomNode {
  const images: ImageDescription[] = [];
  const containers: ContainerDescription[] = [];
  const sandboxes: SandboxDescription[] = [];
  const protectedIds = new Set<string>();
  for (let index = 0; index < random.between(6, 19); index += 1) {
    const id = imageIdOf(`${seed} ${index}`);
    const tag = random.chance(0.15) ? `r.example/kept/i${index}:1` : `r.example/app/i${index}:1`;
    const digest = `r.example/app/i${index}@${imageIdOf(`digest ${seed} ${index}`)}`;
    const pinned = random.chance(0.1);
    images.push({
      id,
      repoTags: [tag],
      repoDigests: [digest],
      sizeBytes: 1_000 * random.between(1, 9),
      pinned,
    });
    if (pinned || tag.includes("/kept/")) protectedIds.add(id);
    if (!random.chance(0.4)) continue;
    protectedIds.add(id);
    const sandboxId = `pod${index}`;
    sandboxes.push({ id: sandboxId });
    const state = random.pick(["created", "running", "exited", "unknown"] as const);
    const how = random.pick(["image", "ref", mountsImages ? "volume" : "image"] as const);
    const reference = random.pick([id, tag, digest, id.slice(0, 23)] as const);
    containers.push({
      id: `container${index}`,
      sandboxId,
      state,
      name: `c${index}`,
      image: how === "volume" ? "r.example/not-there:1" : random.pick([id, tag, digest] as const),
      ...(how === "volume"
        ? { imageVolumes: [reference === id.slice(0, 23) ? tag : reference] }
        : {}),
      ...(how === "ref" ? { imageRef: random.pick([id, digest] as const) } : {}),
    });
  }
  const pause = {
    id: imageIdOf(`pause ${seed}`),
    repoTags: ["registry.k8s.io/pause:3.8"],
    sizeBytes: 500,
  };
  protectedIds.add(pause.id);
  return { images: [...images, pause], sandboxes, containers, protectedIds };
}

const METHODS = [
  "ListImages",
  "ListContainers",
  "ListPodSandbox",
  "ContainerStatus",
  "PodSandboxStatus",
  "ImageStatus",
  "ImageFsInfo",
  "Status",
  "Version",
  "RemoveImage",
  "*",
] as const;
const CODES: readonly CodeName[] = [
  "UNKNOWN",
  "UNAVAILABLE",
  "INTERNAL",
  "DEADLINE_EXCEEDED",
  "PERMISSION_DENIED",
  "UNIMPLEMENTED",
  "NOT_FOUND",
];

function randomFault(random: Random, method: string): Fault {
  const kind = random.pick([
    "error",
    "error",
    "error",
    "garbage",
    "drop",
    "delay",
    "hang",
  ] as const);
  // Of a container's status NOT_FOUND is an answer and no failure: the container is gone, and what it used is free.
  const isAnswer = method === "ContainerStatus" || method === "*";
  const code = random.pick(CODES);
  if (kind === "error") return { kind, code: isAnswer && code === "NOT_FOUND" ? "UNKNOWN" : code };
  return kind === "delay" ? { kind, ms: random.between(0, 59) } : { kind };
}

test(`on ${NODES} random nodes under random faults nothing that is protected is ever removed`, async () => {
  console.log(`seeds from ${SEED} (CRIGC_SIM_SEED)`);
  let removed = 0;
  const codes = new Map<number, number>();
  for (let seed = SEED; seed < SEED + NODES; seed += 1) {
    const random = new Random(seed);
    const mountsImages = random.chance(0.5);
    const { protectedIds, ...node } = randomNode(random, seed, mountsImages);
    await using it = await startNode({
      node,
      traits: {
        version: mountsImages ? "v2.1.0" : "v1.7.24",
        imageIds: random.chance(0.5),
        imageRefs: random.pick(["id", "digest"] as const),
        imageStreams: random.chance(0.5),
        runtimeStreams: random.chance(0.5),
      },
      flags: [
        ...removable,
        "--keep=r.example/kept/**",
        "--runtime-request-timeout=400ms",
        "--maximum-dead-containers-per-container=-1",
      ],
    });
    const planted = Array.from({ length: random.between(0, 3) }, () => {
      const method = random.pick(METHODS);
      const scope = { skip: random.between(0, 5), times: random.between(1, 5) };
      return { method, fault: randomFault(random, method), scope };
    });
    for (const { method, fault, scope } of planted) it.runtime.fail(method, fault, scope);
    const { exitCode, stderr } = await it.crigc("gc", "--images", "--all-unused");
    codes.set(exitCode, (codes.get(exitCode) ?? 0) + 1);
    const wrong = it.removedImages().filter((id) => protectedIds.has(id));
    if (wrong.length > 0)
      console.log(JSON.stringify({ seed, wrong, node, planted }, null, 1), stderr);
    expect({ seed, wrong }).toEqual({ seed, wrong: [] });
    expect({ seed, exitCode, known: [0, 3, 5].includes(exitCode), stderr }).toMatchObject({
      known: true,
    });
    removed += it.removedImages().length;
  }
  console.log(`${removed} removals; exit codes: ${JSON.stringify(Object.fromEntries(codes))}`);
  expect(removed).toBeGreaterThan(0);
});
