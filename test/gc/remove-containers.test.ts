import { describe, expect, test } from "bun:test";

import { LogUsers } from "../../src/gc/log-users.ts";
import { removeContainers } from "../../src/gc/remove-containers.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { containerId, podUid, sandboxId } from "../../src/model/ids.ts";
import { containerLogLink } from "../../src/model/log-names.ts";
import type { ContainerOutcome } from "../../src/model/outcome.ts";
import type { UsedLog } from "../../src/model/ports.ts";
import type { Container, LogFacts, LogReading, Sandbox } from "../../src/model/snapshot.ts";
import { seconds } from "../../src/model/time.ts";
import type { ContainerInput } from "../../src/policy/container/container-rules.ts";
import { decideContainers, decideContainersAgain } from "../../src/policy/container/containers.ts";
import { ownership } from "../../src/policy/container/ownership.ts";
import { ago, dead, hexId, inputOf, judged, noLogs, sandboxOf } from "../support/build/pods.ts";
import { containerLimits } from "../support/build/values.ts";
import { type ExecutionChange, FakeNode, type FakeNodeState } from "../support/fake-node.ts";

interface Scene {
  readonly containers?: readonly Container[];
  readonly sandboxes?: readonly Sandbox[];
  readonly logs?: LogReading;
  readonly node?: Partial<FakeNodeState>;
  readonly input?: Partial<ContainerInput>;
  readonly options?: ExecutionChange;
  readonly ports?: ExecutionChange;
  readonly prepare?: (node: FakeNode) => void;
}

/** Pod a is gone: all that is dead of it goes, unless the scene says otherwise. */
async function collect(
  scene: Scene,
): Promise<{ readonly node: FakeNode; readonly outcome: ContainerOutcome }> {
  const { containers = [], sandboxes = [] } = scene;
  const node = new FakeNode({ containers, sandboxes, ...scene.node });
  scene.prepare?.(node);
  const input = inputOf(
    { containers, sandboxes, logs: scene.logs ?? null },
    { pods: judged({ gone: ["uid-a"] }), ...scene.input },
  );
  const execution = node.execution({ ...scene.options, ...scene.ports }, input);
  const outcome = await removeContainers(execution);
  return { node, outcome };
}

const one = dead("a", "c", { createdAt: ago(30) });
const two = dead("a", "c", { createdAt: ago(20) });
const three = dead("a", "c", { createdAt: ago(10) });
const sandbox = sandboxOf("a", { state: "not-ready" });
const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const resultsOf = (outcome: ContainerOutcome): readonly string[] =>
  outcome.containers.map((item) => item.result.kind);
const kinds = (node: FakeNode): readonly string[] => node.calls.map((call) => call.kind);

describe("a hold that begins in the middle of a pass", () => {
  /** Held from this look on. */
  const heldAfter = (looks: number) => {
    let looked = 0;
    return () => {
      looked += 1;
      return looked > looks;
    };
  };
  const logs: LogFacts = {
    ...noLogs,
    danglingLinks: [{ entry: "web_a_b-0.log", containerId: hexId("0") }],
  };
  const containers = [one, two, three];

  test("keeps the next container, every sandbox and every log", async () => {
    const { node, outcome } = await collect({
      containers,
      sandboxes: [sandbox],
      logs,
      options: { maximumRemovals: 10, held: heldAfter(2) },
    });
    expect(node.called("remove-container")).toEqual([one.id]);
    expect(kinds(node)).not.toContain("stop-sandbox");
    expect(outcome.end).toBe("blocked");
  });

  test("after the last container keeps the sandboxes", async () => {
    const { node, outcome } = await collect({
      containers,
      sandboxes: [sandbox],
      options: { maximumRemovals: 10, held: heldAfter(6) },
    });
    expect(node.called("remove-container")).toEqual(containers.map(({ id }) => id));
    expect(kinds(node)).not.toContain("stop-sandbox");
    expect(outcome.end).toBe("blocked");
  });

  test("keeps dangling links", async () => {
    const { node, outcome } = await collect({ logs, options: { held: heldAfter(1) } });
    expect(node.called("remove-link")).toEqual([]);
    expect(outcome.end).toBe("blocked");
  });
});

