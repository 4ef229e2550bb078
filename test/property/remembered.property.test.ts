// What is remembered of list entries never shows: a process that has looked before plans as one that has just begun.
import { expect, test } from "bun:test";

import fc from "fast-check";

import { makeReader } from "../../src/cri/client.ts";
import { cutEntries } from "../../src/cri/codec.ts";
import type { Channel } from "../../src/cri/transport.ts";
import { Observer } from "../../src/gc/observe.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { podUid } from "../../src/model/ids.ts";
import { type Ledger, ledgerCodec } from "../../src/model/ledger.ts";
import type { ImageLimits } from "../../src/model/limits.ts";
import type { Plan } from "../../src/model/plan.ts";
import type { RuntimeReader } from "../../src/model/ports.ts";
import type { PodReading, Snapshot } from "../../src/model/snapshot.ts";
import { duration, hours, totalUptime } from "../../src/model/time.ts";
import { defaultPolicy } from "../../src/policy/policy.ts";
import { declared } from "../cri/declared.ts";
import {
  aLedger,
  defaultImageLimits,
  factsOf,
  keepOf,
  ledgerLimits,
  NOW,
} from "../support/build/values.ts";
import { fakeEngine } from "../support/fake-engine.ts";
import type {
  ContainerDescription,
  ImageDescription,
  SandboxDescription,
} from "../support/fake-runtime/describe.ts";
import { listStreams, Refusal, unaryMethods } from "../support/fake-runtime/methods.ts";
import { FakeNode } from "../support/fake-runtime/node.ts";
import { containerd17, type Traits } from "../support/fake-runtime/traits.ts";
import type { Drawn } from "./image-node.ts";

/** With maps of its own, which share no entries with those of another version. */
const copyOf = (ledger: Ledger): Ledger => ledgerCodec.read(ledgerCodec.write(ledger));

const hex = (seed: string): string => new Bun.CryptoHasher("sha256").update(seed).digest("hex");
const some = <const Item>(...items: readonly Item[]) => fc.constantFrom(...items);
const word = some("a", "b", "c");
const minutesAgo = fc.nat(200).map((minutes) => NOW - BigInt(minutes) * 60_000_000_000n);

const tag = fc.tuple(some("r.example/", "", "docker.io/library/"), word, some("", ":v1", ":v2"));
const name = fc.oneof(
  tag.map((parts) => parts.join("")),
  word.map((it) => `r.example/${it}@sha256:${hex(`digest ${it}`)}`),
  word.map((it) => `sha256:${hex(it)}`),
);
const image: fc.Arbitrary<ImageDescription> = fc.record({
  id: word.map((it) => `sha256:${hex(it)}`),
  repoTags: fc.array(
    tag.map((parts) => parts.join("")),
    { maxLength: 2 },
  ),
  repoDigests: fc.array(
    word.map((it) => `r.example/${it}@sha256:${hex(`digest ${it}`)}`),
    { maxLength: 1 },
  ),
  sizeBytes: fc.nat(3).map((count) => BigInt(count) * 1_000_000_000n),
  pinned: some(false, false, false, true),
});
const labels = fc.record({
  "io.kubernetes.pod.uid": some("uid-a", "uid-b"),
  "io.kubernetes.pod.name": some("pod-a", "pod-b"),
  "io.kubernetes.pod.namespace": some("shop", "bank"),
  other: some("x", "y"),
});
const sandbox: fc.Arbitrary<SandboxDescription> = fc.record({
  id: some("sandbox-a", "sandbox-b"),
  uid: some("uid-a", "uid-b"),
  name: some("pod-a", "pod-b"),
  namespace: some("shop", "bank"),
  attempt: fc.nat(2),
  state: some("ready", "not-ready"),
  createdAt: minutesAgo,
  labels: fc.oneof(labels, fc.constant({})),
  image: some("", "r.example/a:v1", "pause:3"),
});
const container: fc.Arbitrary<ContainerDescription> = fc.record({
  id: some("c1", "c2", "c3", "c4"),
  sandboxId: some("sandbox-a", "sandbox-b", "sandbox-x"),
  name: some("app", "init"),
  attempt: fc.nat(2),
  state: some("created", "running", "exited", "unknown"),
  createdAt: minutesAgo,
  image: name,
  imageRef: fc.oneof(name, fc.constant("")),
  imageId: fc.oneof(name, fc.constant("")),
  imageVolumes: fc.oneof(
    fc.constant([]),
    name.map((it) => [it]),
  ),
  logPath: fc.constant(""),
  labels: fc.oneof(labels, fc.constant({})),
});

