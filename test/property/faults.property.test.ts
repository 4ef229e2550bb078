// Whatever fails, hangs or lies in the middle of a pass: what should stay is never passed to a removal.

import { expect, test } from "bun:test";

import fc from "fast-check";

import type { ObservePorts } from "../../src/gc/observe.ts";
import { runPass } from "../../src/gc/pass.ts";
import { assertNever, RuntimeError } from "../../src/model/errors.ts";
import { containerId, podUid } from "../../src/model/ids.ts";
import type { ImageRecord, PodRecord } from "../../src/model/ledger.ts";
import type { PassKind } from "../../src/model/pass.ts";
import type { ImageTarget, Purpose } from "../../src/model/plan.ts";
import type { Container, ContainerState, Image, PodReading } from "../../src/model/snapshot.ts";
import { hours, instant, minutes, seconds, totalUptime } from "../../src/model/time.ts";
import { DEADLINE_MS } from "../sim/clock.ts";
import { noLogs } from "../support/build/pods.ts";
import {
  aContainer,
  aFilesystem,
  aLedger,
  anImage,
  aRecord,
  aSandbox,
  aSnapshot,
  defaultLimits,
  GIB,
  keepOf,
  NOW,
  spaceTarget,
} from "../support/build/values.ts";
import { type FakeEngine, fakeEngine, type Lie, passRequest } from "../support/fake-engine.ts";
import { type Drawn, rarely, WATCHED, WORDS } from "./image-node.ts";

const target: ImageTarget = {
  ...spaceTarget(15n * GIB, 10n * GIB),
  trigger: { kind: "pressure", signal: "imagefs.available" },
};

const PASSES: readonly { readonly kind: PassKind; readonly purpose: Purpose }[] = [
  { kind: "gc", purpose: { kind: "periodic" } },
  { kind: "gc", purpose: { kind: "all-unused" } },
  { kind: "pressure", purpose: { kind: "pressure", signals: ["imagefs.available"] } },
];

const pass = (lived: Lived, request: (typeof PASSES)[number]) =>
  runPass(
    lived.engine,
    passRequest({
      ...request,
      ...(request.kind === "pressure" ? { retarget: async () => [target] } : {}),
    }),
    lived.signal,
  );

test("images in use, pinned, kept, too young or of unknown use, and live containers, are kept under faults, and every requested removal is recorded", async () => {
  let images = 0;
  let containers = 0;
  let logs = 0;
  let failed = 0;
  await fc.assert(
    fc.asyncProperty(faultyNode, fc.constantFrom(...PASSES), async (node, request) => {
      const lived = live(node, request.kind === "pressure");
      const { pass: ended } = await pass(lived, request);
      expect(lived.violations).toEqual([]);
      const asked = lived.writes.filter((write) => write.startsWith("RemoveImage"));
      const items = (ended.images?.items ?? []).filter(({ result }) => result.kind !== "skipped");
      expect(items.map(({ candidate }) => `RemoveImage ${candidate.image.id}`)).toEqual(asked);
      const requested = lived.writes.filter((write) => write.startsWith("RemoveContainer"));
      // One that somebody else removes is recorded as that.
      const results = (ended.containers?.containers ?? []).map(({ planned, result }) => ({
        call: `RemoveContainer ${planned.container.id}`,
        isOurs: result.kind === "removed" || (result.kind === "failed" && result.step === "remove"),
      }));
      const recorded = results.map(({ call }) => call);
      expect(requested.filter((call) => !recorded.includes(call))).toEqual([]);
      const ours = results.filter(({ isOurs }) => isOurs).map(({ call }) => call);
      expect(ours.filter((call) => !requested.includes(call))).toEqual([]);
      images += asked.length;
      logs += lived.writes.filter((write) => write.startsWith("RemovePodLogs")).length;
      containers += requested.length;
      if (ended.error !== null || ended.images?.error != null) failed += 1;
    }),
    { numRuns: 4_000 },
  );
  // Else the property would hold of a pass that removes nothing, or of faults that do nothing.
  expect(images).toBeGreaterThan(800);
  expect(containers).toBeGreaterThan(300);
  expect(logs).toBeGreaterThan(50);
  expect(failed).toBeGreaterThan(200);
}, 110_000);

