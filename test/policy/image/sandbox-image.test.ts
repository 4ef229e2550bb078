import { describe, expect, test } from "bun:test";

import { sandboxId } from "../../../src/model/ids.ts";
import type { ImageKeepReason } from "../../../src/model/reason.ts";
import { sandboxImageReason, sandboxNames } from "../../../src/policy/image/protect.ts";
import { anImage, aSnapshot, idOf } from "../../support/build/values.ts";

interface Named {
  readonly runtime?: readonly string[];
  readonly sandbox?: string;
  readonly flag?: readonly string[];
}

function reasonOf(tag: string, named: Named): ImageKeepReason | null {
  const plain = aSnapshot();
  const snapshot = {
    runtime: { ...plain.runtime, sandboxImages: named.runtime ?? [] },
    sandboxImages: new Map([[sandboxId("s"), named.sandbox ?? ""]]),
  };
  return sandboxImageReason(
    sandboxNames(snapshot, named.flag ?? []),
    anImage("x", { repoTags: [tag] }),
  );
}

describe("pause images are known by their names", () => {
  for (const tag of [
    "registry.k8s.io/pause:3.10",
    "k8s.gcr.io/pause-amd64:3.1",
    "docker.io/rancher/mirrored-pause:3.6",
    "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/pause:3.5",
    "mcr.microsoft.com/oss/kubernetes/pause:3.9",
    "localhost/kubernetes/pause:latest",
    "host:5000/pause:3.9",
    "pause:3.9",
  ]) {
    test(tag, () =>
      expect(reasonOf(tag, {})).toEqual({ kind: "sandbox-image", by: "pattern", name: tag }),
    );
  }

  for (const tag of [
    "registry.example/unpause:1",
    "registry.example/pause/app:1",
    "registry.example/app:pause",
  ]) {
    test(`${tag} is none`, () => expect(reasonOf(tag, {})).toBeNull());
  }
});

test("names from the runtime, a sandbox or the flag are normalised before comparison", () => {
  const custom = "docker.io/library/infra:1";
  expect(reasonOf(custom, { runtime: ["infra:1"] })).toMatchObject({ by: "runtime" });
  expect(reasonOf(custom, { sandbox: "docker.io/infra:1" })).toMatchObject({ by: "runtime" });
  expect(reasonOf(custom, { flag: ["infra"] })).toMatchObject({ by: "flag" });
  expect(reasonOf(custom, { flag: ["infra:2"] })).toBeNull();
});

test("the sandbox image may be named by its ID", () => {
  expect(reasonOf("registry.example/x:1", { runtime: [idOf("x")] })).toMatchObject({
    by: "runtime",
    name: idOf("x"),
  });
});

test("an invalid sandbox image name protects nothing and breaks nothing", () => {
  expect(reasonOf("registry.example/x:1", { runtime: ["", "not a name"], flag: [""] })).toBeNull();
});
