// Who logs where is asked for once, and a status that fails is not asked for again and again.
import { expect, test } from "bun:test";

import { LogUsers } from "../../src/gc/container/log-users.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { containerId, podUid } from "../../src/model/ids.ts";
import type { Container, ContainerDetail } from "../../src/model/snapshot.ts";
import { dead } from "../support/build/pods.ts";

const path = "/var/log/pods/default_pod-a_uid-a/c/0.log";

/** `answer`: what the status says beside its defaults, by how many were asked for. */
function usersOf(
  containers: readonly Container[],
  answer: (count: number) => Partial<ContainerDetail> | Promise<Partial<ContainerDetail>>,
) {
  const clock = { ns: 1_000_000_000n };
  const asked: string[] = [];
  const users = new LogUsers(
    {
      containerDetail: async (id) => {
        asked.push(id);
        const detail = { id, imageVolumes: [], finishedAt: null, logPath: path };
        const change = await answer(asked.length);
        return { ...detail, state: "exited", labels: {}, annotations: {}, ...change };
      },
      sandboxLogDirectory: async () => null,
    },
    { monotonicNs: () => clock.ns },
  );
  const listed = { containers, sandboxes: [] };
  const ask = () => users.ofContainers(containers, listed, new AbortController().signal);
  return { users, ask, asked, clock };
}

const fails = (kind: "failed" | "deadline") => (): never => {
  throw new RuntimeError(kind, "no status");
};
const one = dead("a", "c");

test("a log path is asked for once while its container is listed, and anew once it was not", async () => {
  const { users, ask, asked } = usersOf([one], () => ({}));
  for (const listed of [[one.id], [one.id], []]) {
    expect(await ask()).toMatchObject([{ use: { kind: "path", path } }]);
    users.retain(new Set(listed));
  }
  expect(asked).toHaveLength(1);
  await ask();
  expect(asked).toHaveLength(2);
});

test("a status that failed is asked for again after a minute, and not before", async () => {
  const { ask, asked, clock } = usersOf([one], fails("failed"));
  for (const seconds of [0n, 59n, 60n]) {
    clock.ns = 1_000_000_000n * (1n + seconds);
    expect(await ask()).toMatchObject([{ use: { kind: "pod" } }]);
  }
  expect(asked).toHaveLength(2);
});

test("an answer for another container tells nothing of this one", async () => {
  const { ask } = usersOf([one], () => ({ id: containerId("another") }));
  expect(await ask()).toMatchObject([{ use: { kind: "pod" } }]);
});

test("where two hang, none of the rest is asked", async () => {
  const containers = Array.from({ length: 20 }, (_each, index) => dead("a", `c${index}`));
  const { ask, asked } = usersOf(containers, async (count) => {
    if (count <= 2) throw new RuntimeError("deadline", "no status");
    await new Promise((resolve) => void setImmediate(resolve));
    return {};
  });
  await ask();
  expect(asked).toHaveLength(16);
});

test.each([
  [
    "hangs, those that may log anywhere are asked first, and no more than are under way",
    "deadline",
    16,
  ],
  ["refuses, all are asked", "failed", 21],
] as const)("where the runtime %s", async (_, kind, count) => {
  const foreign = dead("b", "foreign", { podUid: podUid("") });
  const own = Array.from({ length: 20 }, (_each, index) => dead("a", `c${index}`));
  const { ask, asked } = usersOf([...own, foreign], fails(kind));
  expect((await ask()).filter(({ use }) => use.kind === "anywhere")).toHaveLength(1);
  expect(asked[0]).toBe(foreign.id);
  expect(asked).toHaveLength(count);
});
