// Whatever happens to the kubelet, its API server, the machine, its clock and our ledger: nothing of a pod that exists is removed as a deleted pod's.

import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { containerId, podUid } from "../../src/model/ids.ts";
import { emptyLedger } from "../../src/model/ledger.ts";
import type { PodImages, PodReading } from "../../src/model/snapshot.ts";
import { duration, hours, instant, minutes, seconds } from "../../src/model/time.ts";
import { noLogs } from "../support/build/pods.ts";
import {
  aContainer,
  aFilesystem,
  anImage,
  aSandbox,
  GIB,
  idOf,
  withLimits,
} from "../support/build/values.ts";
import { fakeEngine, runFakePass } from "../support/fake-engine.ts";

type Outcome = Promise<readonly string[]> | void;
type Step = (node: KubeletNode) => Outcome;

const which = fc.nat(5);
/** A step of a node's life, with the name by which a failing life shows it. */
const act = <Value>(
  name: string,
  values: fc.Arbitrary<Value>,
  does: (it: KubeletNode, value: Value) => Outcome,
) =>
  values.map((value): readonly [string, Step] => [
    `${name} ${String(value)}`,
    (it) => does(it, value),
  ]);
const once = fc.constant("");
const flag = fc.boolean();
const spans = fc.constantFrom(seconds(1), minutes(1), minutes(10), hours(30));
const step = fc.oneof(
  { weight: 3, arbitrary: act("add", flag, (it, isStatic) => it.add(isStatic)) },
  { weight: 3, arbitrary: act("start", which, (it, pod) => it.start(pod)) },
  act("complete", which, (it, pod) => it.complete(pod)),
  { weight: 2, arbitrary: act("delete", which, (it, pod) => it.delete(pod)) },
  act("api", flag, (it, up) => it.apiServer(up)),
  act("kubelet", flag, (it, up) => it.kubelet(up)),
  act("restart", once, (it) => (it.kubelet(false), it.kubelet(true))),
  act("restart alone", once, (it) => (it.apiServer(false), it.kubelet(false), it.kubelet(true))),
  act("reboot", once, (it) => it.reboot()),
  act("lose ledger", once, (it) => it.loseLedger()),
  act("wait", spans, (it, span) => it.wait(span)),
  act("turn", fc.constantFrom(hours(-100), hours(100)), (it, span) => it.turnClock(span)),
  { weight: 6, arbitrary: act("pass", once, (it) => it.pass()) },
  act("all-unused", once, (it) => it.pass("all-unused")),
);

describe("by kubelet-dir", () => {
  const life = fc.array(step, { maxLength: 40 });
  const run = async (node: KubeletNode, steps: readonly (readonly [string, Step])[]) => {
    for (const isStatic of [true, false, false]) node.add(isStatic);
    for (const pod of [0, 1]) node.start(pod);
    for (const [, does] of steps) expect((await does(node)) ?? []).toEqual([]);
  };

  test(
    "nothing of an existing pod is removed as a deleted pod's, nor an image in a spec that the kubelet listed",
    () =>
      fc.assert(
        fc.asyncProperty(life, (steps) => run(new KubeletNode(), steps)),
        { numRuns: 600 },
      ),
    60_000,
  );

  test(
    "everything that deleted pods left is removed once the kubelet has reached its API server and a pod is alive",
    () =>
      fc.assert(
        fc.asyncProperty(life, async (steps) => {
          const node = new KubeletNode();
          await run(node, steps);
          // What a wrong clock dated ahead counts as young until it is right.
          node.turnClock(hours(10_000));
          node.kubelet(true);
          node.apiServer(true);
          node.add(false);
          for (let pod = 0; pod < 40; pod += 1) node.start(pod);
          for (let pass = 0; pass < 12; pass += 1) {
            node.wait(minutes(1));
            await node.pass();
          }
          expect(node.hasLivingPod()).toBe(true);
          expect(node.leftovers()).toEqual([]);
        }),
        { numRuns: 100 },
      ),
    60_000,
  );
});

interface Pod {
  readonly uid: string;
  readonly isStatic: boolean;
  phase: "pending" | "running" | "completed";
}

