import { describe, expect, test } from "bun:test";

import { containerId, type ImageId, imageId, podUid } from "../../../src/model/ids.ts";
import type {
  Container,
  ImageVolumes,
  PodReading,
  Resolution,
  Snapshot,
} from "../../../src/model/snapshot.ts";
import { referencesToResolve, usageOf } from "../../../src/policy/image/usage.ts";
import { aContainer, anImage, aSnapshot, idOf } from "../../support/build/values.ts";

const DIGEST = `sha256:${"d1".repeat(32)}`;
const ELSE = `sha256:${"d2".repeat(32)}`;
const THIRD = `sha256:${"d3".repeat(32)}`;
const app = anImage("app", { repoDigests: [`registry.example/app@${DIGEST}`] });
const other = anImage("other");

function node(container: Partial<Container>, change: Partial<Snapshot> = {}): Snapshot {
  return aSnapshot({ images: [app, other], containers: [aContainer("c", container)], ...change });
}

const used = (snapshot: Snapshot): readonly ImageId[] =>
  [...usageOf(snapshot).users.keys()].toSorted();
const answers = (entries: Record<string, Resolution>): Pick<Snapshot, "resolutions"> => ({
  resolutions: new Map(Object.entries(entries)),
});

/** Pods as the kubelet lists them, each of one of these images. */
const specs = (...images: readonly string[]): PodReading => ({
  kind: "none",
  why: "x",
  specs: { pods: images.map((image) => ({ uid: podUid("u"), images: [image] })), error: null },
});

test.each<[string, Partial<Container>]>([
  ["image_id", { imageId: app.id }],
  [
    "image_id without its algorithm, as CRI-O spells it",
    { imageId: app.id.slice("sha256:".length) },
  ],
  ["image_ref that is an ID", { imageRef: app.id }],
  ["image_ref that is a digest", { imageRef: `registry.example/app@${DIGEST}` }],
  ["image_ref that is a digest of another name", { imageRef: `mirror.example/app@${DIGEST}` }],
  ["image_ref that is a bare digest", { imageRef: DIGEST }],
  ["the name it was created from", { imageName: "registry.example/app:v1" }],
  ["the name with tag and digest", { imageName: `registry.example/app:v0@${DIGEST}` }],
])("an image is in use by %s", (_, container) => {
  expect(used(node(container))).toEqual([app.id]);
  expect(usageOf(node(container)).unknown).toEqual([]);
});

test.each([
  ["sha256:", `registry.example/other@${DIGEST}`],
  ["", `registry.example/other@${DIGEST}`],
])(
  "a bare digest that is one image's ID (%sHEX) and another's digest keeps both",
  (start, digest) => {
    const byId = anImage("by-id", { id: imageId(DIGEST.replace("sha256:", start)) });
    const byDigest = anImage("by-digest", { repoDigests: [digest] });
    const images = [byDigest, byId];
    for (const imageRef of [byId.id, DIGEST])
      expect(used(node({ imageRef }, { images }))).toEqual([byDigest.id, byId.id].toSorted());
    expect(used(node({ imageRef: digest }, { images }))).toContain(byDigest.id);
  },
);

test("an image is in use by a name that only the runtime resolves", () => {
  const name = "registry.example/alias:v1";
  const resolutions = answers({ [name]: { kind: "image", id: app.id } });
  expect(used(node({ imageName: name }, resolutions))).toEqual([app.id]);
});

test("the same lists are judged once, also without a pod", () => {
  const snapshot = node({ imageId: app.id });
  expect(usageOf({ ...snapshot })).toBe(usageOf(snapshot));
});

test("an error for a name of no listed image makes use unknown, once, and names the container", () => {
  const name = "registry.example/gone:v1";
  const resolutions = answers({ [name]: { kind: "unknown", message: "deadline passed" } });
  for (const more of [{}, { imageRef: name }]) {
    const words = { imageId: app.id, imageName: name, ...more };
    const { unknown, users } = usageOf(node(words, resolutions));
    expect(unknown).toEqual([
      {
        subject: "container container-c (c)",
        message: `cannot resolve "${name}": deadline passed`,
      },
    ]);
    expect(users.has(app.id)).toBeTrue();
  }
});

describe("an image in a pod specification is looked up by its full name", () => {
  test.each([
    ["a", "docker.io/library/a:latest"],
    ["0", "docker.io/library/0:latest"],
    ["sha256:0123456789ab", "docker.io/library/sha256:0123456789ab"],
    ["team/a:v1", "docker.io/team/a:v1"],
    [`r.example/a:v1@${ELSE}`, `r.example/a@${ELSE}`],
    [ELSE, ELSE],
  ])("%s as %s", (image, asked) => {
    expect(referencesToResolve(aSnapshot({ images: [app, other], pods: specs(image) }))).toEqual([
      asked,
    ]);
  });

  test.each([
    ["tool:v1", "docker.io/library/tool:v1", ["mirror", "short"]],
    ["team/tool:v1", "docker.io/team/tool:v1", ["short"]],
    ["r.example/tool:v1", "r.example/tool:v1", []],
  ])("and %s protects every image that a search registry could make of it", (name, asked, its) => {
    const images = [
      anImage("short", { repoTags: ["quay.io/team/tool:v1"] }),
      anImage("tag", { repoTags: ["quay.io/team/tool:v2"] }),
      anImage("longer", { repoTags: ["quay.io/team/my-tool:v1"] }),
      anImage("mirror", { repoTags: ["m.example/r.example/tool:v1"] }),
    ];
    const absent = answers({ [asked]: { kind: "absent" } });
    expect(used(aSnapshot({ pods: specs(name), ...absent, images }))).toEqual(its.map(idOf));
  });

  test("and protects that name in every tag if the runtime cannot resolve it", () => {
    const images = [
      anImage("one", { repoTags: ["r.example/tool:v1"] }),
      anImage("two", { repoTags: [], repoDigests: [`r.example/tool@${DIGEST}`] }),
      anImage("else", { repoTags: ["s.example/tool:v1"] }),
    ];
    const failed = answers({ "r.example/tool:v9": { kind: "unknown", message: "refused" } });
    const snapshot = aSnapshot({ pods: specs("r.example/tool:v9"), ...failed, images });
    expect(used(snapshot)).toEqual([idOf("one"), idOf("two")].toSorted());
    expect(usageOf(snapshot).unknown).toEqual([]);
  });
});

