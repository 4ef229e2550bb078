// A large node in the shape of a busy one: containers twice the images, sandboxes half of them, dead ones among both.

import { hexId, imageIdOf, kubernetesLabels } from "../../../test/support/fake-runtime/describe.ts";

/** Messages of CRI, as objects that an encoder takes. */
export interface LargeNode {
  readonly images: readonly Message[];
  readonly containers: readonly Message[];
  readonly sandboxes: readonly Message[];
}

export type Message = { readonly id: string; readonly [field: string]: unknown };

/** Of the images every second one is used; they come in families that share a base, as their sizes say. */
const usedShare = 2;
/** Per sandbox. */
const containersPerSandbox = 4;
/** Of the pods, those whose container was restarted: two dead instances of each go, 5,500 of 20,000 containers. */
const restartedShare = 0.597;
/** Sandboxes that are over and empty, of pods that have a newer one: 393 of 5,000. */
const oldSandboxShare = 0.0786;

const bornAt = 1_767_225_600_000_000_000n;

export function largeNode(images: number): LargeNode {
  const count = Math.floor(images / 2);
  const old = Math.round(count * oldSandboxShare);
  const living = count - old;
  return {
    images: range(images).map(imageOf),
    sandboxes: [
      ...range(living).map((pod) => sandboxOf({ pod, attempt: 1 })),
      ...range(old).map((pod) => sandboxOf({ pod, attempt: 0 })),
    ],
    containers: range(images * 2).map((index) => containerOf(index, { images, living })),
  };
}

const range = (length: number): readonly number[] => Array.from({ length }, (_, index) => index);

const imageOf = (index: number): Message => ({
  id: imageIdOf(index),
  repo_tags: [`registry.example:5000/team-${index % 40}/service-${index}:1.${index % 90}.0`],
  repo_digests: [
    `registry.example:5000/team-${index % 40}/service-${index}@sha256:${hexId(`digest ${index}`)}`,
  ],
  // Below 1 MiB each, of which the disk below need not give anything back.
  size: String(800_000 + (index % 40) * 1_000 + index),
  username: "",
  spec: { image: "" },
  pinned: false,
});

const podOf = (pod: number) => ({
  uid: hexId(`pod ${pod}`).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5"),
  name: `service-${pod % 400}-${hexId(pod).slice(0, 9)}-${hexId(pod).slice(9, 14)}`,
  namespace: `team-${pod % 40}`,
});

function sandboxOf({ pod, attempt }: { readonly pod: number; readonly attempt: number }): Message {
  const metadata = podOf(pod);
  return {
    id: hexId(`sandbox ${pod} ${attempt}`),
    metadata: { ...metadata, attempt },
    state: attempt === 1 ? 0 : 1,
    created_at: String(bornAt + BigInt(attempt)),
    labels: { ...kubernetesLabels(metadata), app: metadata.name, "pod-template-hash": "5f6b7c8d9" },
    annotations: {
      "kubernetes.io/config.seen": "2026-01-01T00:00:00.000000000Z",
      "kubernetes.io/config.source": "api",
    },
    runtime_handler: "",
  };
}

function containerOf(
  index: number,
  { images, living }: { readonly images: number; readonly living: number },
): Message {
  const pod = Math.floor(index / containersPerSandbox) % living;
  const place = index % containersPerSandbox;
  const metadata = podOf(pod);
  // Three dead instances before the one that runs, of which one is kept; or containers that all run.
  const isMore = index >= living * containersPerSandbox;
  const restarted = pod < living * restartedShare && !isMore;
  const name = restarted ? "app" : `app-${isMore ? "more" : place}`;
  const attempt = restarted ? place : 0;
  const image = index % Math.floor(images / usedShare);
  return {
    id: hexId(`container ${index}`),
    pod_sandbox_id: hexId(`sandbox ${pod} 1`),
    metadata: { name, attempt },
    image: { image: imageIdOf(image) },
    image_ref: imageIdOf(image),
    state: restarted && place < containersPerSandbox - 1 ? 2 : 1,
    created_at: String(bornAt + BigInt(index)),
    labels: { ...kubernetesLabels(metadata), "io.kubernetes.container.name": name },
    annotations: {
      "io.kubernetes.container.hash": hexId(image).slice(0, 8),
      "io.kubernetes.container.restartCount": String(attempt),
      "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
      "io.kubernetes.container.terminationMessagePolicy": "File",
      "io.kubernetes.pod.terminationGracePeriod": "30",
    },
  };
}