const PODS = ["p", "q", "r"] as const;

const METHODS = [
  "Version",
  "ListImages",
  "ListContainers",
  "ListPodSandbox",
  "ContainerStatus",
  "PodSandboxStatus",
  "ImageStatus",
  "ImageFsInfo",
  "statfs",
  "RemoveImage",
  "StopContainer",
  "RemoveContainer",
  "StopPodSandbox",
  "RemovePodSandbox",
] as const;

const someContainer = fc.record({
  pod: fc.constantFrom(...PODS),
  name: fc.constantFrom("web", "init"),
  state: fc.constantFrom<ContainerState>(
    "running",
    "exited",
    "exited",
    "exited",
    "created",
    "unknown",
  ),
  image: fc.constantFrom(...WORDS),
  by: fc.constantFrom("id", "reference", "tag"),
  volume: fc.option(fc.constantFrom(...WORDS), { freq: 3 }),
  volumeBy: fc.constantFrom("id", "tag"),
});

const aFault = fc.record({
  method: fc.constantFrom(...METHODS),
  /** Which call of the method. */
  at: fc.nat(8),
  /** Whether all later calls of the method fail as well. */
  lasts: rarely,
  kind: fc.constantFrom("error", "malformed", "unreachable", "hang", "empty", "half", "gone"),
});

/** What somebody else does in the middle of a pass, before this call, counted over all methods. */
const anEvent = fc.record({
  at: fc.nat(60),
  image: fc.constantFrom(...WORDS),
  kind: fc.constantFrom("rename", "replace", "keep", "hold", "spec", "create"),
  /** An image that is replaced is back so many calls later. */
  back: fc.integer({ min: 1, max: 15 }),
});

const faultyNode = fc.record({
  images: fc.array(fc.record({ pinned: rarely, ageMinutes: fc.constantFrom(0, 1, 30, 60, 90) }), {
    minLength: WORDS.length,
    maxLength: WORDS.length,
  }),
  containers: fc.array(someContainer, { maxLength: 7 }),
  pods: fc.array(
    fc.record({
      ready: fc.boolean(),
      listed: fc.boolean(),
      /** `null`: no pass saw it absent. */
      absentSeconds: fc.constantFrom(null, 9, 10),
    }),
    { minLength: PODS.length, maxLength: PODS.length },
  ),
  source: fc.constantFrom("ready", "ready", "ready", "failed", "none"),
  keep: fc.option(fc.constantFrom("registry.example/a", "registry.example/b"), { freq: 2 }),
  volumes: fc.boolean(),
  availableGib: fc.integer({ min: 1, max: 25 }),
  faults: fc.array(aFault, { maxLength: 4 }),
  /** Before this call, counted over all methods, the dead container at this place starts, or a new one on this image. */
  starts: fc.array(
    fc.record({ at: fc.nat(60), image: fc.constantFrom(...WORDS), dead: fc.option(fc.nat(6)) }),
    { maxLength: 3 },
  ),
  events: fc.array(anEvent, { maxLength: 3 }),
  /** At this call, counted over all methods, the pass is stopped, on request or for disk pressure. */
  stop: fc.option(fc.record({ at: fc.nat(60) }), { freq: 2 }),
  /** How long each call takes: longer than lists are valid, too. */
  callMs: fc.constantFrom(0, 0, 0, 100, 11_000),
});

type FaultyNode = Drawn<typeof faultyNode>;
type RandomContainer = Drawn<typeof someContainer>;
type PlannedFault = Drawn<typeof aFault>;

interface Lived extends FakeEngine {
  readonly node: FaultyNode;
  /** What must not have happened. */
  readonly violations: string[];
  /** Of the pass. */
  readonly signal: AbortSignal;
}