test("a container whose word only contains the beginning of an ID uses no image for it", () => {
  const prefix = app.id.slice("sha256:".length, 20);
  for (const imageName of [
    `r.example/tool:${prefix}`,
    `r.example/${prefix}-tool:v1`,
    `${prefix}-tool:v1`,
  ]) {
    const whole = imageName.includes("/") ? imageName : `docker.io/library/${imageName}`;
    expect(used(node({ imageName }, answers({ [whole]: { kind: "absent" } })))).toEqual([]);
  }
});

test("two short names unknown to the runtime each protect their own image", () => {
  const containers = ["app", "other"].map((name) => aContainer(name, { imageName: `${name}:v1` }));
  const absent = answers({
    "docker.io/library/app:v1": { kind: "absent" },
    "docker.io/library/other:v1": { kind: "absent" },
  });
  const { users } = usageOf(aSnapshot({ images: [app, other], containers, ...absent }));
  expect(users.get(app.id)).toMatchObject([{ name: "app" }]);
  expect(users.get(other.id)).toMatchObject([{ name: "other" }]);
});

test.each([
  ["protects the latest tag if it has none", "tool", "tool:latest", ["latest"]],
  ["protects no image of another digest", `tool@${THIRD}`, `tool@${THIRD}`, []],
])("a short name unknown to the runtime %s", (_, imageName, asked, words) => {
  const images = [
    anImage("latest", { repoTags: ["quay.io/team/tool:latest"] }),
    anImage("v1", { repoTags: ["quay.io/team/tool:v1"] }),
    anImage("digest", { repoTags: [], repoDigests: [`quay.io/team/tool@${DIGEST}`] }),
    anImage("else", { repoTags: [], repoDigests: [`quay.io/team/tool@${ELSE}`] }),
  ];
  const absent = answers({ [`docker.io/library/${asked}`]: { kind: "absent" } });
  expect(used(node({ imageName }, { images, ...absent }))).toEqual(words.map(idOf));
});

test("only valid names that no listed image has are looked up, sorted", () => {
  const snapshot = node(
    { imageId: app.id, imageRef: "b.example/x:1", imageName: "not a name" },
    { images: [app] },
  );
  expect(referencesToResolve(snapshot)).toEqual(["b.example/x:1"]);
});

test("a container that names no image makes use unknown", () => {
  expect(usageOf(node({})).unknown).toHaveLength(1);
  expect(usageOf(node({ imageName: "not a name" })).unknown).toHaveLength(1);
  expect(usageOf(node({ imageName: "not a name", imageId: app.id })).unknown).toEqual([]);
});

describe("an image volume", () => {
  const mounts = (volumes: ImageVolumes | null): Snapshot =>
    node(
      { imageId: app.id },
      {
        runtime: { ...aSnapshot().runtime, version: "2.1.0" },
        imageVolumes: new Map(volumes === null ? [] : [[containerId("container-c"), volumes]]),
      },
    );

  const subject = "container container-c (c)";
  const message = "its image volumes are unknown";
  test.each([
    [
      "leaves use unknown if its name was not resolved",
      { kind: "known", references: ["r.example/gone:v1"] },
      [expect.objectContaining({ subject: `image volume of ${subject}` })],
    ],
    [
      "leaves use unknown if the status failed",
      { kind: "unknown", message: "internal" },
      [{ subject, message: `${message}: internal` }],
    ],
    [
      "leaves use unknown if the status was not read",
      null,
      [{ subject, message: `${message}: its status was not read` }],
    ],
    ["of a container that was removed leaves nothing unknown", { kind: "gone" }, []],
  ] as const)("%s", (_, volumes, unknown) => {
    expect(usageOf(mounts(volumes)).unknown).toEqual([...unknown]);
    const without = new Set([containerId("container-c")]);
    expect(usageOf(mounts(volumes), without).unknown).toEqual([]);
  });
});

describe("pods and sandboxes", () => {
  const images = [app, other];

  test.each(["registry.example/gone:v1", "not a name"])(
    "an unresolved name of a pod specification leaves nothing unknown: %s",
    (image) => {
      expect(usageOf(aSnapshot({ images, pods: specs(image) })).unknown).toEqual([]);
    },
  );

  test("images of pod specifications are in use, whatever the pod source", () => {
    const pods = specs("registry.example/other:v1");
    const { users, unknown } = usageOf(aSnapshot({ images, pods }));
    expect(users).toEqual(new Map([[other.id, [{ kind: "pod-spec", uid: podUid("u") }]]]));
    expect(unknown).toEqual([]);
  });

  test("a specification never means the beginning of an ID, as a container may", () => {
    const name = app.id.slice("sha256:".length, "sha256:".length + 20);
    const absent = answers({ [`docker.io/library/${name}:latest`]: { kind: "absent" } });
    expect(used(aSnapshot({ images, ...absent, pods: specs(name) }))).toEqual([]);
    expect(used(node({ imageName: name }, absent))).toEqual([app.id]);
  });
});
