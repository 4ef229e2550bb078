import { expect, test } from "bun:test";
import { join } from "node:path";

import { hostOf } from "../../src/engine/node.ts";
import { load } from "../config/loading.ts";
import { put, scratch } from "../support/scratch.ts";

const livingPod = { kind: "ready", pods: ["uid-living"] };

test("a kubelet whose root directory appears after crigc started is found there, with its pods and its disk", async () => {
  const root = join(scratch(), "kubelet");
  const config = load({ flags: [["pod-source", "kubelet-dir"]] });
  const { disk, host } = hostOf(config, () => undefined, [root]);
  const pods = async () => host.pods(AbortSignal.timeout(5_000));
  const nodeRoot = async () =>
    (await disk.filesystems({ images: [], containers: [] })).map(({ path }) => path);
  expect(await pods()).toMatchObject({ kind: "failed" });
  expect(await nodeRoot()).toEqual(["/"]);
  put(root, "pods/uid-living/marker");
  expect(await pods()).toMatchObject(livingPod);
  expect(await nodeRoot()).toEqual([root]);
});

test("specifications are read with every pod source, and a failure is reported each time", async () => {
  const root = scratch();
  put(root, "pods/uid-living/marker");
  const failures: (string | null)[] = [];
  const config = load({
    flags: [
      ["pod-source", "none"],
      ["root-dir", root],
      ["kubelet-endpoint", "http://127.0.0.1:1"],
    ],
  });
  const { host } = hostOf(config, (error) => void failures.push(error));
  const { signal } = new AbortController();
  expect(await host.pods(signal)).toMatchObject({
    kind: "none",
    specs: { pods: [], error: expect.any(String) },
  });
  expect(failures).toEqual([expect.stringContaining("GET http://127.0.0.1:1/pods failed")]);
});