describe("a container", () => {
  test("is removed before its logs, and its sandbox after both", async () => {
    const logPath = "/var/log/pods/default_pod-a_uid-a/c/0.log";
    const { node, outcome } = await collect({
      containers: [one],
      sandboxes: [sandbox],
      node: { details: new Map([[one.id, { logPath }]]) },
    });
    expect(kinds(node)).toEqual([
      "remove-container",
      "remove-logs",
      "remove-link",
      "stop-sandbox",
      "remove-sandbox",
    ]);
    expect(node.calls[1]).toEqual({
      kind: "remove-logs",
      path: logPath,
      uid: "uid-a",
      kept: [],
    });
    expect(node.called("remove-link")).toEqual([`pod-a_default_c-${one.id}.log`]);
    expect(outcome.containers[0]).toMatchObject({
      result: { kind: "removed" },
      logFiles: [logPath],
      logBytes: 4096n,
    });
    expect(outcome.end).toBe("done");
  });

  test("without a log path has none of its logs touched", async () => {
    const { node, outcome } = await collect({ containers: [one] });
    expect(node.called("remove-logs")).toEqual([]);
    expect(outcome.containers[0]?.logFiles).toEqual([]);
  });

  test.each(["pod.name", "pod.namespace", "container.name"])(
    "without its label %s has no link that could be told",
    async (label) => {
      const labels = {
        "io.kubernetes.pod.uid": "uid-a",
        "io.kubernetes.pod.name": "pod-a",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.container.name": "c",
      };
      const { [`io.kubernetes.${label}` as keyof typeof labels]: _, ...rest } = labels;
      const details = new Map([[one.id, { labels: rest }]]);
      expect(kinds((await collect({ containers: [one], node: { details } })).node)).toEqual([
        "remove-container",
      ]);
    },
  );

  test("is removed, but its log is kept if a running container of its pod shares it", async () => {
    const logPath = "/var/log/pods/default_pod-a_uid-a/c/0.log";
    const running = dead("a", "other", { state: "running" });
    const { node } = await collect({
      containers: [one, running],
      node: { details: new Map([one, running].map(({ id }) => [id, { logPath }])) },
    });
    expect(node.called("remove-container")).toEqual([one.id]);
    expect(node.calls.find(({ kind }) => kind === "remove-logs")).toMatchObject({
      kept: ["0.log"],
    });
  });

  test("is removed with its log, of whose name another directory of its pod has one in use", async () => {
    const logPath = "/var/log/pods/default_pod-a_uid-a/c/0.log";
    const running = dead("a", "other", { state: "running" });
    const details = new Map([
      [one.id, { logPath }],
      [running.id, { logPath: "/var/log/pods/default_pod-a_uid-a/other/0.log" }],
    ]);
    const { node } = await collect({ containers: [one, running], node: { details } });
    expect(node.calls.find(({ kind }) => kind === "remove-logs")).toMatchObject({ kept: [] });
  });

  describe("whose log is next to that of another removed container", () => {
    const directory = "/var/log/pods/default_pod-a_uid-a/c";
    const details = new Map([
      [one.id, { logPath: `${directory}/0.log` }],
      [two.id, { logPath: `${directory}/1.log` }],
      [three.id, { logPath: `${directory}/2.log` }],
    ]);
    const keptBy = (node: FakeNode): readonly (readonly string[])[] =>
      node.calls.flatMap((call) => (call.kind === "remove-logs" ? [call.kept] : []));

    test("spares the other's log only until the other is removed", async () => {
      const { node } = await collect({ containers: [one, two, three], node: { details } });
      expect(keptBy(node)).toEqual([["1.log", "2.log"], ["2.log"], []]);
    });

    test("spares the other's log if the other could not be removed", async () => {
      const fails = new Set([`remove-container ${one.id}`]);
      const { node } = await collect({ containers: [one, two], node: { details, fails } });
      expect(node.called("remove-container")).toEqual([one.id, two.id]);
      expect(keptBy(node)).toEqual([["0.log"]]);
    });

    test("is found by resolving each path only once per pass", async () => {
      const fake = new FakeNode({ containers: [], sandboxes: [] });
      const asked: UsedLog[] = [];
      const placesOf: typeof fake.logs.placesOf = async (used) => {
        asked.push(...used);
        return fake.logs.placesOf(used);
      };
      const logs = { ...fake.logs, placesOf };
      await collect({ containers: [one, two], node: { details }, ports: { logs } });
      expect(asked).toEqual(
        ["0.log", "1.log"].map((name) => ({ path: `${directory}/${name}`, podUid: "" })),
      );
    });
  });

  test.each([
    ["of its pod", dead("a", "other", { state: "running" }), "kept"],
    ["that Kubernetes did not make", dead("b", "other", { podUid: podUid("") }), "kept"],
    ["of another pod", dead("b", "other"), "deleted"],
  ])(
    "is removed, and while the status of a container %s fails its log is %s",
    async (_, other, log) => {
      const logPath = "/var/log/pods/default_pod-a_uid-a/c/0.log";
      const { node, outcome } = await collect({
        containers: [one, other],
        node: {
          details: new Map([[one.id, { logPath }]]),
          fails: new Set([`status ${other.id}`]),
        },
      });
      expect(node.called("remove-container")).toEqual([one.id]);
      expect(node.called("remove-logs")).toEqual(log === "kept" ? [] : [logPath]);
      expect(outcome.containers[0]?.logError).toEqual(
        log === "kept" ? expect.stringContaining(`status of container ${other.id}`) : null,
      );
    },
  );

  test("not created by Kubernetes has no log of its own, whatever path it names", async () => {
    const foreign = { ...one, podUid: podUid("") };
    const { node, outcome } = await collect({
      containers: [foreign],
      node: {
        details: new Map([[one.id, { logPath: "/var/log/pods/default_pod-a_uid-a/c/0.log" }]]),
      },
      input: {
        pods: judged({ foreignDead: [`sandbox:${one.sandboxId}`] }),
        limits: { ...containerLimits, collectForeign: true },
      },
    });
    expect(kinds(node)).toEqual(["remove-container"]);
    expect(outcome.containers[0]?.logFiles).toEqual([]);
  });

  test("that no longer exists counts as removed", async () => {
    const containers = [one, two, three];
    const { node, outcome } = await collect({
      containers,
      prepare: (fake) => fake.containers.clear(),
    });
    expect(resultsOf(outcome)).toEqual(containers.map(() => "already-gone"));
    expect(outcome.errors).toEqual([]);
    expect(node.calls).toEqual([]);
  });

  test.each([
    ["runs", { state: "running" }, "it is running now"],
    ["was created anew", { state: "created" }, "its state is now created"],
    ["became unknown", { state: "unknown" }, "its state is now unknown"],
    [
      "belongs to another pod",
      { labels: { "io.kubernetes.pod.uid": "uid-b" } },
      'its pod UID is now "uid-b"',
    ],
  ] as const)("that %s meanwhile is skipped", async (_, detail, what) => {
    const { node, outcome } = await collect({
      containers: [one],
      node: { details: new Map([[one.id, detail]]) },
    });
    expect(outcome.containers[0]).toMatchObject({
      result: { kind: "skipped", what },
      stopped: false,
      logFiles: [],
    });
    expect(node.called("remove-container")).toEqual([]);
  });

  test("whose status fails is not removed, and the next one is", async () => {
    const { node, outcome } = await collect({
      containers: [one, two],
      node: { fails: new Set([`status ${one.id}`]) },
    });
    expect(outcome.containers[0]).toMatchObject({
      result: { kind: "failed", step: "status" },
      stopped: false,
    });
    expect(node.called("remove-container")).toEqual([two.id]);
  });

  test("whose removal fails keeps its logs and its sandbox, and the next one is removed", async () => {
    const logPath = "/var/log/pods/default_pod-a_uid-a/c/0.log";
    const { node, outcome } = await collect({
      containers: [one, two],
      sandboxes: [sandbox],
      node: {
        fails: new Set([`remove-container ${one.id}`]),
        details: new Map([[one.id, { logPath }]]),
      },
    });
    expect(resultsOf(outcome)).toEqual(["failed", "removed"]);
    expect(outcome.containers[0]?.result).toMatchObject({
      step: "remove",
      message: expect.stringContaining("refused"),
    });
    expect(node.called("remove-logs")).toEqual([]);
    expect(node.called("stop-sandbox")).toEqual([]);
  });

  test("is removed even if its logs cannot be deleted, and the result says so", async () => {
    const logPath = "/elsewhere/0.log";
    const link = `pod-a_default_c-${one.id}.log`;
    const { outcome } = await collect({
      containers: [one],
      node: {
        details: new Map([[one.id, { logPath }]]),
        fails: new Set([`remove-logs ${logPath}`, `remove-link ${link}`]),
      },
    });
    expect(outcome.containers[0]).toMatchObject({
      result: { kind: "removed" },
      logError: `remove-logs ${logPath}: refused; remove-link ${link}: refused`,
    });
  });

  test.each([
    ["of one pod one after another, also where it has several sandboxes", "uid-a", ["x", "y"], 1],
    ["that Kubernetes did not make one after another in one sandbox", "", ["x", "x"], 1],
    ["that Kubernetes did not make side by side in different sandboxes", "", ["x", "y"], 2],
  ])("is removed, like others, %s", async (_, uid, sandboxes, most) => {
    const containers = sandboxes.map((name, index) =>
      dead("a", `c${index}`, { podUid: podUid(uid), sandboxId: sandboxId(name) }),
    );
    const foreignDead = sandboxes.map((name) => `sandbox:${name}`);
    let underWay = 0;
    let mostUnderWay = 0;
    const removeContainer = async (): Promise<void> => {
      mostUnderWay = Math.max(mostUnderWay, (underWay += 1));
      await nextTurn();
      underWay -= 1;
    };
    const { writer } = new FakeNode({ containers: [], sandboxes: [] });
    const { outcome } = await collect({
      containers,
      ports: { writer: { ...writer, removeContainer } },
      input: {
        pods: judged({ gone: ["uid-a"], foreignDead }),
        limits: { ...containerLimits, collectForeign: true },
      },
    });
    expect(resultsOf(outcome)).toEqual(["removed", "removed"]);
    expect(mostUnderWay).toBe(most);
  });
});

