import { describe, expect, test } from "bun:test";

import type { Snapshot } from "../../../src/model/snapshot.ts";
import { instant, minutes, seconds } from "../../../src/model/time.ts";
import { recheckImages } from "../../../src/policy/image/recheck.ts";
import {
  aContainer,
  aFilesystem,
  anImage,
  aSandbox,
  GIB,
  NOW,
} from "../../support/build/values.ts";
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

test("on the same facts the candidate may go", () => {
  expect(again({})).toBeNull();
});

describe("what changed since the plan stops its removal", () => {
  test("a container that came", () => {
    expect(
      again({ containers: [aContainer("new", { imageId: app.id, state: "created" })] }),
    ).toMatchObject({ kind: "in-use" });
  });

  test("a pin", () =>
    expect(again({ images: [{ ...app, pinned: true }, other] })).toEqual({ kind: "pinned" }));

  test("a name that moved to it, or away", () => {
    for (const repoTags of [[], ["registry.example/app:v1", "registry.example/app:v2"]]) {
      expect(again({ images: [{ ...app, repoTags }, other] })).toMatchObject({ kind: "changed" });
    }
  });

  test("its disappearance", () =>
    expect(again({ images: [other] })).toMatchObject({ kind: "changed" }));

  test("a keep rule that became invalid, with its file and line", () => {
    const problems = [{ source: "/keep.d/site.list:2", message: "it is no pattern" }];
    expect(again({ keep: { rules: [], problems, directoriesRead: [] } })).toEqual({
      kind: "blocked",
      block: "keep-rules-invalid",
      detail: "/keep.d/site.list:2: it is no pattern",
    });
  });

  test("a container whose image cannot be told", () => {
    const containers = [aContainer("new", { imageName: "registry.example/gone:1" })];
    expect(again({ containers })).toEqual({
      kind: "blocked",
      block: "usage-unknown",
      detail: expect.stringContaining("registry.example/gone:1"),
    });
  });
});

test("that the disk is relieved meanwhile is for the measure to say, not for this", () => {
  expect(again({ filesystems: [aFilesystem({ availableBytes: 90n * GIB })] })).toBeNull();
});

test("a pod that began to start during a long pass holds removal up, by when the lists were read", () => {
  const observedAt = instant(NOW + minutes(30));
  const sandboxes = [aSandbox("s", { createdAt: instant(observedAt - seconds(5)) })];
  expect(again({ observedAt, sandboxes })).toEqual({ kind: "blocked", block: "pod-starting" });
  expect(again({ observedAt, sandboxes }, { facts: { waitedForPods: minutes(2) } })).toBeNull();
});

test("for the kubelet names mean nothing, and an image that goes for age may be young", () => {
  const node: Node = { limits: { compat: "kubelet" } };
  expect(again({ images: [{ ...app, repoTags: [] }, other] }, node)).toBeNull();
});