const podReading: fc.Arbitrary<PodReading> = fc.record({
  kind: fc.constant("ready" as const),
  source: some("cri", "kubelet-dir"),
  pods: fc.array(some("uid-a", "uid-b").map(podUid), { maxLength: 2 }),
  specs: fc.record({
    pods: fc.array(
      fc.record({
        uid: some("uid-a", "uid-b").map(podUid),
        images: fc.array(name, { maxLength: 2 }),
      }),
      { maxLength: 2 },
    ),
    error: some(null, "it is a test"),
  }),
});

const fieldsOf = (thing: object) => fc.subarray(Object.keys(thing).filter((key) => key !== "id"));
const changed = <Kind extends string, To extends object>(kind: Kind, to: fc.Arbitrary<To>) =>
  to.chain((it) => fieldsOf(it).map((fields) => ({ kind, to: it, fields })));
/** Changes one thing by another of its kind, field by field or whole; takes it away; or adds it. */
const change = fc.oneof(
  { weight: 3, arbitrary: changed("image", image) },
  { weight: 3, arbitrary: changed("sandbox", sandbox) },
  { weight: 5, arbitrary: changed("container", container) },
  { weight: 1, arbitrary: podReading.map((to) => ({ kind: "pods" as const, to })) },
  { weight: 2, arbitrary: fc.nat(20).map((pick) => ({ kind: "gone" as const, pick })) },
  { weight: 1, arbitrary: fc.constant({ kind: "turned" as const }) },
);

/** One that is there takes the named fields of `to`; one that is not is added whole. */
function merged<Thing extends object>(
  before: Thing | undefined,
  to: Thing,
  fields: readonly string[],
): Thing {
  if (before === undefined) return to;
  const taken = Object.entries(to).filter(([field]) => fields.includes(field));
  return { ...before, ...Object.fromEntries(taken) };
}

/** What is looked at: the runtime's part, and the pods beside it. */
interface World {
  readonly node: FakeNode;
  pods: PodReading;
}

function apply(world: World, step: Drawn<typeof change>): void {
  const { node } = world;
  switch (step.kind) {
    case "pods":
      world.pods = step.to;
      return;
    case "image": {
      const at = node.images.findIndex(({ id }) => id === step.to.id);
      // An ID may be listed twice.
      if (at < 0 || step.fields.length === 0) node.images.push(step.to);
      else node.images[at] = merged(node.images[at], step.to, step.fields);
      return;
    }
    case "sandbox":
      node.sandboxes.set(step.to.id, merged(node.sandboxes.get(step.to.id), step.to, step.fields));
      return;
    case "container":
      node.containers.set(
        step.to.id,
        merged(node.containers.get(step.to.id), step.to, step.fields),
      );
      return;
    case "gone": {
      const ids = [...node.containers.keys(), ...node.sandboxes.keys()];
      const place = step.pick % (ids.length + node.images.length + 1);
      node.images.splice(place, 1);
      node.containers.delete(ids[place - node.images.length] ?? "");
      node.sandboxes.delete(ids[place - node.images.length] ?? "");
      return;
    }
    case "turned":
      node.images.reverse();
      for (const map of [node.containers, node.sandboxes] as Map<string, never>[]) {
        const entries = [...map].toReversed();
        map.clear();
        for (const [id, it] of entries) map.set(id, it);
      }
  }
}