describe("an unknown container", () => {
  const unknown = dead("a", "c", { state: "unknown" });

  test("is stopped first, then removed", async () => {
    const { node, outcome } = await collect({ containers: [unknown] });
    expect(kinds(node)).toEqual(["stop-container", "remove-container", "remove-link"]);
    expect(outcome.containers[0]?.stopped).toBe(true);
    expect(outcome.errors).toEqual([]);
  });

  test("whose pre-stop handler fails goes all the same, and the outcome names it with what failed", async () => {
    const annotations = {
      "io.kubernetes.pod.terminationGracePeriod": "5",
      "io.kubernetes.container.preStopHandler": "{}",
    };
    const details = new Map([[unknown.id, { annotations }]]);
    const { outcome } = await collect({ containers: [unknown], node: { details } });
    expect(resultsOf(outcome)).toEqual(["removed"]);
    expect(outcome.errors).toEqual([
      expect.stringContaining(`container ${unknown.id}: unknown kind of pre-stop handler`),
    ]);
  });

  test("that was created anew meanwhile is skipped: it is about to start", async () => {
    const details = new Map([[unknown.id, { state: "created" as const }]]);
    const { node } = await collect({ containers: [unknown], node: { details } });
    expect(node.calls).toEqual([]);
  });

  test("that cannot be stopped is not removed", async () => {
    const { node, outcome } = await collect({
      containers: [unknown],
      node: { fails: new Set([`stop-container ${unknown.id}`]) },
    });
    expect(node.called("remove-container")).toEqual([]);
    expect(outcome.containers[0]?.result).toMatchObject({ kind: "failed", step: "stop" });
  });

  test("that exited meanwhile needs no stop", async () => {
    const details = new Map([[unknown.id, { state: "exited" as const }]]);
    const { node } = await collect({ containers: [unknown], node: { details } });
    expect(kinds(node)).toEqual(["remove-container", "remove-link"]);
  });
});

test("a container that was only created, and exited meanwhile, is another one by now and skipped", async () => {
  const created = dead("a", "c", { state: "created" });
  const details = new Map([[created.id, { state: "exited" as const }]]);
  const { node } = await collect({ containers: [created], node: { details } });
  expect(node.calls).toEqual([]);
});

describe("a removal that is refused because somebody else", () => {
  type Gone = (node: FakeNode) => void;
  const inTurns = async (turns: number, gone: () => void): Promise<void> => {
    for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    gone();
  };
  const refused = async (kind: "busy" | "failed", gone: Gone | null) => {
    const looks: string[] = [];
    const { outcome } = await collect({
      containers: [one],
      sandboxes: [sandbox, sandboxOf("b", { state: "not-ready" })],
      input: { pods: judged({ gone: ["uid-a", "uid-b"] }) },
      prepare: (fake) => {
        fake.before = ({ kind: call }) => {
          if (!call.startsWith("remove-")) return;
          if (gone !== null) void inTurns(kind === "busy" ? 3 : 0, () => gone(fake));
          throw new RuntimeError(kind, "refused");
        };
        const { containerDetail } = fake.runtime;
        fake.runtime.containerDetail = (id, signal) => {
          looks.push(id);
          return containerDetail(id, signal);
        };
      },
    });
    return {
      outcome,
      looks: looks.length,
      results: [...outcome.containers, ...outcome.sandboxes].map((it) => it.result.kind),
    };
  };
  const all: Gone = (node) => {
    node.containers.clear();
    node.sandboxes.clear();
  };

  test("is removing it is waited for, and counts as removed already", async () => {
    expect((await refused("busy", all)).results).toEqual(["already-gone"]);
  });

  test("never finishes removing it is skipped after five seconds in all, and has not failed", async () => {
    const { outcome, results, looks } = await refused("busy", null);
    expect(results).toEqual(["skipped", "skipped"]);
    expect(outcome).toMatchObject({ end: "done", errors: [] });
    expect(looks).toBe(1 + 5_000 / 250 + 1);
  });

  test("removes it while it is stopped counts as removed already", async () => {
    const unknown = dead("a", "c", { state: "unknown" });
    const { outcome } = await collect({
      containers: [unknown],
      prepare: (fake) => {
        fake.before = () => {
          all(fake);
          throw new RuntimeError("failed", "no such task");
        };
      },
    });
    expect(resultsOf(outcome)).toEqual(["already-gone"]);
  });

  test("has just removed it counts as removed already, whatever the runtime answered", async () => {
    expect((await refused("failed", all)).results).toEqual(["already-gone"]);
  });

  test("uses it has failed after one look", async () => {
    const { results, looks } = await refused("failed", null);
    expect(results).toEqual(["failed", "failed"]);
    expect(looks).toBe(2);
  });
});

