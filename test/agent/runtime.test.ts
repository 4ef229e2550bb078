// Connecting to the sockets of the configuration, and what the events of the runtime announce.

import { afterAll, expect, test } from "bun:test";

import { connect, eventSource } from "../../src/agent/runtime.ts";
import type { ContainerEvent } from "../../src/cri/client.ts";
import { messageOf } from "../../src/model/errors.ts";
import { containerId } from "../../src/model/ids.ts";
import { load } from "../config/loading.ts";
import { startFakeRuntime } from "../support/fake-runtime/server.ts";

const runtime = await startFakeRuntime({ node: { images: [{ id: "not-there" }] } });
const images = await startFakeRuntime({ node: { images: [{ id: "there" }] } });
afterAll(() => Promise.all([runtime.stop(), images.stop()]));

const connectedTo = (imageService: string) =>
  connect(
    load({
      flags: [
        ["container-runtime-endpoint", runtime.endpoint],
        ["image-service-endpoint", imageService],
      ],
    }),
  );

test("images are those of the image service, if the configuration names one", async () => {
  const { runtime: connected } = await connectedTo(images.endpoint);
  const listed = await connected.reader.listImages(new AbortController().signal);
  expect(listed.map(({ id }) => String(id))).toEqual(["there"]);
  connected.close();
});

test("a missing socket of the image service is reported at once, with its path", async () => {
  const message = await connectedTo("unix:///tmp/nope.sock").then(() => "connected", messageOf);
  expect(message).toContain("cannot use unix:///tmp/nope.sock as image service: socket not found");
});

const image = `sha256:${"a".repeat(64)}`;

/** What is announced once these events have come, a nanosecond apart. */
function announcedAfter(events: readonly (readonly [ContainerEvent["kind"], string])[]) {
  let nowNs = 0n;
  const source = eventSource(
    {
      watchEvents: async (note) => {
        for (const [kind, id] of events) {
          nowNs += 1n;
          note({ kind, containerId: containerId(id), images: [image] });
        }
      },
    },
    () => nowNs,
  );
  const feed = source.listen(new AbortController().signal);
  return (sinceNs: bigint) =>
    feed.announcedSince(sinceNs).map(({ id, imageName }) => `${id} ${imageName}`);
}

test("a container reported by an event uses its images from then on, and nothing once it was deleted", () => {
  const since = announcedAfter([
    ["created", "gone"],
    ["created", "one"],
    ["started", "two"],
    ["stopped", "gone"],
    ["deleted", "gone"],
  ]);
  expect(since(0n)).toEqual([`one ${image}`, `two ${image}`]);
  expect(since(3n)).toEqual([`two ${image}`]);
  expect(since(4n)).toEqual([]);
});

test("a broken stream does not revoke the uses it reported", async () => {
  const source = eventSource(
    {
      watchEvents: async (note) => {
        note({ kind: "created", containerId: containerId("one"), images: [image] });
        throw new Error("the connection broke");
      },
    },
    () => 1n,
  );
  const feed = source.listen(new AbortController().signal);
  await Bun.sleep(0);
  expect(feed.announcedSince(0n)).toHaveLength(1);
});
