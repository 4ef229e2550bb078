// What the audit finds on a node, and that a healthy one gives no finding at all.

import { describe, expect, test } from "bun:test";

import { prepareRecorded } from "../../src/gc/read-only.ts";
import { imageId, podUid, sandboxId } from "../../src/model/ids.ts";
import type { Ledger } from "../../src/model/ledger.ts";
import type { PullIntentRecord } from "../../src/model/records.ts";
import type { AuditFinding, PastRemoval } from "../../src/model/reports.ts";
import type {
  Container,
  Filesystem,
  Image,
  Resolution,
  Snapshot,
} from "../../src/model/snapshot.ts";
import { hours, minutes, plus, watched } from "../../src/model/time.ts";
import { auditFindings } from "../../src/policy/audit.ts";
import { auditCommands } from "../../src/report/audit.ts";
import { noLogs } from "../support/build/pods.ts";
import {
  aContainer,
  aFilesystem,
  aGhost,
  aLedger,
  anImage,
  aRecord,
  aSandbox,
  aSnapshot,
  defaultLimits,
  GIB,
  keepOf,
  MIB,
  NOW,
} from "../support/build/values.ts";

const app = anImage("app");
/** A node on which everything has its reason: the disk is full of its images. */
const healthy: Partial<Snapshot> = {
  images: [app],
  sandboxes: [aSandbox("a")],
  containers: [aContainer("web", { imageId: app.id })],
  filesystems: [
    aFilesystem({ roles: ["imagefs"], availableBytes: 95n * GIB, imageUsedBytes: 200n * MIB }),
  ],
};

/** Every image was seen a day ago, so none is kept for its youth. */
const seen = (images: readonly Image[] = []): Ledger =>
  aLedger({ images: new Map(images.map(({ id }) => [id, aRecord()])) });

function findings(
  change: Partial<Snapshot>,
  ledger: Ledger = seen(change.images),
  removals: readonly PastRemoval[] = [],
): readonly AuditFinding[] {
  const snapshot = aSnapshot({ ...healthy, ...change });
  return auditFindings({
    removals,
    ...prepareRecorded(
      { snapshot, ledger },
      {
        limits: defaultLimits,
        purpose: { kind: "periodic" },
        parts: { containers: "all", images: true },
        hold: { kind: "none" },
        startedAt: null,
      },
    ),
  });
}

const digest = `registry.example/app@sha256:${"d".repeat(64)}`;
const madeUp = `import-2026-01-31@sha256:${"d".repeat(64)}`;
const untagged = anImage("untagged", { repoTags: [], repoDigests: [digest] });

const imported = { ...untagged, repoDigests: [madeUp] };
const both = { ...untagged, repoDigests: [madeUp, digest] };
const nameless = anImage("bare", {
  repoTags: ["<none>:<none>", ""],
  repoDigests: [`<none>@sha256:${"d".repeat(64)}`],
});
const used = anImage("used", { repoTags: [] });
const onlyDigest = anImage("bare", { repoTags: [], repoDigests: [`sha256:${"d".repeat(64)}`] });
const manifest = { path: "/m/a.yaml", images: ["registry.example/app:v1"], fault: null };
const hidden = imageId(`sha256:${"e".repeat(64)}`);
const foreign = aSandbox("f", { podUid: podUid("") });
const inside = aContainer("inside", { imageId: app.id, podUid: podUid("other") });
const orphan = aContainer("orphan", { imageId: app.id, sandboxId: sandboxId("gone") });
const layers = aFilesystem({
  roles: ["containerfs"],
  path: "/layers",
  device: "8:2",
  availableBytes: 10n * GIB,
});
const isKept = keepOf([{ pattern: "registry.example/app", source: "a.list:1" }]);

const beside = (image: Image): Partial<Snapshot> => ({ images: [app, image] });
const lost = (image: Image, removable = true) => ({ kind: "untagged-image", image, removable });
const bytesOn = (filesystem: string) => ({ kind: "unexplained-bytes", filesystem });