describe("a sandbox", () => {
  test("that cannot be stopped is not removed", async () => {
    const { node, outcome } = await collect({
      sandboxes: [sandbox],
      node: { fails: new Set([`stop-sandbox ${sandbox.id}`]) },
    });
    expect(node.called("remove-sandbox")).toEqual([]);
    expect(outcome.sandboxes[0]?.result).toMatchObject({ kind: "failed", step: "stop" });
  });

  test("that became ready is kept, because the lists are fresh", async () => {
    const { node } = await collect({
      sandboxes: [sandbox],
      prepare: (fake) => fake.sandboxes.set(sandbox.id, { ...sandbox, state: "ready" }),
    });
    expect(node.calls).toEqual([]);
  });

  test("in which a container appeared meanwhile is kept", async () => {
    const late = dead("a", "late", { sandboxId: sandbox.id, state: "created" });
    const { node } = await collect({
      containers: [one],
      sandboxes: [sandbox],
      prepare: (fake) => {
        fake.before = () => void fake.containers.set(late.id, late);
      },
    });
    expect(node.called("stop-sandbox")).toEqual([]);
  });

  test("with a container in it is never removed", async () => {
    const inIt = dead("a", "c", { sandboxId: sandbox.id });
    const input = inputOf({ sandboxes: [sandbox] }, { pods: judged({ gone: ["uid-a"] }) });
    const { node } = await collect({
      sandboxes: [sandbox],
      options: { decideAgain: () => decideContainers(input) },
      prepare: (fake) => void fake.containers.set(inIt.id, inIt),
    });
    expect(node.lists).toBe(1);
    expect(node.calls).toEqual([]);
  });

  test("that is listed but has no status is removed all the same", async () => {
    const { node, outcome } = await collect({
      sandboxes: [sandbox],
      ports: {
        runtime: {
          listContainers: async () => [],
          listSandboxes: async () => [sandbox],
          containerDetail: async () => null,
          sandboxDetail: async () => null,
        },
      },
    });
    expect(outcome.sandboxes[0]?.result).toEqual({ kind: "already-gone" });
    expect(kinds(node)).toEqual(["stop-sandbox", "remove-sandbox"]);
  });

  test("that has no status and cannot be removed is a failed item, even if the pass is stopped", async () => {
    const stop = new AbortController();
    const { node, outcome } = await collect({
      sandboxes: [sandbox],
      options: { signal: stop.signal },
      node: { fails: new Set([`remove-sandbox ${sandbox.id}`]) },
      prepare: (fake) => {
        fake.runtime.sandboxDetail = async () => null;
        fake.before = () => stop.abort();
      },
    });
    expect(kinds(node)).toEqual(["stop-sandbox", "remove-sandbox"]);
    expect(outcome.sandboxes[0]?.result).toMatchObject({ kind: "failed", step: "remove" });
  });

  test("whose stop is given up stays, and the next pass leaves it alone for a while", async () => {
    const stop = new AbortController();
    const { backoff } = new FakeNode({ containers: [], sandboxes: [] }).execution();
    const { node } = await collect({
      sandboxes: [sandbox],
      options: { signal: stop.signal },
      ports: { backoff },
      node: { fails: new Set([`stop-sandbox ${sandbox.id}`]) },
      prepare: (fake) => {
        fake.before = () => stop.abort();
      },
    });
    expect(kinds(node)).toEqual(["stop-sandbox"]);
    expect((await collect({ sandboxes: [sandbox], ports: { backoff } })).node.calls).toEqual([]);
  });

  test("that is ready by its own status, although not by the list, is skipped", async () => {
    const { node, outcome } = await collect({
      sandboxes: [sandbox],
      ports: {
        runtime: {
          listContainers: async () => [],
          listSandboxes: async () => [sandbox],
          containerDetail: async () => null,
          sandboxDetail: async (id) => ({ id, state: "ready", address: "" }),
        },
      },
    });
    expect(outcome.sandboxes[0]?.result).toEqual({ kind: "skipped", what: "it is ready now" });
    expect(node.calls).toEqual([]);
  });
});

describe("a runtime that does not answer", () => {
  const sandboxes = Array.from({ length: 12 }, (_, index) =>
    sandboxOf("a", { id: sandboxId(`sandbox-${index}`), state: "not-ready" }),
  );
  const silent = new Set(sandboxes.slice(0, 2).map(({ id }) => `stop-sandbox ${id}`));

  test("ends a stage after two calls, and the next pass leaves these items alone", async () => {
    const ports = new FakeNode({ containers: [], sandboxes: [] }).execution();
    const { backoff } = ports;
    const first = await collect({ sandboxes, node: { silent }, ports: { backoff } });
    expect(first.node.called("stop-sandbox").length).toBeLessThanOrEqual(5);
    expect(first.outcome.errors).toEqual([
      expect.stringMatching(/^sandboxes: \d calls timed out; the rest is left/),
    ]);
    const second = await collect({ sandboxes, node: { silent }, ports: { backoff } });
    expect(second.node.called("remove-sandbox")).toHaveLength(10);
    expect(second.outcome.errors).toEqual([]);
  });

  test("for two pods does not keep the pass from collecting the others", async () => {
    const hanging = new Set(sandboxes.slice(0, 2).map(({ id }) => id));
    const held = Promise.withResolvers<never>();
    const { node } = await collect({
      sandboxes,
      ports: {
        writer: {
          ...new FakeNode({ containers: [], sandboxes: [] }).writer,
          stopSandbox: async (id) => {
            if (hanging.has(id)) return await held.promise;
            if (id === sandboxes.at(-1)?.id)
              setImmediate(() => held.reject(new RuntimeError("deadline", "no answer")));
          },
          removeSandbox: async (id) => void removed.push(id),
        },
      },
    });
    expect(removed).toHaveLength(10);
    expect(node.lists).toBe(1);
  });
  const removed: string[] = [];

  test("for the status of a container keeps that container's log, and the next container is removed", async () => {
    const { node, outcome } = await collect({
      containers: [one, two],
      node: { silent: new Set([`status ${one.id}`]) },
    });
    expect(node.called("remove-container")).toEqual([two.id]);
    expect(outcome.containers[0]?.result).toMatchObject({ kind: "failed", step: "status" });
  });
});

