import { expect, test } from "bun:test";

import type { Criterion, ImagePlan, Purpose, Selection } from "../../src/model/plan.ts";
import { type Duration, minutes, totalUptime } from "../../src/model/time.ts";
import { recheckImages } from "../../src/policy/image/judge.ts";
import { isByName, selectionOf } from "../../src/policy/selection.ts";
import { aContainer, anImage, idOf } from "../support/build/values.ts";
import { decideAlone, fateOf, inputOf, kubeletOn, WATCHED } from "./judging.ts";

const app = anImage("app", { sizeBytes: 100n });
const web = anImage("web", { sizeBytes: 200n });
const bare = anImage("bare", { repoTags: ["", "<none>:v1"], sizeBytes: 300n });
const images = [app, web, bare];
/** The app was used a minute ago, the others were unused for hours. */
const records = [{ lastUsedUptime: totalUptime(WATCHED - minutes(1)) }];

function planned(selection: Selection): ImagePlan {
  const used = [aContainer("c", { imageId: idOf("web"), podNamespace: "shop" })];
  const facts = inputOf({ images, records, snapshot: { containers: used } });
  // Judged as if the container were removed by this pass.
  return decideAlone(
    { ...facts, purpose: { kind: "all-unused", only: selection } },
    new Set(used.map(({ id }) => id)),
  );
}
const chosen = (...selection: readonly Criterion[]): readonly string[] =>
  planned(selection)
    .candidates.map(({ image }) => image.id)
    .map((id) => images.find((image) => image.id === id))
    .map((image) => (image === app ? "app" : image === web ? "web" : "bare"))
    .toSorted();

const anId = (word: string): Criterion => ({ kind: "id", id: idOf(word) });
const named = (pattern: string): Criterion => ({ kind: "reference", pattern });
const unused = (span: Duration): Criterion => ({ kind: "unused-for", span });
const larger = (bytes: bigint): Criterion => ({ kind: "larger-than", bytes });
const usedIn = (name: string): Criterion => ({ kind: "namespace", name });

test.each<[string, readonly Criterion[], readonly string[]]>([
  ["of an ID selects only that image", [anId("web")], ["web"]],
  ["of a pattern matches names", [named("registry.example/a*")], ["app"]],
  ["of an invalid pattern selects nothing", [named("")], []],
  ["of time unused counts from the last use", [unused(minutes(2))], ["bare", "web"]],
  [
    "of time unused includes an image unused for exactly that long",
    [unused(minutes(1))],
    ["app", "bare", "web"],
  ],
  ["of untagged images selects those without a tag", [{ kind: "untagged" }], ["bare"]],
  ["of larger images excludes that very size", [larger(200n)], ["bare"]],
  ["of a namespace selects the images that its containers use", [usedIn("shop")], ["web"]],
  ["of another namespace selects nothing", [usedIn("other")], []],
  ["of one kind of criterion adds up", [anId("web"), anId("app")], ["app", "web"]],
  ["of several kinds narrows down", [larger(100n), anId("web"), anId("app")], ["web"]],
  ["without a criterion selects nothing", [], []],
])("a selection %s", (_, selection, expected) => {
  expect(chosen(...selection)).toEqual([...expected]);
});

test("only a purpose with isByName removes images by name", () => {
  const purposes: readonly Purpose[] = [
    { kind: "periodic" },
    { kind: "all-unused" },
    { kind: "all-unused", isByName: false },
    { kind: "all-unused", isByName: true },
  ];
  expect(purposes.map(isByName)).toEqual([false, false, false, true]);
});

test("an image with tags reported as none is untagged, one with a single tag is not", () => {
  const none = anImage("none", { repoTags: ["<none>:<none>"] });
  const mixed = anImage("mixed", { repoTags: ["<none>:<none>", "registry.example/mixed:1"] });
  const plan = decideAlone({
    ...inputOf({ images: [none, mixed] }),
    purpose: { kind: "all-unused", only: [{ kind: "untagged" }] },
  });
  expect([none, mixed].map((image) => fateOf(plan, image))).toEqual(["goes", "not-selected"]);
});

test("only a purpose with a selection has one", () => {
  const only: Selection = [usedIn("shop")];
  expect(selectionOf({ kind: "periodic" })).toBeNull();
  expect(selectionOf({ kind: "all-unused" })).toBeNull();
  expect(selectionOf({ kind: "all-unused", only })).toBe(only);
});

test.each(["crigc", "kubelet"])(
  "an image selected by a namespace still goes once the containers of the namespace are removed, by the rules of %s",
  (whose) => {
    const container = aContainer("c", { imageId: idOf("web"), podNamespace: "shop" });
    const purpose: Purpose = { kind: "all-unused", only: [usedIn("shop")] };
    const facts = { ...inputOf({ images, snapshot: { containers: [container] } }), purpose };
    const [candidate] = decideAlone(facts, new Set([container.id])).candidates;
    const now = { ...facts, snapshot: { ...facts.snapshot, containers: [] } };
    const manager = kubeletOn(now);
    const recheck = whose === "crigc" ? recheckImages(now) : manager.recheck(now);
    expect(recheck(candidate!, new Set())).toBeNull();
  },
);