const GONE = "registry.example/gone:1";
/** A container of that image, and what the runtime says of its name. */
const goneImage = (resolution: Resolution, words: Partial<Container> = {}): Partial<Snapshot> => ({
  containers: [aContainer("web", { imageName: GONE, ...words })],
  resolutions: new Map([[GONE, resolution]]),
});
const bare = (words: Partial<Container>): Partial<Snapshot> =>
  goneImage({ kind: "absent" }, { imageName: "", podName: "", ...words });
const unresolved = (reference: string) => ({ kind: "unresolved-reference", reference });
const missing = {
  ...unresolved(GONE),
  message: "container web (running) of pod none names it, but the runtime has no such image",
};
/** A store of this size beside an image of 100 MiB: it may take five times that, and some slack. */
const store = (imageUsedBytes: bigint): Partial<Snapshot> => ({
  filesystems: [aFilesystem({ roles: ["imagefs"], availableBytes: 95n * GIB, imageUsedBytes })],
});
/** The runtime counts no bytes of images, so that these are their reported sizes. */
const unexplained = (bytes: bigint): Partial<Snapshot> => ({
  filesystems: [
    aFilesystem({
      roles: ["imagefs"],
      availableBytes: 100n * GIB - app.sizeBytes - bytes,
      imageUsedBytes: 0n,
    }),
  ],
});
const disks = (more: Filesystem): Partial<Snapshot> => ({
  filesystems: [...(healthy.filesystems ?? []), more],
});