describe("a container that has to be stopped", () => {
  const unknown = (name: string): Container => dead("a", name, { state: "unknown" });
  const annotations = { "io.kubernetes.pod.terminationGracePeriod": "86400" };

  test("gets a grace period of at most the maximum", async () => {
    const container = unknown("c");
    const { node } = await collect({
      containers: [container],
      node: { details: new Map([[container.id, { annotations }]]) },
    });
    expect(node.calls[0]).toMatchObject({ kind: "stop-container", graceSeconds: 30 });
  });

  test("is kept when the pass is stopped", async () => {
    const container = unknown("c");
    const handler = { sleep: { seconds: 3600 } };
    const details = new Map([
      [
        container.id,
        {
          annotations: {
            ...annotations,
            "io.kubernetes.container.preStopHandler": JSON.stringify(handler),
          },
        },
      ],
    ]);
    const stop = new AbortController();
    const { backoff } = new FakeNode({ containers: [], sandboxes: [] }).execution();
    const { node, outcome } = await collect({
      containers: [container],
      node: { details },
      options: { signal: stop.signal },
      ports: {
        backoff,
        timer: {
          monotonicNs: () => 0n,
          sleep: async (_, signal) => {
            stop.abort();
            expect(signal.aborted).toBe(true);
          },
        },
      },
    });
    expect(node.calls).toEqual([]);
    expect(outcome).toMatchObject({ end: "stopped", errors: [] });
    expect(outcome.containers[0]).toMatchObject({ result: { kind: "skipped" }, stopped: false });
    const next = await collect({ containers: [container], ports: { backoff } });
    expect(next.node.called("stop-container")).toEqual([]);
    expect(next.outcome.containers[0]?.result).toMatchObject({
      what: "the runtime did not answer; crigc tries again in 5 min",
    });
  });

  test("stays where the pass is asked to stop while it is stopped, and counts as stopped", async () => {
    const container = unknown("c");
    const stop = new AbortController();
    const { node, outcome } = await collect({
      containers: [container],
      options: { signal: stop.signal },
      prepare: (fake) => {
        fake.before = () => stop.abort();
      },
    });
    expect(kinds(node)).toEqual(["stop-container"]);
    expect(outcome.containers[0]).toMatchObject({ result: { kind: "skipped" }, stopped: true });
  });

  test("is left to the next pass if the stops of this one took minutes already", async () => {
    const containers = Array.from({ length: 9 }, (_, index) => unknown(`c${index}`));
    const { node, outcome } = await collect({
      containers,
      node: { callNs: 20_000_000_000n },
      options: { inOrder: true },
    });
    expect(node.called("stop-container")).toHaveLength(3);
    const skipped = outcome.containers.filter(({ result }) => result.kind === "skipped");
    expect(skipped.map(({ stopped }) => stopped)).toEqual(Array.from({ length: 6 }, () => false));
  });

  test("is stopped although the removals that needed no stop took minutes already", async () => {
    const slow = Array.from({ length: 9 }, (_, at) => dead("a", "c", { createdAt: ago(90 - at) }));
    const { node } = await collect({
      containers: [...slow, dead("a", "c", { state: "unknown", createdAt: ago(1) })],
      node: { callNs: 20_000_000_000n },
      options: { inOrder: true },
    });
    expect(node.called("remove-container")).toHaveLength(10);
  });
});

describe("a log directory", () => {
  const logs: LogFacts = {
    ...noLogs,
    podLogs: [{ entry: "default_pod-a_uid-a", uid: podUid("uid-a") }],
  };

  test("of a deleted pod is deleted last", async () => {
    const { node, outcome } = await collect({ containers: [one], sandboxes: [sandbox], logs });
    expect(kinds(node).at(-1)).toBe("remove-pod-logs");
    expect(outcome.logs).toMatchObject([
      { kind: "pod-logs", entry: "default_pod-a_uid-a", bytes: 4096n },
    ]);
  });

  const usedBy = (change: Partial<Container>) => dead("b", "c", { state: "running", ...change });

  test.each([
    ["a running container of another pod", usedBy({})],
    ["a dead container of another pod", usedBy({ state: "exited" })],
    ["a running container that Kubernetes did not make", usedBy({ podUid: podUid("") })],
  ])("that %s logs to is kept, and the result names the user", async (_, container) => {
    const logPath = "/var/log/pods/default_pod-a_uid-a/c/0.log";
    const { node, outcome } = await collect({
      containers: [container],
      logs,
      node: { details: new Map([[container.id, { logPath }]]) },
    });
    expect(node.called("remove-pod-logs")).toEqual([]);
    const what = `container ${container.id} logs to it`;
    expect(outcome.logs).toMatchObject([{ result: { kind: "skipped", what } }]);
  });

  test("stays for the second container that logs to it, where the first one went", async () => {
    const logPath = "/var/log/pods/default_pod-a_uid-a/c/0.log";
    const users = [one, usedBy({})];
    const { node, outcome } = await collect({
      containers: users,
      logs,
      node: { details: new Map(users.map(({ id }) => [id, { logPath }])) },
      // The one that went is listed for a moment longer.
      ports: { writer: { ...new FakeNode({ containers: [], sandboxes: [] }).writer } },
    });
    expect(resultsOf(outcome)).toContain("removed");
    expect(node.called("remove-pod-logs")).toEqual([]);
    expect(outcome.logs).toMatchObject([{ result: { kind: "skipped" } }]);
  });

  test("that a sandbox without containers names as its log directory is kept", async () => {
    const other = sandboxOf("b");
    const { node, outcome } = await collect({
      sandboxes: [other],
      logs,
      node: { logDirectories: new Map([[other.id, "/var/log/pods/default_pod-a_uid-a"]]) },
    });
    expect(node.called("remove-pod-logs")).toEqual([]);
    const what = `sandbox ${other.id} logs to it`;
    expect(outcome.logs).toMatchObject([{ result: { kind: "skipped", what } }]);
  });

  test.each([
    ["made by Kubernetes for another pod", {}, ["default_pod-a_uid-a"]],
    ["not made by Kubernetes", { podUid: podUid("") }, []],
    ["of its own pod", { podUid: podUid("uid-a") }, []],
  ])(
    "is deleted or kept if the status of a running container fails: one %s",
    async (_, change, gone) => {
      const container = usedBy({ sandboxId: sandboxId("sandbox-not-listed"), ...change });
      const { node } = await collect({
        containers: [container],
        logs,
        node: { fails: new Set([`status ${container.id}`]) },
      });
      expect(node.called("remove-pod-logs")).toEqual([...gone]);
    },
  );

  test("costs only one status of a container that is listed again", async () => {
    const container = usedBy({});
    const node = new FakeNode({ containers: [container], sandboxes: [] });
    const asked: string[] = [];
    const containerDetail: typeof node.reader.containerDetail = async (id, signal) => {
      asked.push(id);
      return node.reader.containerDetail(id, signal);
    };
    const logUsers = new LogUsers({ ...node.reader, containerDetail }, { monotonicNs: () => 0n });
    for (let pass = 0; pass < 2; pass += 1)
      await collect({ containers: [container], logs, ports: { logUsers } });
    expect(asked).toEqual([container.id]);
  });

  test("is used by the sandbox that logs to it, but not by a deleted one", async () => {
    const sandboxes = ["named", "gone", "none"].map((name) =>
      sandboxOf("b", { id: sandboxId(name) }),
    );
    const directories = new Map<string, string | null>([
      ["named", "/var/log/pods/default_pod-a_uid-a"],
      ["gone", null],
      ["none", ""],
    ]);
    const { reader } = new FakeNode({ containers: [], sandboxes: [] });
    const sandboxLogDirectory = async (id: string) => directories.get(id) ?? null;
    const users = new LogUsers({ ...reader, sandboxLogDirectory }, { monotonicNs: () => 0n });
    const owners = ownership({ sandboxes }, "none");
    expect(await users.ofSandboxes(sandboxes, owners, new AbortController().signal)).toMatchObject([
      { id: "named", use: { kind: "path", path: "/var/log/pods/default_pod-a_uid-a/-" } },
    ]);
  });

  test("that cannot be deleted is a failed item", async () => {
    const fails = new Set(["remove-pod-logs default_pod-a_uid-a"]);
    const { outcome } = await collect({ logs, node: { fails } });
    expect(outcome.logs[0]?.result).toMatchObject({ kind: "failed", step: "remove" });
    expect(outcome.end).toBe("done");
  });

  test("is not touched if the node has no log directory", async () => {
    const { node } = await collect({ logs, ports: { logs: null } });
    expect(node.calls).toEqual([]);
  });
});