/** Answers as bytes, without a connection between. */
function channelOf(node: FakeNode, traits: Traits): Channel {
  const speaker = { node, traits, exec: () => 0 };
  const bytesOf = (method: string, answer: object): Buffer =>
    declared.get(method)?.answer(answer) ?? Buffer.alloc(0);
  const answerOf = async (method: string, request: object): Promise<object | undefined> => {
    try {
      return await unaryMethods[method]?.(speaker, { filter: null, ...request });
    } catch (thrown) {
      if (thrown instanceof Refusal && thrown.code === "NOT_FOUND")
        throw new RuntimeError("not-found", thrown.message);
      throw thrown;
    }
  };
  const channel: Channel = {
    endpoint: "unix:///a",
    call: async (method, request, { decode }) => {
      const answer = (await answerOf(method.name, request)) ?? {};
      return decode(method.answer.decode(bytesOf(method.name, answer)));
    },
    list: async (method, request, { onEntry }) => {
      const list = listStreams[method.name]?.(speaker);
      const answers =
        list === undefined
          ? [(await answerOf(method.name, request)) ?? {}]
          : list.items.map((item) => ({ [list.field]: [item] }));
      for (const answer of answers) cutEntries(bytesOf(method.name, answer), onEntry);
    },
    close: () => undefined,
  };
  return channel;
}

const limits: ImageLimits = {
  ...defaultImageLimits,
  highPercent: 50,
  lowPercent: 10,
  minimumAge: duration(0n),
  keepPerRepository: 1,
  keepLoaded: true,
};

async function look(reader: RuntimeReader, world: World, ledger: Ledger): Promise<Snapshot> {
  const keep = keepOf([{ pattern: "r.example/c", source: "--keep" }]);
  const { observe } = fakeEngine({ keep, pods: world.pods }).engine;
  const observer = new Observer({ ...observe, runtime: reader });
  return observer.observe({ ledger, logs: false }, new AbortController().signal);
}

const parts = { containers: "all", images: true } as const;

const next = (ledger: Ledger, snapshot: Snapshot): Ledger =>
  defaultPolicy.remember({ ledger, snapshot, limits: ledgerLimits, parts });

/** Who uses an image is told in the order of the list, which an unchanged list keeps. */
const inOrder = (_: string, value: unknown): unknown => {
  if (typeof value === "bigint") return String(value);
  const users = (value as { readonly users?: readonly object[] } | null)?.users;
  if (!Array.isArray(users)) return value;
  return { ...(value as object), users: users.map((it) => JSON.stringify(it)).toSorted() };
};

/** Of all that is unused, of the disk as it is, and where nothing asks for anything. */
function plansOf(snapshot: Snapshot, ledger: Ledger): unknown {
  const plan = (images: ImageLimits, kind: "all-unused" | "periodic" = "periodic"): Plan =>
    defaultPolicy.decide({ ...factsOf(snapshot, ledger, images), purpose: { kind }, parts });
  const idle = { ...limits, highPercent: 100 };
  const plans = [plan(limits, "all-unused"), plan(limits), plan(idle)];
  return JSON.parse(JSON.stringify(plans, inOrder));
}

test.each([false, true])(
  "entries that change in every field that a rule reads give the plan of a fresh process (streams: %p)",
  async (streams) => {
    const traits = {
      ...containerd17,
      // One that can mount images, so that each container is asked once for those.
      version: "v2.1.0",
      runtimeStreams: streams,
      imageStreams: streams,
    };
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(change, { maxLength: 3 }), { maxLength: 12 }),
        async (looks) => {
          const node = new FakeNode({});
          const world: World = { node, pods: { kind: "none", why: "a test" } };
          const channel = channelOf(node, traits);
          const fresh = () => makeReader({ runtime: channel, image: channel });
          const remembering = fresh();
          let ledger = aLedger({ totalUptime: totalUptime(hours(24)) });
          for (const steps of looks) {
            for (const step of steps) apply(world, step);
            const known = await look(remembering, world, ledger);
            // Nor does it remember the ledger, or the pods, by which it knows what has not changed.
            const copy = copyOf(ledger);
            const apart = { node, pods: structuredClone(world.pods) };
            const unknown = await look(fresh(), apart, copy);
            const after = next(ledger, known);
            const anew = next(copy, unknown);
            expect(copyOf(after)).toEqual(copyOf(anew));
            expect(plansOf(known, after)).toEqual(plansOf(unknown, anew));
            ledger = after;
          }
        },
      ),
      { numRuns: 150 },
    );
  },
  30_000,
);