describe("the audit finds", () => {
  test.each<[string, Partial<Snapshot>, readonly object[]]>([
    ["nothing on a node where everything has its reason", {}, []],
    [
      "images without a name, and whether they are in use",
      { images: [nameless, used], containers: [aContainer("web", { imageId: used.id })] },
      [
        { kind: "nameless-image", image: nameless, inUse: false, removable: true },
        { kind: "nameless-image", image: used, inUse: true, removable: false },
      ],
    ],
    ["unused images that lost their tag", beside(untagged), [lost(untagged)]],
    ["no pinned image that lost its tag", beside({ ...untagged, pinned: true }), []],
    ["that a rule keeps an image", { ...beside(untagged), keep: isKept }, [lost(untagged, false)]],
    ["as untagged what has only a digest without a name", beside(onlyDigest), [lost(onlyDigest)]],
    ["as untagged what has a made-up name and another one", beside(both), [lost(both)]],
    [
      "images that have only the made-up name of an import",
      beside(imported),
      [{ kind: "made-up-name", image: imported, inUse: false, removable: true }],
    ],
    [
      "sandboxes and containers that no pod owns, and containers without their sandbox",
      { sandboxes: [aSandbox("a"), foreign], containers: [inside, orphan] },
      [
        { kind: "foreign-sandbox", sandbox: foreign },
        { kind: "foreign-container", container: inside },
        { kind: "orphan-container", container: orphan },
      ],
    ],
    ["no unexplained bytes up to a tenth of the filesystem", unexplained(10n * GIB), []],
    [
      "bytes that no image explains, from that on",
      unexplained(10n * GIB + 1n),
      [bytesOn("/var/lib/containerd")],
    ],
    ["unexplained bytes on a filesystem of writable layers", disks(layers), [bytesOn("/layers")]],
    ["none on another filesystem", disks({ ...layers, roles: ["nodefs"] }), []],
    ["no image store that its images explain", store(756n * MIB), []],
    [
      "an image store larger than its images explain",
      store(756n * MIB + 1n),
      [{ kind: "unexplained-store-bytes", usedBytes: 756n * MIB + 1n, images: 1 }],
    ],
    ["a container without a pod whose imageRef is no image", bare({ imageRef: GONE }), [missing]],
    ["a container without a pod whose imageId is no image", bare({ imageId: GONE }), [missing]],
    [
      "a container without its image although a static pod uses another one",
      { ...goneImage({ kind: "absent" }), pods: { kind: "none", why: "x", manifests: [manifest] } },
      [unresolved(GONE)],
    ],
    [
      "an image in use that is missing from the list",
      goneImage({ kind: "image", id: hidden }),
      [unresolved(hidden)],
    ],
    [
      "a use that could not be read, once",
      goneImage({ kind: "unknown", message: "deadline" }),
      [{ kind: "unknown-use", subject: "container container-web (web)" }],
    ],
    [
      "stray entries in the pod log directory",
      { logs: { ...noLogs, strays: ["lost+found"] } },
      [{ kind: "stray-log-entry", directory: "/var/log/pods", entry: "lost+found" }],
    ],
    [
      "log directories that could not be read",
      { logs: { kind: "failed", message: "cannot open /l" } },
      [{ kind: "unread-logs", message: "cannot open /l" }],
    ],
  ])("%s", (_, change, expected) => {
    expect(findings(change)).toMatchObject([...expected]);
  });

  test("an image that was removed and is still listed", () => {
    const ghost = aGhost({ attempts: 3 });
    const ledger = aLedger({ images: new Map([[app.id, aRecord({ ghost })]]) });
    expect(findings({}, ledger)).toEqual([
      { kind: "ghost-image", image: app, since: NOW, attempts: 3 },
    ]);
  });

  test("names of images if the plan is for containers alone", () => {
    const snapshot = aSnapshot({ ...healthy, images: [app, untagged] });
    const plan = { containers: null, images: null };
    expect(auditFindings({ removals: [], snapshot, ledger: seen([app]), plan })).toEqual([
      { kind: "untagged-image", image: untagged, removable: true },
    ]);
  });

  describe("of the kubelet's pull records", () => {
    const record = { imageRef: "x", names: ["registry.example/app"], isForAllPods: false };
    const pulls = (change: object = {}): Snapshot["pulls"] => ({
      kind: "read",
      directory: "/k",
      unreadable: [],
      unlisted: [],
      intents: null,
      recorded: new Map([[app.id, ["r"]]]),
      records: [{ ...record, file: "r" }],
      ...change,
    });
    const fromRegistry = anImage("app", { repoDigests: [digest] });
    const images = [fromRegistry];
    const keep = keepOf([
      { pattern: "registry.example/app", source: "/etc/crigc/keep.d/baseline.list:12" },
    ]);

    test("those that demand credentials for an image of the baseline, or of an archive", () => {
      const found = (because: string, image: Image) => [
        { kind: "pull-needs-credentials", image, path: "/k/pulled/r", because },
      ];
      expect(findings({ images, pulls: pulls() })).toEqual([]);
      expect(findings({ images, pulls: pulls(), keep })).toMatchObject(
        found("baseline", fromRegistry),
      );
      const byHand = keep.rules.map((rule) => ({ ...rule, source: "/etc/crigc/keep.d/a.list:1" }));
      const elsewhere = { ...keep, rules: byHand };
      expect(findings({ images, pulls: pulls(), keep: elsewhere })).toEqual([]);
      const loaded = anImage("app", { repoDigests: [] });
      expect(findings({ images: [loaded], pulls: pulls() })).toMatchObject(found("loaded", loaded));
      const ledger = aLedger({ images: new Map([[app.id, aRecord({ pull: "no-record" })]]) });
      expect(findings({ images, pulls: pulls() }, ledger)).toMatchObject(
        found("loaded", fromRegistry),
      );
      const forAll = pulls({ records: [{ ...record, file: "r", isForAllPods: true }] });
      expect(findings({ images: [loaded], pulls: forAll })).toEqual([]);
      expect(findings({ images: [loaded], pulls: pulls({ records: undefined }) })).toEqual([]);
    });

    test("those that are not valid", () => {
      const records = [{ file: "r", imageRef: null, names: [], isForAllPods: false }];
      expect(findings({ images, pulls: pulls({ records }) })).toMatchObject([
        { kind: "broken-pull-record", path: "/k/pulled/r" },
      ]);
    });

    test("records and intents whose image is not on the node", () => {
      const stale = pulls({ recorded: new Map(), unlisted: ["r", "s"] });
      const intent: PullIntentRecord = {
        markedAt: NOW,
        firstSeenWatched: watched(0n),
        endedWatched: null,
      };
      const ledger = aLedger({
        images: new Map([[app.id, aRecord()]]),
        pullIntents: new Map([
          ["r.example/gone", intent],
          ["registry.example/app:v1", intent],
          ["r.example/now", { ...intent, firstSeenWatched: watched(hours(24)) }],
          ["r.example/ended", { ...intent, endedWatched: watched(1n) }],
        ]),
      });
      expect(findings({ images, pulls: stale }, ledger)).toEqual([
        {
          kind: "stale-pull-record",
          path: "/k/pulled/r",
          imageRef: "x",
          names: ["registry.example/app"],
        },
        { kind: "stale-pull-record", path: "/k/pulled/s", imageRef: null, names: [] },
        { kind: "stale-pull-intent", name: "r.example/gone", directory: "/k/pulling" },
      ]);
    });
  });
});

