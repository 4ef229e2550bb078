// Connecting to the sockets of the configuration.

import { afterAll, expect, test } from "bun:test";

import { connect } from "../../src/engine/node.ts";
import { messageOf } from "../../src/model/errors.ts";
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
  expect(message).toContain("cannot use the image service: unix:///tmp/nope.sock was not found");
});