/** Puts the node into an engine whose calls are answered as the faults say, and judged by the truth. */
function live(node: FaultyNode, isUnderPressure: boolean): Lived {
  const violations: string[] = [];
  const fake = fakeEngine({
    images: WORDS.map((_, at) => imageOf(node, at)),
    containers: node.containers.map(containerOf),
    sandboxes: [
      ...PODS.map((pod, at) =>
        aSandbox(pod, { state: node.pods[at]?.ready === true ? "ready" : "not-ready" }),
      ),
      ...(node.events.some(({ kind }) => kind === "create") ? [creating] : []),
    ],
    filesystem: aFilesystem({ availableBytes: BigInt(node.availableGib) * GIB }),
    freed: () => GIB,
    runtime: { ...aSnapshot().runtime, version: node.volumes ? "2.1.0" : "1.7.24" },
    detail: (id) => ({
      imageVolumes: volumesOf(node, id).map(({ volume, volumeBy }) =>
        volumeBy === "id" ? anImage(volume ?? "").id : `registry.example/${volume}:v1`,
      ),
    }),
    keep: keepOf(node.keep === null ? [] : [{ pattern: node.keep, source: "--keep" }]),
    pods: readingOf(node),
    logs: {
      ...noLogs,
      podLogs: PODS.map((pod) => ({
        entry: `default_${pod}_uid-${pod}`,
        uid: podUid(`uid-${pod}`),
      })),
    },
    limits: {
      ...defaultLimits,
      containers: { ...defaultLimits.containers, maximumPerPodContainer: 0 },
    },
    ledger: aLedger({
      observedAt: NOW,
      uptime: hours(48),
      totalUptime: WATCHED,
      images: new Map(
        node.images.map(({ ageMinutes }, at) => [wordId(at), recordOf(at, ageMinutes)] as const),
      ),
      pods: new Map(
        node.pods.map(
          ({ absentSeconds }, at) => [podUid(`uid-${PODS[at]}`), podRecord(absentSeconds)] as const,
        ),
      ),
    }),
  });
  const stop = new AbortController();
  const judge = new Judge(node, fake, { violations, isUnderPressure, stop });
  fake.world.before = (method, about) => judge.before(method, about);
  fake.world.lies = (method) => judge.lie(method);
  const engine = { ...fake.engine, observe: judge.told(fake.engine.observe) };
  return { ...fake, engine, node, violations, signal: stop.signal };
}

/** The pod in which a container is being created. */
const creating = aSandbox("creating", { createdAt: NOW });
const MINIMUM_AGE = defaultLimits.images.minimumAge;
/** A container that is being created holds up no pass for longer. */
const CREATION_MAX = seconds(150);

const imageOf = (node: FaultyNode, at: number): Image =>
  anImage(WORDS[at] ?? "", { pinned: node.images[at]?.pinned === true });
const wordId = (at: number): Image["id"] => anImage(WORDS[at] ?? "").id;
const idOfContainer = (at: number): Container["id"] => containerId(`container-c${at}`);
const volumesOf = ({ containers }: FaultyNode, id: string): readonly RandomContainer[] =>
  containers.filter(({ volume }, at) => volume !== null && idOfContainer(at) === id);

/** Later ones are younger. */
function containerOf({ pod, name, state, image, by }: RandomContainer, at: number): Container {
  const { id } = anImage(image);
  const words = {
    id: { imageId: id },
    reference: { imageRef: id },
    tag: { imageName: `registry.example/${image}:v1` },
  };
  return aContainer(`c${at}`, {
    ...words[by],
    name,
    state,
    attempt: at,
    podUid: podUid(`uid-${pod}`),
    podName: `pod-${pod}`,
    sandboxId: aSandbox(pod).id,
    createdAt: instant(NOW - minutes(100 - at)),
  });
}

const recordOf = (at: number, ageMinutes: number): ImageRecord =>
  aRecord({
    firstSeenAt: instant(NOW - minutes(ageMinutes)),
    firstSeenUptime: totalUptime(WATCHED - minutes(ageMinutes)),
    names: `registry.example/${WORDS[at]}:v1`,
  });

const podRecord = (absentSeconds: number | null): PodRecord => ({
  absentSinceUptime: absentSeconds === null ? null : totalUptime(WATCHED - seconds(absentSeconds)),
  deadSinceUptime: null,
});

function readingOf({ source, pods }: FaultyNode): PodReading {
  if (source === "failed") return { kind: "failed", source: "kubelet-dir", message: "a test" };
  if (source === "none") return { kind: "none", why: "a test" };
  const listed = PODS.filter((_, at) => pods[at]?.listed === true);
  return {
    kind: "ready",
    source: "kubelet-dir",
    pods: listed.map((pod) => podUid(`uid-${pod}`)),
  };
}

