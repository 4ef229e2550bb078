// The layers of an image are read from its verbose status, and nothing else is taken for layers.
import { describe, expect, test } from "bun:test";

import fc from "fast-check";

import { imageOrigin } from "../../src/cri/verbose.ts";
import { toRfc3339 } from "../../src/model/time.ts";

const diff = (digit: string): string => `sha256:${digit.repeat(64)}`;
const origin = (spec: unknown) => imageOrigin({ info: JSON.stringify({ imageSpec: spec }) });
const layers = (diffIds: unknown) => origin({ rootfs: { type: "layers", diff_ids: diffIds } });

describe("the layers of a verbose image status", () => {
  test("give the chain of each layer: its diff ID first, then the digest of the chain so far and the next diff ID", () => {
    const second = new Bun.CryptoHasher("sha256").update(`${diff("a")} ${diff("b")}`).digest("hex");
    const third = new Bun.CryptoHasher("sha256")
      .update(`sha256:${second} ${diff("a")}`)
      .digest("hex");
    expect(layers([diff("a"), diff("b"), diff("a")]).chain as readonly string[]).toEqual([
      diff("a"),
      `sha256:${second}`,
      `sha256:${third}`,
    ]);
  });

  test.each([
    ["an OCI artifact without a root filesystem", {}],
    ["an empty list", { rootfs: { diff_ids: [] } }],
    ["a list with something that is no digest", { rootfs: { diff_ids: [diff("a"), "b"] } }],
    ["a digest in capitals", { rootfs: { diff_ids: [diff("A")] } }],
    ["a number", { rootfs: { diff_ids: [1] } }],
    ["a text in place of the list", { rootfs: { diff_ids: diff("a") } }],
    ["more layers than any image has", { rootfs: { diff_ids: Array(1025).fill(diff("a")) } }],
  ])("are unknown if the document has %s", (_, spec) => {
    expect(origin(spec).chain).toBeNull();
  });

  test("are unknown if the status has no document", () => {
    expect(imageOrigin({})).toEqual({ chain: null, builtAt: null });
  });

  test("never make reading fail, whatever the runtime returns", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (info) => {
        imageOrigin({ info });
      }),
    );
  });

  test("come with the build date if the image has one", () => {
    const { builtAt } = origin({ created: "2026-01-02T03:04:05.678Z" });
    expect(builtAt === null ? null : toRfc3339(builtAt)).toBe("2026-01-02T03:04:05.678Z");
    expect(origin({ created: "yesterday" }).builtAt).toBeNull();
  });
});