describe("unreadable log directories", () => {
  const logs = { kind: "failed", message: "cannot open /l" } as const;

  test("do not keep a container and its sandbox from being removed, but its logs are kept", async () => {
    const { node, outcome } = await collect({
      containers: [one],
      sandboxes: [sandbox],
      logs,
      node: { details: new Map([[one.id, { logPath: "/l/default_pod-a_uid-a/c/0.log" }]]) },
    });
    expect(kinds(node)).toEqual(["remove-container", "stop-sandbox", "remove-sandbox"]);
    expect(outcome.errors).toEqual(["no log is deleted: cannot open /l"]);
  });

  test("are reported even if nothing else is removed", async () => {
    const { outcome } = await collect({ logs });
    expect(outcome).toMatchObject({
      end: "done",
      errors: [expect.stringContaining("no log is deleted")],
    });
  });
});

describe("a dangling link", () => {
  const id = hexId("c1");
  const link = { entry: `pod-a_default_c-${id}.log`, containerId: id };
  const logs: LogFacts = { ...noLogs, danglingLinks: [link] };
  const container = (state: Container["state"]): Container =>
    dead("b", "c", { id: containerId(id), state });

  test("is deleted when the runtime does not know its container", async () => {
    const { outcome } = await collect({ logs });
    expect(outcome.logs).toMatchObject([{ kind: "log-link", reason: { kind: "container-gone" } }]);
  });

  test("is deleted when its container has exited", async () => {
    const { outcome } = await collect({
      logs,
      containers: [container("exited")],
      input: { pods: judged({}) },
    });
    expect(outcome.logs).toMatchObject([
      { reason: { kind: "container-exited" }, result: { kind: "removed" } },
    ]);
  });

  test.each(["running", "created", "unknown"] as const)(
    "is kept while its container is %s",
    async (state) => {
      const { node } = await collect({
        logs,
        containers: [container(state)],
        input: { pods: judged({}) },
      });
      expect(node.called("remove-link")).toEqual([]);
    },
  );

  test("that cannot be deleted is a failed item", async () => {
    const fails = new Set([`remove-link ${link.entry}`]);
    const { outcome } = await collect({ logs, node: { fails } });
    expect(outcome.logs[0]?.result).toMatchObject({ kind: "failed", step: "remove" });
  });

  const many = ["c1", "c2", "c3"].map((name) => ({
    entry: `pod-a_default_c-${hexId(name)}.log`,
    containerId: hexId(name),
  }));

  test("goes, however many there are, and none after the pass was asked to stop", async () => {
    const facts = { ...logs, danglingLinks: many };
    expect((await collect({ logs: facts })).node.called("remove-link")).toHaveLength(3);
    const stop = new AbortController();
    const { node, outcome } = await collect({
      logs: facts,
      options: { signal: stop.signal },
      prepare: (fake) => {
        fake.before = () => stop.abort();
      },
    });
    expect(node.called("remove-link")).toHaveLength(1);
    expect(outcome).toMatchObject({ end: "stopped", errors: [] });
  });

  test("stays where the wish to stop cuts its container's status off, which is no error", async () => {
    const stop = new AbortController();
    const { outcome } = await collect({
      logs,
      options: { signal: stop.signal },
      prepare: (fake) => {
        fake.runtime.containerDetail = async () => {
          stop.abort();
          throw new RuntimeError("cancelled", "given up");
        };
      },
    });
    expect(outcome).toMatchObject({ end: "stopped", errors: [], logs: [] });
  });

  test("stays where a hold begins while others are removed", async () => {
    let looks = 0;
    const { node } = await collect({
      logs: { ...logs, danglingLinks: many },
      node: { callNs: 6_000_000_000n },
      options: {
        decideAgain: (lists) => {
          const blocks = [{ kind: "on-hold", until: null, reason: "" }] as const;
          const input = { ...lists, logs: { ...logs, danglingLinks: many } };
          looks += 1;
          return decideContainers(inputOf(input, looks > 1 ? { blocks } : {}));
        },
      },
    });
    expect(node.called("remove-link")).toHaveLength(1);
  });

  test("whose container's status was not answered is left alone by the next pass", async () => {
    const silent = new Set([`status ${id}`]);
    const { backoff } = new FakeNode({ containers: [], sandboxes: [] }).execution();
    const first = await collect({ logs, node: { silent }, ports: { backoff } });
    expect(first.outcome.errors).toHaveLength(1);
    const second = await collect({
      logs,
      // It is listed, or its silence would be forgotten with it.
      containers: [container("running")],
      node: { silent },
      ports: { backoff },
    });
    expect(second.outcome.errors).toEqual([]);
  });

  test("is kept and reported when the runtime cannot be queried", async () => {
    const { node, outcome } = await collect({ logs, node: { fails: new Set([`status ${id}`]) } });
    expect(node.called("remove-link")).toEqual([]);
    expect(outcome.errors).toEqual([expect.stringContaining(`log link ${link.entry} kept`)]);
  });

  test.each(["abc123", id.slice(0, 40)])(
    "is kept when its name has no full ID: %s",
    async (part) => {
      const entry = `pod-a_default_c-${part}.log`;
      const { node } = await collect({
        logs: { ...logs, danglingLinks: [{ entry, containerId: part }] },
      });
      expect(node.called("remove-link")).toEqual([]);
    },
  );

  test("is kept when the runtime answers for another container, as for an ID prefix", async () => {
    const details = new Map([[id, { id: containerId(hexId("c2")) }]]);
    const { node } = await collect({
      logs,
      containers: [container("exited")],
      node: { details },
      input: { pods: judged({}) },
    });
    expect(node.called("remove-link")).toEqual([]);
  });

  test("with a truncated name is deleted when its only container has exited", async () => {
    const long = { ...container("exited"), podName: "p".repeat(200) };
    const entry = containerLogLink(long);
    expect(entry).toHaveLength(255);
    const cut = { ...logs, danglingLinks: [{ entry, containerId: id.slice(0, 37) }] };
    const { node } = await collect({ logs: cut, containers: [long], input: { pods: judged({}) } });
    expect(node.called("remove-link")).toEqual([entry]);
    const twin = { ...long, id: containerId(`${id.slice(0, 63)}1`) };
    const doubtful = await collect({
      logs: cut,
      containers: [long, twin],
      input: { pods: judged({}), limits: { ...containerLimits, maximumPerPodContainer: -1 } },
    });
    expect(doubtful.node.called("remove-link")).toEqual([]);
    for (const containers of [[], [{ ...long, podName: "q".repeat(200) }]]) {
      const unlisted = await collect({ logs: cut, containers, input: { pods: judged({}) } });
      expect(unlisted.node.called("remove-link")).toEqual([]);
    }
  });
});