interface Judged {
  readonly violations: string[];
  readonly isUnderPressure: boolean;
  readonly stop: AbortController;
}

/** Answers as the faults say, and judges each removal by what is true and what the runtime has told. */
class Judge {
  /** By method, because calls of several are under way at once. */
  readonly #lies = new Map<string, Lie>();
  readonly #node: FaultyNode;
  readonly #world: FakeEngine["world"];
  readonly #engine: FakeEngine["engine"];
  readonly #violations: string[];
  readonly #isUnderPressure: boolean;
  readonly #stop: AbortController;
  readonly #counts = new Map<string, number>();
  /** Containers that any list of this pass named. */
  readonly #told = new Set<string>();
  /** Containers whose status was read; mounts never change, so once is enough. */
  readonly #read = new Set<string>();
  /** When the last list came that lacked the image, or had it under other names than the first one. */
  readonly #changed = new Map<string, bigint>();
  readonly #names = new Map<string, string>();
  /** Names in keep rules and in specifications, as last read. */
  #kept = "";
  #specified = "";
  #hasSandbox = false;
  /** A hold was in force when containers were last listed, and when that was. */
  #wasHeld = false;
  #listedAt: bigint = 0n;
  /** When the mark was made of a container that is being created. */
  #bornAt: bigint = 0n;
  /** The same, once the pass has read it. */
  #markedSince: bigint | null = null;
  #calls = 0;

  constructor(node: FaultyNode, { world, engine }: FakeEngine, judged: Judged) {
    this.#node = node;
    this.#world = world;
    this.#engine = engine;
    this.#violations = judged.violations;
    this.#isUnderPressure = judged.isUnderPressure;
    this.#stop = judged.stop;
  }

  lie(method: string): Lie | null {
    return this.#lies.get(method) ?? null;
  }

  /** Notes what a look is told, or has to find. */
  told({ runtime, host, ...observe }: ObservePorts): ObservePorts {
    return {
      ...observe,
      runtime: {
        ...runtime,
        listImages: async (signal) => {
          const listed = await runtime.listImages(signal);
          this.#noteImages(listed);
          return listed;
        },
      },
      host: {
        ...host,
        pods: async (signal) => this.#noteSpecs(await host.pods(signal)),
        keepRules: async () => {
          this.#kept = this.#world.keep.rules.map(({ pattern }) => `${pattern}:`).join(" ");
          return host.keepRules();
        },
      },
    };
  }