/** What a crigc that runs beside this kubelet decided wrongly; empty: nothing. */
class KubeletNode {
  /** Pods that exist, whoever knows of them. */
  readonly #pods = new Map<string, Pod>();
  readonly #directories = new Set<string>();
  readonly #logs = new Set<string>();
  readonly #fake = fakeEngine({
    limits: withLimits({ minimumAge: duration(0n) }),
    uptime: hours(1),
    before: (method, entry) => {
      if (method === "RemovePodLogs") this.#logs.delete(entry.replace("ns_pod_", ""));
    },
  });
  #apiAnswers = true;
  /** Since its last start the kubelet has heard from the API server. */
  #heard = true;
  #kubeletRuns = true;
  #boots = 1;
  #count = 0;
  /** As last read, of pods whose directories exist. */
  #specs = new Map<string, PodImages>();

  add(isStatic: boolean): void {
    if (!isStatic && !this.#hears()) return;
    this.#count += 1;
    const number = String(this.#count).padStart(2, "0");
    const uid = isStatic ? number.repeat(16) : `uid-${number}`;
    this.#pods.set(uid, { uid, isStatic, phase: "pending" });
    this.#world.images.push(anImage(uid, { sizeBytes: 8n * GIB }));
    this.#directories.add(uid);
  }

  start(at: number): void {
    const pod = this.#at(at);
    if (pod === undefined || pod.phase === "completed" || !this.#knows(pod)) return;
    pod.phase = "running";
    this.#logs.add(pod.uid);
    this.#count += 1;
    const createdAt = this.#world.wall;
    const change = { podUid: podUid(pod.uid), metadataUid: podUid(pod.uid), createdAt };
    const sandbox = aSandbox(`${pod.uid}-${this.#count}`, change);
    this.#stop(pod.uid);
    this.#world.sandboxes.push(sandbox);
    this.#world.containers.push(
      aContainer("app", {
        id: containerId(`c-${this.#count}`),
        sandboxId: sandbox.id,
        podUid: podUid(pod.uid),
        imageId: idOf(pod.uid),
        createdAt,
      }),
    );
  }

  complete(at: number): void {
    const pod = this.#at(at);
    if (pod?.phase !== "running" || pod.isStatic) return;
    pod.phase = "completed";
    this.#stop(pod.uid);
  }

  /** A deletion reaches the kubelet only through the API server, a manifest that is gone at once. */
  delete(at: number): void {
    const pod = this.#at(at);
    if (pod === undefined || (!pod.isStatic && !this.#hears())) return;
    this.#pods.delete(pod.uid);
    this.#stop(pod.uid);
    this.#clear();
  }

  apiServer(answers: boolean): void {
    this.#apiAnswers = answers;
    this.#heard ||= answers && this.#kubeletRuns;
    this.#clear();
  }

  kubelet(runs: boolean): void {
    if (runs && !this.#kubeletRuns) this.#heard = this.#apiAnswers;
    this.#kubeletRuns = runs;
    this.#clear();
  }

  reboot(): void {
    for (const uid of this.#pods.keys()) this.#stop(uid);
    for (const pod of this.#pods.values()) if (pod.phase === "running") pod.phase = "pending";
    this.kubelet(false);
    this.kubelet(true);
    this.#boots += 1;
    this.#world.bootId = `boot-${this.#boots}`;
    this.#world.uptime = seconds(10);
  }

  loseLedger(): void {
    this.#fake.engine.memory.replace(emptyLedger);
  }

  wait(span: bigint): void {
    this.turnClock(span);
    this.#world.uptime += span;
  }

  turnClock(span: bigint): void {
    this.#world.wall = instant(this.#world.wall + span);
  }

  /** One pass. Returns what should have been kept. */
  async pass(kind: "periodic" | "all-unused" = "periodic"): Promise<readonly string[]> {
    const podLogs = [...this.#logs].map((uid) => ({ entry: `ns_pod_${uid}`, uid: podUid(uid) }));
    const [pods, logs] = [this.#reading(), { ...noLogs, podLogs }];
    Object.assign(this.#world, { pods, logs, filesystem: aFilesystem() });
    const { containers, images } = (await runFakePass(this.#fake, { purpose: { kind } })).pass;
    const gone = [
      ...(containers?.containers ?? []).map((it) => [it.planned.container.podUid, it] as const),
      ...(containers?.sandboxes ?? []).map((it) => [it.sandbox.podUid, it] as const),
      ...(containers?.logs ?? []).map(
        (it) => [podUid(it.entry.replace("ns_pod_", "")), it] as const,
      ),
    ].flatMap(([uid, { reason }]) => (reason.kind === "pod-gone" ? [uid] : []));
    const removed = new Set((images?.items ?? []).map(({ candidate }) => candidate.image.id));
    return [
      ...gone.filter((uid) => this.#pods.has(uid)).map((uid) => `something of ${uid}`),
      ...[...this.#specs.keys()]
        .filter((uid) => removed.has(idOf(uid)))
        .map((uid) => `the image of ${uid}`),
    ];
  }

  /** What deleted pods left. */
  leftovers(): readonly string[] {
    return [
      ...this.#world.containers.map((one) => String(one.podUid)),
      ...this.#world.sandboxes.map((one) => String(one.podUid)),
      ...this.#logs,
    ].filter((uid) => !this.#pods.has(uid));
  }

  hasLivingPod(): boolean {
    return this.#world.sandboxes.some(({ state }) => state === "ready");
  }

  get #world() {
    return this.#fake.world;
  }

  #at = (at: number): Pod | undefined =>
    [...this.#pods.values()][at % Math.max(1, this.#pods.size)];
  #hears = (): boolean => this.#apiAnswers && this.#kubeletRuns;
  #knows = (pod: Pod): boolean => this.#kubeletRuns && (pod.isStatic || this.#heard);

  #stop(uid: string): void {
    const world = this.#world;
    world.sandboxes = world.sandboxes.map((one) =>
      one.podUid === uid ? { ...one, state: "not-ready" } : one,
    );
    world.containers = world.containers.map((one) =>
      one.podUid === uid ? { ...one, state: "exited" } : one,
    );
  }

  /** The kubelet removes directories of pods that it does not know, once it has heard of all. */
  #clear(): void {
    if (!this.#kubeletRuns || !this.#heard) return;
    for (const uid of this.#directories) if (!this.#pods.has(uid)) this.#directories.delete(uid);
  }

  #reading(): PodReading {
    for (const uid of this.#specs.keys()) if (!this.#directories.has(uid)) this.#specs.delete(uid);
    for (const pod of this.#pods.values())
      if (this.#knows(pod))
        this.#specs.set(pod.uid, {
          uid: podUid(pod.uid),
          images: [`registry.example/${pod.uid}:v1`],
        });
    const specs = { pods: [...this.#specs.values()], error: null };
    return {
      kind: "ready",
      source: "kubelet-dir",
      pods: [...this.#directories].map(podUid),
      specs,
    };
  }
}
