// Pods whose authors mean harm on real runtimes: names of other people's images, log paths and links that lead to other
// people's logs, hooks that hang, a grace of a day. What is theirs goes, and nothing else is touched.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { loadImages } from "../../support/containerd/import.ts";
import { takeInventory } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  execInContainer,
  type Pod,
  runPod,
  runToEnd,
  startContainer,
  stopPod,
} from "../../support/containerd/pods.ts";
import { releases } from "../../support/containerd/release.ts";
import { gc } from "../../support/containerd/reports.ts";
import { passesApart } from "../../support/ledger.ts";
import { put } from "../../support/scratch.ts";
import { changesOf, treeOf } from "../../support/tree.ts";

setDefaultTimeout(120_000);

const image = "docker.io/library/app:1";
const unused = "docker.io/library/unused:1";
const flags = [
  "--pod-source=cri",
  "--dead-pod-ttl=100ms",
  "--all-unused",
  "--minimum-image-ttl-duration=0s",
];

/** What an author writes into labels and annotations. */
const annotations = {
  "io.kubernetes.container.preStopHandler": JSON.stringify({
    exec: { command: ["sleep", "86400"] },
  }),
  "io.kubernetes.pod.terminationGracePeriod": "86400",
  "io.kubernetes.container.ports": "\u001b]0;owned\u0007",
  __proto__x: "\u202e",
} as const;

describe.each([...releases])("a node with containerd %s", (release) => {
  test("loses what hostile pods left, and nothing else", async () => {
    await using node = await startNode(release);
    await loadImages(node, [{ names: [image] }, { names: [unused] }]);
    const outside = `${dirname(node.podLogsDirectory)}/outside`;
    for (const name of ["secret", "0.log", "0.log.1"]) put(outside, name, "secret");
    const victim = await runPod(node, { name: "victim" });
    await runToEnd(node, victim, { name: "ended", image });
    const app = await startContainer(node, victim, { name: "app", image });
    writeFileSync(`${app.logFile}.20260101-010203`, "rotated");
    await makeEvil(node, { victim, outside });
    const others = () => ({ ...treeOf(victim.logDirectory), ...treeOf(outside) });
    const before = others();
    for (let pass = 0; pass < 3; pass += 1) {
      expect((await gc(node, ...flags)).exitCode).toBeOneOf([0, 3]);
      await passesApart(node.stateDirectory);
    }
    expect(changesOf(before, others())).toEqual({});
    expect(await execInContainer(node, app.id, ["echo", "alive"])).toBe("alive\n");
    const { images, containers, sandboxes } = await takeInventory(node);
    const ofVictim = [victim.sandboxId, victim.sandboxId];
    expect(containers.map(({ sandboxId }) => sandboxId)).toEqual(ofVictim);
    expect(sandboxes.map(({ id }) => id)).toEqual([victim.sandboxId]);
    const names = images.flatMap(({ tags }) => tags);
    expect(names).toContain(image);
    // Collection of everything else went on.
    expect(names).not.toContain(unused);
  });
});

async function makeEvil(
  node: ContainerdNode,
  others: { readonly victim: Pod; readonly outside: string },
): Promise<void> {
  const { victim, outside } = others;
  const victimLogs = victim.logDirectory.slice(victim.logDirectory.lastIndexOf("/") + 1);
  const add = async (name: string, logPath: string, link?: readonly [name: string, to: string]) => {
    const pod = await runPod(node, { name, labels: { __proto__x: "\u001b[2J", app: victim.uid } });
    if (link !== undefined) symlinkSync(link[1], `${pod.logDirectory}/${link[0]}`);
    await runToEnd(node, pod, { name: "app", image, annotations, logPath });
    await stopPod(node, pod);
    return pod;
  };
  await add("beside", `../${victimLogs}/app/evil.log`);
  rmSync(`${victim.logDirectory}/app/evil.log`);
  await add("linked", "there/other.log", ["there", `${victim.logDirectory}/app`]);
  await add("outside", "there/other.log", ["there", outside]);
  const own = await add("files", "app/0.log");
  rmSync(`${own.logDirectory}/app/0.log`);
  symlinkSync(`${outside}/0.log`, `${own.logDirectory}/app/0.log`);
  symlinkSync(outside, `${own.logDirectory}/app/0.log.dir`);
  await add("rotations", "app/0.log.\u001b[2J");
}