  #noteSpecs(reading: PodReading): PodReading {
    this.#specified = (reading.specs?.pods ?? []).flatMap((pod) => pod.images).join(" ");
    return reading;
  }

  async before(method: string, about: string): Promise<void> {
    if (method === "RemoveImage") this.#judgeImage(about);
    if (method === "RemoveImage" && this.#stop.signal.aborted)
      this.#violations.push(`${about} is removed after the pass was stopped`);
    if (this.#node.stop?.at === this.#calls) this.#stop.abort();
    if (method === "ListContainers") {
      this.#wasHeld = this.#world.hold.kind === "held";
      this.#listedAt = this.#world.uptime;
    }
    this.#happen();
    this.#startContainers(about);
    await this.#engine.timer.sleep(this.#node.callMs, new AbortController().signal);
    if (method === "RemoveContainer") this.#judgeContainer(about);
    if (method === "RemovePodSandbox") this.#judgeSandbox(about);
    if (method === "RemovePodLogs") this.#judgeLogs(about);
    const count = this.#counts.get(method) ?? 0;
    this.#counts.set(method, count + 1);
    const planned = this.#node.faults.find(
      (one) => one.method === method && (one.lasts ? count >= one.at : count === one.at),
    );
    this.#lies.delete(method);
    if (planned !== undefined) await this.#carryOut(planned, about);
    if (method === "ContainerStatus") this.#read.add(about);
    if (method === "ListContainers" && this.lie(method) === null)
      for (const { id } of this.#world.containers) this.#told.add(id);
    this.#hasSandbox ||= method === "ListPodSandbox" && this.lie(method) === null;
    // Under pressure a pass waits only briefly.
    const isAwaited = method === "podDirectories" && this.#hasSandbox && !this.#isUnderPressure;
    if (isAwaited && this.#world.podDirectories?.length === 1) this.#markedSince ??= this.#bornAt;
  }

  #noteImages(listed: readonly Image[]): void {
    const { uptime } = this.#world;
    for (const word of WORDS) {
      const image = listed.find(({ id }) => id === anImage(word).id);
      const names = image?.repoTags.join(" ") ?? "";
      const before = this.#names.get(word) ?? names;
      if (image === undefined || names !== before) this.#changed.set(word, uptime);
      if (image !== undefined) this.#names.set(word, names);
    }
  }

  #happen(): void {
    const world = this.#world;
    for (const { at, kind, image: word, back } of this.#node.events) {
      const isBack = kind === "replace" && at + back === this.#calls;
      if (at !== this.#calls && !isBack) continue;
      const image = imageOf(this.#node, WORDS.indexOf(word));
      const others = world.images.filter(({ id }) => id !== image.id);
      const name = `registry.example/${word}`;
      if (kind === "rename") {
        const renamed = { ...image, repoTags: [`${name}:v1`, `${name}:v2`] };
        if (others.length < world.images.length) world.images = [...others, renamed];
      } else if (kind === "replace") world.images = isBack ? [...others, image] : others;
      else if (kind === "keep") world.keep = keepOf([{ pattern: name, source: "--keep" }]);
      else if (kind === "hold") world.hold = { kind: "held", until: null, since: null, reason: "" };
      else if (kind === "spec") {
        const pods = [{ uid: podUid("uid-spec"), images: [`${name}:v1`] }];
        world.pods = { ...world.pods, specs: { pods, error: null } };
      } else {
        const { podUid: uid } = creating;
        const bornAt = instant(world.wall + 1_000n);
        world.podDirectories = [{ uid, bornAt, files: [{ container: "web", bornAt }] }];
        this.#bornAt = world.uptime;
      }
    }
  }

  async #carryOut({ kind, method }: PlannedFault, about: string): Promise<void> {
    const world = this.#world;
    switch (kind) {
      case "half":
        // Half of the containers in the very first list is all that a pass without a memory can know of.
        if (method === "ListContainers" && this.#told.size === 0) return;
        this.#lies.set(method, "half");
        return;
      case "empty":
        this.#lies.set(method, "empty");
        return;
      case "gone":
        // What is said not to be there has really gone.
        world.containers = world.containers.filter(({ id }) => id !== about);
        return;
      case "hang":
        await this.#engine.timer.sleep(DEADLINE_MS, new AbortController().signal);
        throw new RuntimeError("deadline", `${method} was not answered in time`);
      case "error":
      case "malformed":
      case "unreachable":
        throw new RuntimeError(kind === "error" ? "failed" : kind, `${method} was made to fail`);
      default:
        assertNever(kind);
    }
  }

  #startContainers(about: string): void {
    const world = this.#world;
    for (const [index, { at, image, dead }] of this.#node.starts.entries()) {
      if (at !== this.#calls) continue;
      const new_ = aContainer(`new${index}`, {
        imageId: anImage(image).id,
        podUid: podUid(`uid-new${index}`),
      });
      const id = dead === null ? null : idOfContainer(dead);
      if (id === null) world.containers = [...world.containers, new_];
      // Between the last look at a container and its removal nothing can help; nor does a pod start one once it is deleted.
      else if (id !== about && !this.#read.has(id))
        world.containers = world.containers.map((one) =>
          one.id === id && !this.#isGone(one) ? { ...one, state: "running" } : one,
        );
    }
    this.#calls += 1;
  }

  #judgeImage(id: string): void {
    const [world, node] = [this.#world, this.#node];
    const at = WORDS.findIndex((word) => anImage(word).id === id);
    const fault = (what: string): void => void this.#violations.push(`image ${WORDS[at]}: ${what}`);
    const known = world.containers.filter((one) => this.#told.has(one.id));
    const user = known.find((one) => imageOfContainer(one) === id);
    if (user !== undefined) fault(`${user.id} uses it`);
    const mounts = (one: Container): boolean =>
      volumesOf(node, one.id).some(({ volume }) => volume === WORDS[at]);
    if (node.volumes && known.some(mounts)) fault("it is mounted as a volume");
    if (node.volumes && known.some((one) => !this.#read.has(one.id)))
      fault("the status of a container could not be read");
    if (node.images[at]?.pinned === true) fault("it is pinned");
    // A second, or what it takes to read them twice, and the calls before the removal.
    const isOld = world.uptime - this.#listedAt > seconds(2);
    if (node.callMs <= 100 && isOld) fault("the last list is old");
    const age = minutes(node.images[at]?.ageMinutes ?? 0) + world.uptime - hours(48);
    if (age < MINIMUM_AGE) fault("it is too young");
    const changed = this.#changed.get(WORDS[at] ?? "");
    if (changed !== undefined && world.uptime - changed < MINIMUM_AGE)
      fault("it was removed or renamed since");
    if (`${this.#kept} ${this.#specified}`.includes(`registry.example/${WORDS[at]}:`))
      fault("a rule keeps it, or a static pod names it");
    if (world.hold.kind === "held") fault("a hold is in force");
    const since = this.#markedSince;
    // One pass waits for no longer than one creation may take, whatever it waits for.
    const isPatient = world.uptime - hours(48) < CREATION_MAX;
    if (since !== null && isPatient && world.uptime - since < CREATION_MAX)
      fault("a container is being created");
  }

  #judgeContainer(id: string): void {
    const { containers } = this.#world;
    const container = containers.find((one) => one.id === id);
    if (container === undefined) return;
    const fault = (what: string): void => void this.#violations.push(`${id}: ${what}`);
    if (container.state === "running") fault("it runs");
    if (this.#node.source === "failed") fault("nobody knows which pods live");
    if (this.#isGone(container)) return;
    if (container.state !== "exited") fault(`it is ${container.state}, in a pod that is not gone`);
    const same = containers.filter(
      (one) => one.podUid === container.podUid && one.name === container.name,
    );
    const newest = same
      .filter(({ state }) => state === "exited")
      .toSorted((one, other) => (one.createdAt > other.createdAt ? -1 : 1))[0];
    if (newest?.id === id && !same.some(({ state }) => state === "running"))
      fault("it is the newest of its name in a living pod");
  }

  #judgeSandbox(id: string): void {
    const { containers } = this.#world;
    const at = PODS.findIndex((pod) => aSandbox(pod).id === id);
    const fault = (what: string): void => void this.#violations.push(`${id}: ${what}`);
    if (this.#node.pods[at]?.ready === true) fault("it is ready");
    if (this.#node.source !== "ready") fault("nobody knows which pods live");
    if (this.#node.pods[at]?.listed === true) fault("its pod is listed");
    const inside = containers.find((one) => one.sandboxId === id && this.#told.has(one.id));
    if (inside !== undefined) fault(`${inside.id} is in it`);
  }

  #judgeLogs(entry: string): void {
    const uid = podUid(entry.replace(/.*_/, ""));
    const fault = (what: string): void => void this.#violations.push(`logs of ${uid}: ${what}`);
    // Without a memory a pass cannot know of a sandbox that no list had.
    if (this.#hasSandbox && !this.#isGone({ podUid: uid })) fault("its pod is not gone");
    if (this.#wasHeld) fault("a hold is in force");
  }

  /** Unlisted in this pass and in one ten seconds before, and nothing of it lives. */
  #isGone({ podUid: uid }: Pick<Container, "podUid">): boolean {
    const at = PODS.findIndex((pod) => `uid-${pod}` === uid);
    const pod = this.#node.pods[at];
    if (pod === undefined || this.#node.source !== "ready") return false;
    const { containers, uptime } = this.#world;
    const runs = containers.some((one) => one.podUid === uid && one.state === "running");
    const since = pod.absentSeconds === null ? null : seconds(pod.absentSeconds) - hours(48);
    return !pod.listed && !pod.ready && !runs && since !== null && since + uptime >= seconds(10);
  }
}

function imageOfContainer({ imageId, imageRef, imageName }: Container): string {
  if (imageId !== "") return imageId;
  if (imageRef !== "") return imageRef;
  return (
    WORDS.map((word) => anImage(word)).find(({ repoTags }) => repoTags.includes(imageName))?.id ??
    ""
  );
}
