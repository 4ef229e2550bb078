import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, utimesSync } from "node:fs";
import { join } from "node:path";

import { podUid } from "../../../src/model/ids.ts";
import { instantFromMs } from "../../../src/model/time.ts";
import { readContainerMarks } from "../../../src/node/kubelet/container-marks.ts";
import { put, scratch } from "../../support/scratch.ts";

const uid = podUid("0a1b2c3d-0000-4000-8000-000000000000");
const UIDS = [uid];

/** The kubelet's root, with a container of one pod. */
function aRoot(file = "web/8e9f"): string {
  const root = scratch();
  put(root, `pods/${uid}/containers/${file}`);
  return root;
}

describe("the marks of containers", () => {
  test("are the directories of a pod's containers that hold a file, with the time of their last change", async () => {
    const root = aRoot();
    const directory = join(root, "pods", uid, "containers");
    mkdirSync(join(directory, "refused"));
    mkdirSync(join(directory, "nested/directory"), { recursive: true });
    put(directory, "a-file");
    utimesSync(join(directory, "web"), 1_700_000_000, 1_700_000_000);
    const reading = await readContainerMarks(root, UIDS, () => true);
    const at = instantFromMs(1_700_000_000_000);
    expect(reading).toEqual({ marks: [{ podUid: uid, name: "web", at }], unreadable: new Set() });
  });

  test("are left out if they are not new", async () => {
    const { marks } = await readContainerMarks(aRoot(), UIDS, () => false);
    expect(marks).toEqual([]);
  });

  test("are none for a pod without a directory, or without containers", async () => {
    const root = aRoot();
    mkdirSync(join(root, "pods/pulling"));
    const reading = await readContainerMarks(root, [podUid("gone"), podUid("pulling")], () => true);
    expect(reading).toEqual({ marks: [], unreadable: new Set() });
  });

  test("are not looked for at a UID that leads elsewhere", async () => {
    const root = aRoot();
    for (const text of ["..", "../pods/" + uid, "", "."]) {
      const { marks } = await readContainerMarks(root, [podUid(text)], () => true);
      expect(marks).toEqual([]);
    }
  });
});

describe("the marks cannot be read", () => {
  const unreadable = async (root: string): Promise<readonly string[]> => [
    ...(await readContainerMarks(root, UIDS, () => true)).unreadable,
  ];

  test("without the directory of pods, or below the node's own root", async () => {
    expect(await unreadable(scratch())).toEqual([uid]);
    expect(await unreadable("/")).toEqual([uid]);
  });

  test("if the directory of one pod fails, for that pod", async () => {
    const root = aRoot();
    mkdirSync(join(root, "pods/loop"));
    symlinkSync("containers", join(root, "pods/loop/containers"));
    const pods = [uid, podUid("loop")];
    const reading = await readContainerMarks(root, pods, () => true);
    expect(reading.marks).toHaveLength(1);
    expect([...reading.unreadable]).toEqual([podUid("loop")]);
  });
});