describe("commands", () => {
  const { runtime } = aSnapshot();
  const finding = (image = untagged, removable = true): AuditFinding => ({
    kind: "untagged-image",
    image,
    removable,
  });

  test("of findings remove only images that nothing keeps", () => {
    const words = (removable: boolean): string =>
      auditCommands(finding(untagged, removable), runtime).join("\n");
    expect(words(true)).toContain(` rmi ${untagged.id}`);
    expect(words(false)).not.toContain(" rmi ");
  });

  test("of findings quote text from the runtime as one shell word", () => {
    const image = { ...untagged, id: imageId("x'; rm -rf / #") };
    expect(auditCommands(finding(image), runtime)[0]).toEndWith(`inspecti 'x'\\''; rm -rf / #'`);
    const option = { ...untagged, id: imageId("--all") };
    expect(auditCommands(finding(option), runtime)[1]).toEndWith("rmi -- '--all'");
  });
});

describe("content that something else keeps", () => {
  const removal = (change: Partial<PastRemoval> = {}): PastRemoval => ({
    names: ["registry.example/app:1"],
    measuredBytes: 1n * MIB,
    freesAtLeastBytes: 10n * MIB,
    settled: "at-once",
    at: NOW,
    ...change,
  });
  const keptContent = (...removals: readonly PastRemoval[]) => findings({}, seen([app]), removals);

  test("is found if a removal gained less than three quarters of its lower bound, and added up by repository", () => {
    const later = plus(NOW, minutes(5));
    const removals = [
      removal({ names: ["registry.example/app:2"], measuredBytes: 7n * MIB, at: later }),
      removal({ measuredBytes: 7n * MIB }),
      removal({
        names: ["registry.example/other:1"],
        measuredBytes: 0n,
        freesAtLeastBytes: 15n * MIB,
      }),
      removal({ names: ["registry.example/good:1"], measuredBytes: 8n * MIB }),
    ];
    expect(keptContent(...removals.toReversed())[1]).toMatchObject({ lastAt: later });
    const kept = (word: string, count: number, expectedMib: bigint, measuredMib: bigint) => ({
      kind: "content-kept",
      repository: `registry.example/${word}`,
      removals: count,
      expectedAtLeastBytes: expectedMib * MIB,
      measuredBytes: measuredMib * MIB,
    });
    expect(keptContent(...removals)).toMatchObject([
      kept("other", 1, 15n, 0n),
      { ...kept("app", 2, 20n, 14n), lastAt: later },
    ]);
  });

  test.each([
    ["three quarters came", { freesAtLeastBytes: 8n * MIB, measuredBytes: 6n * MIB }, 0],
    ["a MiB is missing", { freesAtLeastBytes: MIB, measuredBytes: 0n }, 1],
    ["less than a MiB is missing", { freesAtLeastBytes: MIB, measuredBytes: 1n }, 0],
    ["nothing was expected", { freesAtLeastBytes: null }, 0],
    ["nothing was measured", { measuredBytes: null }, 0],
    ["the pass did not wait", { settled: "not-waited" }, 1],
    ["space came later", { settled: "afterwards" }, 0],
    ["space was not seen", { settled: "not-seen" }, 0],
  ] as const)("if %s", (_, change, found) => {
    expect(keptContent(removal(change))).toHaveLength(found);
  });
});
