import { describe, expect, test } from "bun:test";

import { podUid, sandboxId } from "../../src/model/ids.ts";
import type { PodDirectory } from "../../src/model/snapshot.ts";
import { instant, minutes, seconds } from "../../src/model/time.ts";
import { startingPods } from "../../src/policy/creations.ts";
import { aContainer, aSandbox, NOW } from "../support/build/values.ts";

const ago = (count: number) => instant(NOW - seconds(count));
const id = sandboxId("sandbox");
const uid = podUid("u");
const sandbox = aSandbox("pod", { id, podUid: uid, createdAt: ago(60) });
const listed = aContainer("c", { name: "web", sandboxId: id, podUid: uid, createdAt: ago(40) });
const directory = (...births: readonly number[]): PodDirectory => ({
  uid,
  bornAt: ago(100),
  files: births.map((count) => ({ container: "web", bornAt: ago(count) })),
});
const starting = (
  lists: {
    readonly sandboxes?: readonly (typeof sandbox)[];
    readonly containers?: readonly (typeof listed)[];
  },
  directories: readonly PodDirectory[] | null,
) =>
  startingPods(
    { sandboxes: lists.sandboxes ?? [sandbox], containers: lists.containers ?? [] },
    directories,
    NOW,
  ).map(({ container, remaining }) => [container, Number(remaining / 1_000_000_000n)]);

describe("a pod with a directory", () => {
  test.each([
    [
      "without a ready sandbox starts from the birth of its directory",
      { sandboxes: [] },
      [],
      [["", 50]],
    ],
    [
      "whose sandbox is not ready any more, too",
      { sandboxes: [{ ...sandbox, state: "not-ready" as const }] },
      [],
      [["", 50]],
    ],
    ["with a sandbox and no file starts nothing: it may wait for its image", {}, [], []],
    ["starts a container from a file that is newer than its sandbox", {}, [20], [["web", 130]]],
    ["starts nothing by a file that is older than its sandbox", {}, [70], []],
    ["starts nothing by a file that is as old as its sandbox", {}, [60], []],
    [
      "is known by its sandbox's own name for it",
      { sandboxes: [{ ...sandbox, podUid: podUid(""), metadataUid: uid }] },
      [],
      [],
    ],
    [
      "starts nothing by a file that is older than the newest of several containers",
      {
        containers: [
          { ...listed, createdAt: ago(30) },
          { ...listed, createdAt: ago(50) },
        ],
      },
      [40],
      [],
    ],
    ["counts from the first of a row of files", {}, [50, 5, 30], [["web", 100]]],
    [
      "starts nothing by a file that is older than the listed container",
      { containers: [listed] },
      [50],
      [],
    ],
    ["starts the next instance by a newer one", { containers: [listed] }, [50, 30], [["web", 120]]],
    ["starts nothing by a file of the future", {}, [-5], []],
    ["starts a container from a file within the grain of the clock", {}, [-0.01], [["web", 150]]],
    [
      "no longer starts after 150 s",
      { sandboxes: [{ ...sandbox, createdAt: ago(200) }] },
      [151, 3],
      [],
    ],
    [
      "is not hidden by a container of the future",
      { containers: [{ ...listed, createdAt: instant(NOW + minutes(5)) }] },
      [20],
      [["web", 130]],
    ],
  ] as const)("%s", (_, lists, births, expected) => {
    expect(starting(lists, [directory(...births)])).toEqual(expected.map((one) => [...one]));
  });
});

describe("without the kubelet's directories", () => {
  test.each([
    ["a ready sandbox of less than ten seconds without a container starts", 4, [], [["", 6]]],
    ["an older one does not", 10, [], []],
    ["one of the future does not", -5, [], []],
    ["one with a container does not", 4, [listed], []],
  ] as const)("%s", (_, age, containers, expected) => {
    const sandboxes = [{ ...sandbox, createdAt: ago(age) }];
    for (const { uid: pod } of startingPods({ sandboxes, containers: [...containers] }, null, NOW))
      expect(pod).toBe(uid);
    expect(starting({ sandboxes, containers: [...containers] }, null)).toEqual(
      expected.map((one) => [...one]),
    );
  });
});
