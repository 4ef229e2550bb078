// The agent's trace of when images were there and in use, as crigc snapshot --trace writes it.

import { expect, test } from "bun:test";

import { imageId } from "../../../src/model/ids.ts";
import { type NodeTrace, readTrace } from "../../../src/model/trace.ts";
import { until } from "../../support/containerd/until.ts";
import { hexId } from "../../support/fake-runtime/describe.ts";
import { image, quickPasses, startNode, type TestNode } from "./node.ts";

const [app, other] = [image("app"), image("other")];
const web = { id: hexId("web"), sandboxId: "pod", image: "r.example/app:1" };

async function traceOf(node: TestNode): Promise<NodeTrace | undefined> {
  const { exitCode, stdout } = await node.crigc("snapshot", "--trace");
  return exitCode === 0 ? readTrace(stdout) : undefined;
}

const traced = (node: TestNode, what: string, isSo: (trace: NodeTrace) => boolean) =>
  until(what, 20_000, async () => {
    const trace = await traceOf(node);
    return trace !== undefined && isSo(trace) && trace;
  });

test("snapshot --trace shows when images came and went and containers used them, also without a runtime", async () => {
  await using node = await startNode({
    node: { images: [app], sandboxes: [{ id: "pod" }] },
    // Longer than a loaded machine takes for a pass, or the gaps would end the intervals.
    flags: [...quickPasses, "--image-detection-period=10s"],
  });
  const before = await node.crigc("snapshot", "--trace");
  expect([before.exitCode, before.stdout]).toEqual([8, ""]);
  expect(before.stderr).toContain("crigc run records one");
  const agent = node.start("run");
  await traced(node, "the image is there", ({ present }) => present.length === 1);
  node.runtime.node.addContainer(web);
  node.runtime.node.addImage(other);
  await traced(node, "the container uses it", ({ uses }) => uses.length === 1);
  node.runtime.node.containers.delete(web.id);
  node.runtime.node.removeImage(other.id);
  await traced(node, "the container has gone", ({ uses: [use] }) => use?.untilMs !== null);
  expect(await agent.stop()).toBe(0);
  await node.runtime.crash();
  const { stdout } = await node.crigc("snapshot", "--trace");
  expect(stdout).toStartWith('{"kind":"Trace","apiVersion":"crigc/v1","node":"');
  const trace = await traceOf(node);
  expect(trace).toMatchObject({ precisionMs: 10_000, capacityBytes: expect.any(BigInt) });
  expect(trace?.images.map((it) => [it.image, it.names, it.sizeBytes])).toEqual([
    [imageId(app.id), ["r.example/app:1"], 1_000_000n],
    [imageId(other.id), ["r.example/other:1"], 1_000_000n],
  ]);
  const [there, gone] = trace?.present ?? [];
  expect(there).toMatchObject({ image: app.id, untilMs: null });
  expect(gone).toMatchObject({ image: other.id, untilMs: expect.any(Number) });
  const [use] = trace?.uses ?? [];
  expect(use).toMatchObject({ image: app.id, name: "r.example/app:1" });
  expect(use?.untilMs).toBeGreaterThan(use?.fromMs ?? 0);
  expect(trace?.untilMs).toBeGreaterThanOrEqual(use?.untilMs ?? Infinity);
}, 60_000);