describe("execution", () => {
  test("does nothing if removal is blocked", async () => {
    const blocks = [{ kind: "on-hold", until: null, reason: "" }] as const;
    const { node, outcome } = await collect({ containers: [one], input: { blocks } });
    expect(outcome.end).toBe("blocked");
    expect(node.calls).toEqual([]);
    expect(node.lists).toBe(0);
  });

  test("requests no list if there is nothing to do", async () => {
    const { node, outcome } = await collect({ containers: [one], input: { pods: judged({}) } });
    expect(outcome.end).toBe("done");
    expect(node.lists).toBe(0);
  });

  test("finishes the removal in flight when stopped, and starts no other", async () => {
    const stop = new AbortController();
    const { node, outcome } = await collect({
      containers: [one, two],
      sandboxes: [sandbox],
      options: { signal: stop.signal },
      prepare: (fake) => {
        fake.before = () => stop.abort();
      },
    });
    expect(outcome).toMatchObject({ end: "stopped", errors: [] });
    expect(kinds(node)).toEqual(["remove-container", "remove-link"]);
    expect(outcome.containers).toHaveLength(1);
  });

  test("ends without touching sandboxes and logs when the lists cannot be read again", async () => {
    const logs: LogFacts = {
      ...noLogs,
      podLogs: [{ entry: "default_pod-a_uid-a", uid: podUid("uid-a") }],
    };
    const { node, outcome } = await collect({
      containers: [one],
      sandboxes: [sandbox],
      logs,
      node: { fails: new Set(["list"]) },
    });
    expect(outcome.end).toBe("observation-failed");
    expect(outcome.errors).toEqual([expect.stringContaining("the rest is kept")]);
    expect(kinds(node)).toEqual(["remove-container", "remove-link"]);
  });

  test("is stopped, not failed, where the wish to stop cuts the lists off", async () => {
    const stop = new AbortController();
    const { outcome } = await collect({
      containers: [one],
      options: { signal: stop.signal },
      prepare: (fake) => {
        fake.runtime.listContainers = async () => {
          stop.abort();
          throw new RuntimeError("cancelled", "given up");
        };
      },
    });
    expect(outcome).toMatchObject({ end: "stopped", errors: [] });
  });

  test("ends in all of its lanes where one finds that the lists cannot be read again", async () => {
    const containers = Array.from({ length: 9 }, (_, index) => dead(`pod-${index}`, "c"));
    let lists = 0;
    const { node, outcome } = await collect({
      containers,
      node: { callNs: 11_000_000_000n },
      input: { pods: judged({ gone: containers.map(({ podUid: uid }) => uid) }) },
      prepare: (fake) => {
        const remove = fake.writer.removeContainer;
        fake.writer.removeContainer = async (id) => {
          await remove(id);
          // The first answers when the others have found out.
          if (id === containers[0]?.id) for (let turn = 0; turn < 9; turn += 1) await nextTurn();
        };
        fake.runtime.listContainers = async () => {
          lists += 1;
          if (lists === 1) throw new RuntimeError("failed", "no list");
          return [...fake.containers.values()];
        };
      },
    });
    expect(outcome.end).toBe("observation-failed");
    expect(lists).toBe(1);
    expect(node.called("remove-container").length).toBeLessThanOrEqual(4);
  });

  test("ends at the limit of removals, which counts containers, sandboxes and log directories", async () => {
    const counted = await collect({
      containers: [one, two, three],
      options: { maximumRemovals: 2 },
    });
    expect(counted.outcome.end).toBe("removal-limit");
    expect(counted.node.called("remove-container")).toEqual([one.id, two.id]);
    const enough = await collect({
      containers: [one],
      sandboxes: [sandbox],
      options: { maximumRemovals: 2 },
    });
    expect(enough.outcome.end).toBe("done");
    const uids = ["uid-a", "uid-b"];
    const logs = await collect({
      logs: {
        ...noLogs,
        podLogs: uids.map((uid) => ({ entry: `default_p_${uid}`, uid: podUid(uid) })),
      },
      input: { pods: judged({ gone: uids }) },
      options: { maximumRemovals: 1 },
    });
    expect(logs.outcome.end).toBe("removal-limit");
    expect(logs.node.called("remove-pod-logs")).toEqual(["default_p_uid-a"]);
  });

  test("does not use up the limit with what is refused or still in use, so that nothing starves behind it", async () => {
    const { node, outcome } = await collect({
      containers: [one, two, three],
      sandboxes: [sandbox],
      node: { fails: new Set([`remove-container ${one.id}`]) },
      options: { maximumRemovals: 1 },
    });
    expect(node.called("remove-container")).toEqual([one.id, two.id]);
    expect(outcome.end).toBe("removal-limit");
    const pods = ["uid-a", "uid-b"].map((uid) => sandboxOf(uid.slice(-1), { state: "not-ready" }));
    const sandboxes = await collect({
      sandboxes: pods,
      input: { pods: judged({ gone: ["uid-a", "uid-b"] }) },
      node: { fails: new Set([`stop-sandbox ${pods[0]?.id}`]) },
      options: { maximumRemovals: 1 },
    });
    expect(sandboxes.outcome.sandboxes.map(({ result }) => result.kind).toSorted()).toEqual([
      "failed",
      "removed",
    ]);
  });

  test("pauses between two removals, and not before the first", async () => {
    const pauses: number[] = [];
    const timer = { monotonicNs: () => 0n, sleep: async (ms: number) => void pauses.push(ms) };
    await collect({
      containers: [one, two, three],
      options: { removalInterval: seconds(2) },
      ports: { timer },
    });
    expect(pauses).toEqual([2000, 2000]);
  });

  test("decides again when removals take long, and keeps what is alive by then", async () => {
    const living = dead("b", "c", { state: "running" });
    const pods = judged({ gone: ["uid-a"] });
    const { node, outcome } = await collect({
      containers: [one, two],
      node: { callNs: 11_000_000_000n },
      options: {
        // The pod of both is back on the second look.
        decideAgain: (lists) =>
          decideContainersAgain(inputOf(lists, { pods: judged({}) }), {
            ...lists,
            pods: judged({}),
          }),
      },
      input: { pods },
      prepare: (fake) => void fake.containers.set(living.id, living),
    });
    expect(node.called("remove-container")).toEqual([one.id]);
    expect(outcome.containers[1]?.result).toEqual({
      kind: "skipped",
      what: "it is kept now: newest-of-name",
    });
  });

  test("removes what the plan removes, even if its own removals meet the limits meanwhile", async () => {
    // Four where three may stay: each name gets an equal share of one, which is less than was asked for.
    const containers = [40, 30].flatMap((age) =>
      ["x", "y"].map((name) => dead("a", name, { createdAt: ago(age) })),
    );
    const limits = { ...containerLimits, maximumPerPodContainer: -1, maximumContainers: 3 };
    const { node } = await collect({
      containers,
      node: { callNs: 11_000_000_000n },
      input: { pods: judged({}), limits },
    });
    expect(node.lists).toBeGreaterThan(1);
    expect(node.called("remove-container")).toEqual(containers.slice(0, 2).map(({ id }) => id));
  });

  describe("decides again during the stages after containers", () => {
    const logs: LogFacts = {
      ...noLogs,
      podLogs: [{ entry: "default_pod-a_uid-a", uid: podUid("uid-a") }],
    };
    const older = sandboxOf("a", { state: "not-ready", createdAt: ago(60) });
    /** Both sandboxes and the logs go by the look after the containers; by any later one, what `later` says. */
    async function afterwards(
      later: Partial<ContainerInput>,
      scene: Scene = {},
    ): Promise<{ readonly node: FakeNode; readonly outcome: ContainerOutcome }> {
      let looks = 0;
      const gone = { pods: judged({ gone: ["uid-a"] }) };
      return collect({
        sandboxes: [sandbox, older],
        logs,
        options: {
          decideAgain: (lists) => {
            looks += 1;
            const input = inputOf({ ...lists, logs }, looks === 1 ? gone : { ...gone, ...later });
            return decideContainersAgain(input, { ...lists, pods: input.pods });
          },
          ...scene.options,
        },
        node: { callNs: 6_000_000_000n, ...scene.node },
        ...(scene.prepare === undefined ? {} : { prepare: scene.prepare }),
      });
    }

    test("so that the logs of a pod that came back under its UID are kept", async () => {
      const { node } = await afterwards({ pods: judged({}) });
      expect(node.called("remove-sandbox")).toEqual([older.id]);
      expect(node.called("remove-pod-logs")).toEqual([]);
    });

    test("so that a hold that began meanwhile is obeyed", async () => {
      const blocks = [{ kind: "on-hold", until: null, reason: "" }] as const;
      const { node } = await afterwards({ blocks });
      expect(node.called("remove-sandbox")).toEqual([older.id]);
      expect(node.called("remove-pod-logs")).toEqual([]);
    });

    test("and after a long pause", async () => {
      const { node } = await afterwards(
        { pods: judged({}) },
        { node: { callNs: 0n }, options: { removalInterval: seconds(30) } },
      );
      expect(node.called("remove-sandbox")).toEqual([older.id]);
      expect(node.called("remove-pod-logs")).toEqual([]);
    });
  });

  test("checks a container's pod again after a long pause", async () => {
    const { node, outcome } = await collect({
      containers: [one, two],
      options: {
        removalInterval: seconds(30),
        decideAgain: (lists) =>
          decideContainersAgain(inputOf(lists, { pods: judged({}) }), {
            ...lists,
            pods: judged({}),
          }),
      },
    });
    expect(node.called("remove-container")).toEqual([one.id]);
    expect(resultsOf(outcome)).toEqual(["removed", "skipped"]);
  });

  test("reports each item when it is done", async () => {
    const told: string[] = [];
    await collect({
      containers: [one],
      sandboxes: [sandbox],
      options: { done: (item) => void told.push(item.result.kind) },
    });
    expect(told).toEqual(["removed", "removed"]);
  });

  test("measures the freed space, and never counts what others wrote as a loss", async () => {
    const readings = [100n, 350n];
    const measureAvailable = async (): Promise<bigint> => readings.shift() ?? 0n;
    expect(
      (await collect({ containers: [one], ports: { measureAvailable } })).outcome
        .measuredFreedBytes,
    ).toBe(250n);
    readings.push(100n, 50n);
    expect(
      (await collect({ containers: [one], ports: { measureAvailable } })).outcome
        .measuredFreedBytes,
    ).toBe(0n);
  });

  test("continues if measuring fails, and says so", async () => {
    const measureAvailable = async (): Promise<bigint> => {
      throw new Error("statfs failed");
    };
    const { outcome } = await collect({ containers: [one], ports: { measureAvailable } });
    expect(outcome).toMatchObject({
      end: "done",
      measuredFreedBytes: null,
      errors: ["statfs failed"],
    });
  });
});
