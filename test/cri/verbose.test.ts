// Verbose answers are searched for image names, and never stop anybody.
import { describe, expect, test } from "bun:test";

import { imageConfig, sandboxImagesOf } from "../../src/cri/decode.ts";
import { toRfc3339 } from "../../src/model/time.ts";

const info = (entries: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(entries).map(([key, value]) => [
      key,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );

describe("the sandbox image", () => {
  test.each<[string, Readonly<Record<string, unknown>>, readonly string[]]>([
    [
      "containerd 1.x, among its configuration",
      {
        cniconfig: { PluginDirs: ["/opt/cni/bin"] },
        config: { containerd: { snapshotter: "overlayfs" }, sandboxImage: "pause:3.8" },
        golang: "go1.22.2",
      },
      ["pause:3.8"],
    ],
    ["CRI-O", { config: { sandboxImage: "pause:3.10" } }, ["pause:3.10"]],
    ["its own spelling", { config: { image: { pause_image: "pause:1" } } }, ["pause:1"]],
    ["two that differ", { a: { sandbox_image: "x:1" }, b: { pauseImage: "y:1" } }, ["x:1", "y:1"]],
    ["containerd 2", { config: { containerd: {}, imageDecryption: { keyModel: "node" } } }, []],
    ["nothing", {}, []],
    ["no JSON", { config: "{not json", golang: "go1.22" }, []],
    ["an empty name", { config: { sandboxImage: "" } }, []],
    ["something that is no name", { config: { sandboxImage: { name: "x" } } }, []],
  ])("is read from %s", (_, entries, images) => {
    expect(sandboxImagesOf(info(entries))).toEqual(images);
  });

  test("in a document of any depth is read or left out, without an error", () => {
    for (const depth of [50, 5000, 500_000]) {
      const deep = `${'{"a":'.repeat(depth)}{"sandboxImage":"x"}${"}".repeat(depth)}`;
      expect(["", "x"]).toContain(sandboxImagesOf(info({ config: deep })).join());
    }
  });
});

const diff = (digit: string): string => `sha256:${digit.repeat(64)}`;
const origin = (spec: unknown) => imageConfig({ info: JSON.stringify({ imageSpec: spec }) });
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

  test("come with the build date if the image has one", () => {
    const { builtAt } = origin({ created: "2026-01-02T03:04:05.678Z" });
    expect(builtAt === null ? null : toRfc3339(builtAt)).toBe("2026-01-02T03:04:05.678Z");
    expect(origin({ created: "yesterday" }).builtAt).toBeNull();
  });
});
