// A node with a kubelet and an API server that fail, restart and forget, told apart from what really is: for properties of pods.

import { containerId, podUid } from "../../src/model/ids.ts";
import { emptyLedger, type Ledger } from "../../src/model/ledger.ts";
import type { Plan } from "../../src/model/plan.ts";
import type {
  Container,
  Image,
  PodImages,
  PodReading,
  Sandbox,
  Snapshot,
} from "../../src/model/snapshot.ts";
import { duration, hours, instant, seconds } from "../../src/model/time.ts";
import { defaultPolicy } from "../../src/policy/policy.ts";
import { noLogs } from "../support/build/pods.ts";
import {
  aContainer,
  anImage,
  aSandbox,
  aSnapshot,
  defaultImageLimits,
  factsOf,
  idOf,
  ledgerLimits,
  NOW,
} from "../support/build/values.ts";

interface Pod {
  readonly uid: string;
  readonly isStatic: boolean;
  phase: "pending" | "running" | "completed";
}

const limits = { ...defaultImageLimits, minimumAge: duration(0n) };

type Decided = { readonly decision: { readonly kind: string; readonly reason: { kind: string } } };
/** What goes, for this reason or for any. */
const removed = <One extends Decided>(
  planned: readonly One[] | undefined,
  reason?: string,
): readonly One[] =>
  (planned ?? []).filter(
    ({ decision }) =>
      decision.kind === "remove" && (reason === undefined || decision.reason.kind === reason),
  );

/** What a crigc that runs beside this kubelet decided wrongly; empty: nothing. */
export class KubeletNode {
  /** Pods that exist, whoever knows of them. */
  readonly #pods = new Map<string, Pod>();
  readonly #directories = new Set<string>();
  readonly #logs = new Set<string>();
  #sandboxes: Sandbox[] = [];
  #containers: Container[] = [];
  #images: Image[] = [];
  #ledger: Ledger = emptyLedger;
  #apiAnswers = true;
  /** Since its last start the kubelet has heard from the API server. */
  #heard = true;
  #kubeletRuns = true;
  #wallNs = 0n;
  #uptimeNs: bigint = hours(1);
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
    this.#images.push(anImage(uid));
    this.#directories.add(uid);
  }

  start(at: number): void {
    const pod = this.#at(at);
    if (pod === undefined || pod.phase === "completed" || !this.#knows(pod)) return;
    pod.phase = "running";
    this.#logs.add(pod.uid);
    this.#count += 1;
    const createdAt = this.#wall();
    const change = { podUid: podUid(pod.uid), metadataUid: podUid(pod.uid), createdAt };
    const sandbox = aSandbox(`${pod.uid}-${this.#count}`, change);
    this.#stop(pod.uid);
    this.#sandboxes.push(sandbox);
    this.#containers.push(
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
    this.#uptimeNs = seconds(10);
  }

  loseLedger(): void {
    this.#ledger = emptyLedger;
  }

  wait(span: bigint): void {
    this.#wallNs += span;
    this.#uptimeNs += span;
  }

  turnClock(span: bigint): void {
    this.#wallNs += span;
  }

  /** One pass; what it removes is removed. Returns what should have been kept. */
  pass(purpose: "periodic" | "all-unused" = "periodic"): readonly string[] {
    const snapshot = this.#observed();
    const parts = { containers: "all", images: true } as const;
    const seen = { ledger: this.#ledger, snapshot, limits: ledgerLimits, parts };
    this.#ledger = defaultPolicy.remember(seen);
    const plan = defaultPolicy.decide({
      ...factsOf(snapshot, this.#ledger, limits),
      purpose: { kind: purpose },
      parts,
    });
    const faults = this.#faults(plan);
    this.#apply(plan);
    return faults;
  }

  /** What deleted pods left. */
  leftovers(): readonly string[] {
    return [
      ...this.#containers.map((one) => String(one.podUid)),
      ...this.#sandboxes.map((one) => String(one.podUid)),
      ...this.#logs,
    ].filter((uid) => !this.#pods.has(uid));
  }

  hasLivingPod(): boolean {
    return this.#sandboxes.some(({ state }) => state === "ready");
  }

  #at = (at: number): Pod | undefined =>
    [...this.#pods.values()][at % Math.max(1, this.#pods.size)];
  #hears = (): boolean => this.#apiAnswers && this.#kubeletRuns;
  #knows = (pod: Pod): boolean => this.#kubeletRuns && (pod.isStatic || this.#heard);
  #wall = () => instant(NOW + this.#wallNs);

  #stop(uid: string): void {
    this.#sandboxes = this.#sandboxes.map((one) =>
      one.podUid === uid ? { ...one, state: "not-ready" } : one,
    );
    this.#containers = this.#containers.map((one) =>
      one.podUid === uid ? { ...one, state: "exited" } : one,
    );
  }

  /** The kubelet removes directories of pods that it does not know, once it has heard of all. */
  #clear(): void {
    if (!this.#kubeletRuns || !this.#heard) return;
    for (const uid of this.#directories) if (!this.#pods.has(uid)) this.#directories.delete(uid);
  }

  #observed(): Snapshot {
    return aSnapshot({
      clocks: {
        wall: this.#wall(),
        uptime: duration(this.#uptimeNs),
        bootId: `boot-${this.#boots}`,
      },
      observedAt: this.#wall(),
      images: this.#images,
      containers: this.#containers,
      sandboxes: this.#sandboxes,
      pods: this.#reading(),
      logs: {
        ...noLogs,
        podLogs: [...this.#logs].map((uid) => ({ entry: `ns_pod_${uid}`, uid: podUid(uid) })),
      },
    });
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

  #faults({ containers, images }: Plan): readonly string[] {
    const gone = [
      ...removed(containers?.containers, "pod-gone").map(({ container }) => container.podUid),
      ...removed(containers?.sandboxes, "pod-gone").map(({ sandbox }) => sandbox.podUid),
      ...removed(containers?.podLogs).map(({ directory }) => directory.uid),
    ].map(String);
    const candidates = new Set((images?.candidates ?? []).map(({ image }) => image.id));
    const named = [...this.#specs.keys()];
    return [
      ...gone
        .filter((uid) => this.#pods.has(uid))
        .map((uid) => `something of ${uid}, which exists`),
      ...named
        .filter((uid) => candidates.has(idOf(uid)))
        .map((uid) => `the image of ${uid}, which exists`),
    ];
  }

  #apply({ containers, images }: Plan): void {
    const gone = new Set<string>([
      ...removed(containers?.containers).map(({ container }) => container.id),
      ...removed(containers?.sandboxes).map(({ sandbox }) => sandbox.id),
      ...(images?.candidates ?? []).map(({ image }) => image.id),
    ]);
    for (const { directory } of removed(containers?.podLogs)) this.#logs.delete(directory.uid);
    this.#containers = this.#containers.filter(({ id }) => !gone.has(id));
    this.#sandboxes = this.#sandboxes.filter(({ id }) => !gone.has(id));
    this.#images = this.#images.filter(({ id }) => !gone.has(id));
  }
}
