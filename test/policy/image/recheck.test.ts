import { describe, expect, test } from "bun:test";

import type { ImageId } from "../../../src/model/ids.ts";
import type { OriginRecord } from "../../../src/model/ledger.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { judgeImages, recheckImages } from "../../../src/policy/image/judge.ts";
import { aContainer, aFilesystem, anImage, GIB } from "../../support/build/values.ts";
import { inputOf, type Node, planOf } from "../judging.ts";

const app = anImage("app");
const other = anImage("other");

function again(fresh: Partial<Snapshot>, node: Node = {}): unknown {
  const whole: Node = { images: [app, other], ...node };
  const candidate = planOf(whole).candidates.find(({ image }) => image.id === app.id);
  if (candidate === undefined) throw new Error("the image under test is no candidate of its plan");
  const input = inputOf(whole);
  return recheckImages({ ...input, snapshot: { ...input.snapshot, ...fresh } })(candidate);
}

test("an unchanged candidate may be removed", () => {
  expect(again({})).toBeNull();
});

test("images are not put in order again: the plan's order counts", () => {
  const whole: Node = { images: [app, other] };
  const [candidate] = planOf(whole).candidates;
  if (candidate === undefined) throw new Error("the plan has no candidate");
  const input = inputOf(whole);
  // Images that are as old as one another are ordered by when they were built.
  class Origins extends Map<ImageId, OriginRecord> {
    override get(): never {
      throw new Error("images are compared");
    }
  }
  const ordered = { ...input, ledger: { ...input.ledger, origins: new Origins() } };
  expect(recheckImages(ordered)(candidate)).toBeNull();
  expect(() => judgeImages(ordered, { without: new Set(), selection: null }).images()).toThrow(
    "images are compared",
  );
});

describe("a change since the plan stops a removal", () => {
  test("a new container", () => {
    expect(
      again({ containers: [aContainer("new", { imageId: app.id, state: "created" })] }),
    ).toMatchObject({ kind: "in-use" });
  });

  test("a pin", () =>
    expect(again({ images: [{ ...app, pinned: true }, other] })).toEqual({ kind: "pinned" }));

  test("a tag that moved to or from the image", () => {
    for (const repoTags of [[], ["registry.example/app:v1", "registry.example/app:v2"]]) {
      expect(again({ images: [{ ...app, repoTags }, other] })).toMatchObject({ kind: "changed" });
    }
  });

  test("the image's disappearance", () =>
    expect(again({ images: [other] })).toMatchObject({ kind: "changed" }));

  test("a keep rule that became invalid, with its file and line", () => {
    const problems = [{ source: "/keep.d/site.list:2", message: "it is no pattern" }];
    expect(again({ keep: { rules: [], problems, directoriesRead: [] } })).toEqual({
      kind: "blocked",
      block: "keep-rules-invalid",
      detail: "/keep.d/site.list:2: it is no pattern",
    });
  });

  test("pods that can no longer be read", () => {
    const pods = { kind: "failed", source: "kubelet-api", message: "timeout" } as const;
    expect(again({ pods })).toEqual({ kind: "blocked", block: "pods-unknown" });
  });

  test("a container whose image is unknown", () => {
    const containers = ["a", "b"].map((name) =>
      aContainer(name, { imageName: `registry.example/gone:${name}` }),
    );
    expect(again({ containers })).toEqual({
      kind: "blocked",
      block: "usage-unknown",
      detail: expect.stringMatching(/ "registry.example\/gone:a".*; .* "registry.example\/gone:b"/),
    });
  });
});

test("a relieved disk does not stop a removal here, because measuring does", () => {
  expect(again({ filesystems: [aFilesystem({ availableBytes: 90n * GIB })] })).toBeNull();
});

test("with compat kubelet names do not matter, and an image removed for age may be young", () => {
  const node: Node = { limits: { compat: "kubelet" } };
  expect(again({ images: [{ ...app, repoTags: [] }, other] }, node)).toBeNull();
});
