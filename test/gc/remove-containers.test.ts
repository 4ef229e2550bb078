import { describe, expect, test } from "bun:test";

import { type ContainerCalls, impatient } from "../../src/gc/calls.ts";
import { removeContainers } from "../../src/gc/remove-containers.ts";
import { failureCode, HostError, RuntimeError } from "../../src/model/errors.ts";
import { containerId, podUid, sandboxId } from "../../src/model/ids.ts";
import type { ContainerOutcome } from "../../src/model/pass.ts";
import type { ContainerDetail } from "../../src/model/ports.ts";
import type { Container, LogFacts, LogReading, Sandbox } from "../../src/model/snapshot.ts";
import { seconds } from "../../src/model/time.ts";
import type { ContainerInput } from "../../src/policy/container/container-rules.ts";
import { decideContainers } from "../../src/policy/container/containers.ts";
import {
  againOn,
  ago,
  danglingLink,
  dead,
  inputOf,
  judged,
  noLogs,
  sandboxOf,
} from "../support/build/pods.ts";
import { containerLimits } from "../support/build/values.ts";
import {
  containerExecution,
  type ExecutionChange,
  type FakeEngine,
  fakeEngine,
  type FakeWorld,
} from "../support/fake-engine.ts";

interface Scene {
  readonly containers?: readonly Container[];
  readonly sandboxes?: readonly Sandbox[];
  readonly logs?: LogReading;
  readonly world?: Partial<FakeWorld>;
  /** What the status of `one` says beside its list. */
  readonly detail?: Partial<ContainerDetail>;
  /** Calls that are refused, and calls that are not answered. */
  readonly fails?: readonly string[];
  readonly silent?: readonly string[];
  readonly input?: Partial<ContainerInput>;
  readonly options?: ExecutionChange;
  /** Stops the pass at the first call that changes something. */
  readonly stops?: boolean;
  /** A hold begins after so many looks whether there is one. */
  readonly heldAfter?: number;
  readonly prepare?: (fake: FakeEngine, stop: AbortController) => void;
}

const CHANGES = /^(Stop|Remove|ExecSync)/;

/** Pod a is gone: all that is dead of it goes, unless the scene says otherwise. */
async function collect(
  scene: Scene,
): Promise<{ readonly fake: FakeEngine; readonly outcome: ContainerOutcome }> {
  const { containers = [], sandboxes = [] } = scene;
  const stop = new AbortController();
  const fake = fakeEngine({
    containers: [...containers],
    sandboxes: [...sandboxes],
    fails: new Set(scene.fails),
    silent: new Set(scene.silent),
    detail: (id) => (id === one.id ? scene.detail : undefined),
    ...(scene.stops === true && {
      before: (method) => void (CHANGES.test(method) && stop.abort()),
    }),
    ...scene.world,
  });
  scene.prepare?.(fake, stop);
  const input = inputOf(
    { containers, sandboxes, logs: scene.logs ?? null },
    { pods: judged({ gone: ["uid-a"] }), ...scene.input },
  );
  let looks = 0;
  const held = () => (looks += 1) > (scene.heldAfter ?? Infinity);
  const change = { signal: stop.signal, held, ...scene.options };
  return { fake, outcome: await removeContainers(containerExecution(fake, change, input)) };
}

/** The calls in order, by their methods or whole, and what the outcome says. */
interface Expected extends Partial<Omit<ContainerOutcome, "containers" | "sandboxes" | "logs">> {
  readonly calls?: readonly string[];
  readonly containers?: readonly object[];
  readonly sandboxes?: readonly object[];
  readonly logs?: readonly object[];
}

/** A test: its claim, its scene, and what it leads to. */
type Row = readonly [claim: string, scene: Scene, expected: Expected];

const methodOf = (write: string): string => write.split(" ", 1)[0] ?? "";
/** What calls of one method were about, in order. */
const called = ({ writes }: FakeEngine, method: string): readonly string[] =>
  writes.filter((it) => methodOf(it) === method).map((it) => it.split(" ")[1] ?? "");

const listsIn = ({ calls }: FakeEngine): number =>
  calls.filter((method) => method === "ListContainers").length;

function claims(rows: readonly Row[]) {
  test.each([...rows])("%s", async (_, scene, { calls, ...expected }) => {
    const { fake, outcome } = await collect(scene);
    const isWhole = (at: number): boolean => calls?.[at]?.includes(" ") === true;
    if (calls !== undefined)
      expect(fake.writes.map((it, at) => (isWhole(at) ? it : methodOf(it)))).toEqual([...calls]);
    expect(outcome).toMatchObject(expected);
  });
}

const one = dead("a", "c", { createdAt: ago(30) });
const two = dead("a", "c", { createdAt: ago(20), attempt: 1 });
const three = dead("a", "c", { createdAt: ago(10), attempt: 2 });
const sandbox = sandboxOf("a", { state: "not-ready" });
const directory = "default_pod-a_uid-a/c";
const logPath = `${directory}/0.log`;
const podLogs: LogFacts = {
  ...noLogs,
  podLogs: [{ entry: "default_pod-a_uid-a", uid: podUid("uid-a") }],
};
const { writer, remover } = fakeEngine().engine;
const silence = async (): Promise<void> => undefined;
const partly = { names: ["0.log"], bytes: 7n, failure: new HostError("write", "it stays") };
const onHold = [{ kind: "on-hold", until: null, reason: "" }] as const;
const noPodIsGone = { pods: judged({}) };
/** The pass is asked to stop during that call, which cuts it off. */
const cutOffAt =
  (call: string): NonNullable<Scene["prepare"]> =>
  ({ world }, stop) => {
    world.before = (method) => {
      if (method !== call) return;
      stop.abort();
      throw new RuntimeError("cancelled", "given up");
    };
  };
const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const resultsOf = (outcome: ContainerOutcome): readonly string[] =>
  outcome.containers.map((item) => item.result.kind);
const itemOf = (kind: string, more: object = {}) => ({ result: { kind, ...more } });

describe("a container", () => {
  const removal = (attempt: number) => [
    "RemoveContainer",
    `RemoveLogs ${directory}/${attempt}.log`,
  ];
  /** The same pod, name and attempt. */
  const again = (change: Partial<Container> = {}) =>
    dead("a", "c", { createdAt: ago(5), state: "running", ...change });

  claims([
    [
      "is removed before its logs, then its sandbox, and the log directory of its pod last",
      { containers: [one], sandboxes: [sandbox], logs: podLogs },
      {
        calls: [
          "RemoveContainer",
          `RemoveLogs ${logPath}`,
          "StopPodSandbox",
          "RemovePodSandbox",
          "RemovePodLogs default_pod-a_uid-a",
        ],
        end: "done",
        containers: [{ ...itemOf("removed"), logFiles: [logPath], logBytes: 4096n }],
        sandboxes: [itemOf("removed")],
        logs: [{ kind: "pod-logs", entry: "default_pod-a_uid-a", bytes: 4096n }],
      },
    ],
    [
      "is removed with the logs of its own attempt",
      { containers: [one, two, three] },
      { calls: [...removal(0), ...removal(1), ...removal(2)] },
    ],
    [
      "is removed without its logs while another one of its pod, name and attempt is listed",
      { containers: [one, again()] },
      { calls: ["RemoveContainer"], containers: [{ ...itemOf("removed"), logError: null }] },
    ],
    [
      "is removed with the last of its pod, name and attempt",
      { containers: [one, again({ state: "exited" })] },
      { calls: ["RemoveContainer", ...removal(0)] },
    ],
    ...[{ name: "other" }, { attempt: 1 }, { podUid: podUid("uid-b") }].map((change): Row => [
      `is removed with its logs beside one with another ${Object.keys(change).join()}`,
      { containers: [one, again(change)] },
      { calls: removal(0) },
    ]),
    ...[{ podName: "" }, { podNamespace: ".." }, { name: "../c" }].map((change): Row => [
      `is removed without logs if Kubernetes gives no such names: ${JSON.stringify(change)}`,
      { containers: [{ ...one, ...change }] },
      { calls: ["RemoveContainer"], containers: [{ ...itemOf("removed"), logError: null }] },
    ]),
  ]);

  test("that is still listed after its removal is reported", async () => {
    const options = { writer: { ...writer, removeContainer: silence } };
    const { outcome } = await collect({ containers: [one], options });
    expect(outcome.errors).toEqual([`container ${one.id} is still listed after its removal`]);
  });

  test("that is the newest of its name, because a younger one has gone, is kept", async () => {
    const { fake } = await collect({
      containers: [one, two, three],
      input: noPodIsGone,
      world: { writeTakes: seconds(2) },
      prepare: ({ world }) => {
        world.before = (method) => {
          if (method !== "RemoveContainer") return;
          world.containers = world.containers.filter(({ id }) => id !== three.id);
        };
      },
    });
    expect(called(fake, "RemoveContainer")).toEqual([one.id]);
  });

  const meanwhile = (claim: string, detail: Partial<ContainerDetail>, what: string): Row => [
    `that ${claim} meanwhile is skipped`,
    { containers: [one], detail },
    { calls: [], containers: [{ ...itemOf("skipped", { what }), stopped: false, logFiles: [] }] },
  ];
  const otherUid = { "io.kubernetes.pod.uid": "uid-b" };

  claims([
    meanwhile("runs", { state: "running" }, "it is running now"),
    meanwhile("became unknown", { state: "unknown" }, "its state is now unknown"),
    meanwhile("belongs to another pod", { labels: otherUid }, 'its pod UID is now "uid-b"'),
    [
      "not created by Kubernetes has no log of its own",
      {
        containers: [{ ...one, podUid: podUid("") }],
        input: {
          pods: judged({ foreignDead: [`sandbox:${one.sandboxId}`] }),
          limits: { ...containerLimits, collectForeign: true },
        },
      },
      { calls: ["RemoveContainer"], containers: [{ logFiles: [] }] },
    ],
    [
      "that no longer exists counts as removed",
      { containers: [one, two, three], prepare: ({ world }) => void (world.containers = []) },
      { calls: [], containers: [one, two, three].map(() => itemOf("already-gone")), errors: [] },
    ],
    [
      "whose status fails is not removed, and the next one is",
      { containers: [one, two], fails: [`ContainerStatus ${one.id}`] },
      {
        calls: ["RemoveContainer", "RemoveLogs"],
        containers: [
          { ...itemOf("failed", { step: "status" }), stopped: false },
          itemOf("removed"),
        ],
      },
    ],
    [
      "whose removal fails keeps its logs and its sandbox, and the next one is removed",
      {
        containers: [one, two],
        sandboxes: [sandbox],
        fails: [`RemoveContainer ${one.id}`],
      },
      {
        calls: ["RemoveContainer", "RemoveContainer", "RemoveLogs"],
        containers: [
          itemOf("failed", { step: "remove", message: expect.stringContaining("made to fail") }),
          itemOf("removed"),
        ],
      },
    ],
    [
      "is removed even if one of its logs cannot be deleted, and the result says so beside what went",
      {
        containers: [one],
        options: { logs: { ...remover, removeContainerLogs: async () => partly } },
      },
      {
        containers: [
          { ...itemOf("removed"), logFiles: ["0.log"], logBytes: 7n, logError: "it stays" },
        ],
      },
    ],
    [
      "is removed even if its logs cannot be deleted, and the result says so",
      {
        containers: [one],
        fails: [`RemoveLogs ${logPath}`],
      },
      {
        containers: [
          {
            ...itemOf("removed"),
            logError: `RemoveLogs ${logPath} was made to fail`,
          },
        ],
      },
    ],
  ]);

  const severalSandboxes = "of one pod one after another, also where it has several sandboxes";

  test.each<[string, string, readonly string[], number, ExecutionChange]>([
    [severalSandboxes, "uid-a", ["x", "y"], 1, {}],
    ["that Kubernetes did not make one after another in one sandbox", "", ["x", "x"], 1, {}],
  ])("is removed, like others, %s", async (_, uid, sandboxes, most, options) => {
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
    const { outcome } = await collect({
      containers,
      options: { writer: { ...writer, removeContainer }, ...options },
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
  const unknown = { ...one, state: "unknown" } as const;
  const broken = {
    "io.kubernetes.pod.terminationGracePeriod": "5",
    "io.kubernetes.container.preStopHandler": "{}",
  };

  claims([
    [
      "is stopped first, then removed",
      { containers: [unknown] },
      {
        calls: ["StopContainer", "RemoveContainer", "RemoveLogs"],
        containers: [{ stopped: true }],
        errors: [],
      },
    ],
    [
      "whose pre-stop handler fails is removed anyway, and the outcome names it with what failed",
      { containers: [unknown], detail: { annotations: broken } },
      {
        containers: [itemOf("removed")],
        errors: [expect.stringContaining(`container ${one.id}: unknown kind of pre-stop handler`)],
      },
    ],
    [
      "that was created anew meanwhile is skipped: it is about to start",
      { containers: [unknown], detail: { state: "created" } },
      { calls: [] },
    ],
    [
      "that cannot be stopped is not removed",
      { containers: [unknown], fails: [`StopContainer ${one.id}`] },
      { calls: ["StopContainer"], containers: [itemOf("failed", { step: "stop" })] },
    ],
    [
      "that exited meanwhile needs no stop",
      { containers: [unknown], detail: { state: "exited" } },
      { calls: ["RemoveContainer", "RemoveLogs"] },
    ],
    [
      "that was known as created, and exited meanwhile, is another one by now and skipped",
      { containers: [{ ...one, state: "created" }], detail: { state: "exited" } },
      { calls: [] },
    ],
    [
      "stays where the pass is asked to stop while it is stopped, and counts as stopped",
      { containers: [unknown], stops: true },
      { calls: ["StopContainer"], containers: [{ ...itemOf("skipped"), stopped: true }] },
    ],
  ]);
});

describe("a removal that is refused because somebody else", () => {
  const refused = async (kind: "busy" | "failed", isGone: boolean, scene: Scene = {}) => {
    const { fake, outcome } = await collect({
      containers: [one],
      sandboxes: [sandbox],
      ...scene,
      prepare: ({ world }) => {
        world.before = (method) => {
          if (method === "StopPodSandbox" || !CHANGES.test(method)) return;
          if (isGone) Object.assign(world, { containers: [], sandboxes: [] });
          throw new RuntimeError(kind, "refused");
        };
      },
    });
    const items = [...outcome.containers, ...outcome.sandboxes];
    const looks = fake.calls.filter((method) => method === "ContainerStatus").length;
    return { looks, outcome, results: items.map(({ result }) => result.kind) };
  };
  const unknown: Scene = { containers: [{ ...one, state: "unknown" }], sandboxes: [] };

  test.each<[string, "busy" | "failed", Scene]>([
    ["was removing it", "busy", {}],
    ["has just removed it", "failed", {}],
    ["removes it while it is stopped", "failed", unknown],
    ["has just removed a sandbox", "failed", { containers: [] }],
  ])("%s counts as removed already", async (_, kind, scene) => {
    const { results } = await refused(kind, true, scene);
    expect(results).toEqual(["already-gone"]);
  });

  test("has not finished removing it is skipped, and has not failed", async () => {
    const sandboxes = [sandboxOf("b", { state: "not-ready" })];
    const input = { pods: judged({ gone: ["uid-a", "uid-b"] }) };
    const { outcome, results } = await refused("busy", false, { sandboxes, input });
    expect(results).toEqual(["skipped", "skipped"]);
    expect(outcome).toMatchObject({ end: "done", errors: [] });
  });

  test("has just removed it leaves its logs to this pass", async () => {
    const logs = { ...remover, removeContainerLogs: async () => partly };
    const { outcome } = await refused("failed", true, { options: { logs } });
    expect(outcome.containers).toMatchObject([{ ...itemOf("already-gone"), logFiles: ["0.log"] }]);
  });

  test("uses it is a failure after one check", async () => {
    expect(await refused("failed", false)).toMatchObject({ results: ["failed"], looks: 2 });
  });
});

describe("a sandbox", () => {
  const withoutStatus: Partial<FakeWorld> = {
    lies: (method) => (method === "PodSandboxStatus" ? "absent" : null),
  };
  const inIt = dead("a", "c", { sandboxId: sandbox.id });
  const stillGoing = inputOf({ sandboxes: [sandbox] }, { pods: judged({ gone: ["uid-a"] }) });

  claims([
    [
      "that cannot be stopped is not removed",
      { sandboxes: [sandbox], fails: [`StopPodSandbox ${sandbox.id}`] },
      { calls: ["StopPodSandbox"], sandboxes: [itemOf("failed", { step: "stop" })] },
    ],
    [
      "whose status fails is neither stopped nor removed, and is not waited for",
      {
        sandboxes: [sandbox],
        world: {
          before: (method) => {
            if (method === "PodSandboxStatus") throw new RuntimeError("busy", "refused");
          },
        },
      },
      { calls: [], sandboxes: [itemOf("failed", { step: "status" })] },
    ],
    [
      "with a container in it is never removed",
      {
        sandboxes: [sandbox],
        options: { decideAgain: () => decideContainers(stillGoing) },
        prepare: ({ world }) => void (world.containers = [inIt]),
      },
      { calls: [] },
    ],
    [
      "that is listed but has no status is removed all the same",
      { sandboxes: [sandbox], world: withoutStatus },
      { calls: ["StopPodSandbox", "RemovePodSandbox"], sandboxes: [itemOf("already-gone")] },
    ],
    [
      "that has no status and cannot be removed is a failed item, even if the pass is stopped",
      {
        sandboxes: [sandbox],
        world: withoutStatus,
        fails: [`RemovePodSandbox ${sandbox.id}`],
        stops: true,
      },
      {
        calls: ["StopPodSandbox", "RemovePodSandbox"],
        sandboxes: [itemOf("failed", { step: "remove" })],
      },
    ],
    [
      "that is ready by its own status, although not by the list, is skipped",
      {
        sandboxes: [sandbox],
        prepare: ({ world }) => {
          world.before = (method) => {
            if (method === "PodSandboxStatus") world.sandboxes = [{ ...sandbox, state: "ready" }];
          };
        },
      },
      { calls: [], sandboxes: [itemOf("skipped", { what: "it is ready now" })] },
    ],
  ]);
});

describe("a runtime that does not answer", () => {
  const sandboxes = Array.from({ length: 12 }, (_, index) =>
    sandboxOf("a", { id: sandboxId(`sandbox-${index}`), state: "not-ready" }),
  );
  const silent = sandboxes.slice(0, 2).map(({ id }) => `StopPodSandbox ${id}`);

  test("holds up no sandbox and no log in the passes after the one that met it", async () => {
    const containers = [one, two];
    const other = sandboxOf("b", { state: "not-ready" });
    const { passes } = fakeEngine().engine;
    const scene = {
      containers,
      sandboxes: [other],
      logs: { ...noLogs, podLogs: [{ entry: "default_c_uid-c", uid: podUid("uid-c") }] },
      silent: containers.map(({ id }) => `RemoveContainer ${id}`),
      input: { pods: judged({ gone: ["uid-a", "uid-b", "uid-c"] }) },
      options: { passes },
    };
    expect((await collect(scene)).fake.writes).toEqual(scene.silent);
    expect((await collect(scene)).fake.writes).toEqual([
      `StopPodSandbox ${other.id}`,
      `RemovePodSandbox ${other.id}`,
      "RemovePodLogs default_c_uid-c",
      ...scene.silent,
    ]);
  });

  test("ends the pass after two calls, and the next pass tries these items last", async () => {
    const { passes } = fakeEngine().engine;
    const options = { passes };
    const first = await collect({ sandboxes, silent, options });
    expect(called(first.fake, "StopPodSandbox")).toHaveLength(2);
    expect(first.outcome.errors).toEqual([
      "2 calls about containers and sandboxes got no answer; the next pass does the rest",
    ]);
    const second = await collect({ sandboxes, silent, options });
    expect(called(second.fake, "RemovePodSandbox")).toHaveLength(10);
    expect(called(second.fake, "StopPodSandbox").slice(-2)).toEqual(
      sandboxes.slice(0, 2).map(({ id }) => id),
    );
  });
});

describe("a call that is never answered counts under pressure as unanswered", () => {
  const never = async () => new Promise<never>(() => undefined);
  const { signal } = new AbortController();
  const containerIdOf = containerId("c");

  test.each<[string, number, (calls: ContainerCalls) => Promise<unknown>]>([
    ["a container's status", 10, (calls) => calls.runtime.containerDetail(containerIdOf, signal)],
    ["a sandbox's status", 10, (calls) => calls.runtime.sandboxDetail(sandboxId("s"), signal)],
    ["a removal", 10, (calls) => calls.writer.removeContainer(containerIdOf)],
    ["a sandbox's stop", 10, (calls) => calls.writer.stopSandbox(sandboxId("s"), signal)],
    ["a sandbox's removal", 10, (calls) => calls.writer.removeSandbox(sandboxId("s"))],
    ["a stop at once", 10, (calls) => calls.writer.stopContainer(containerIdOf, 0, signal)],
    ["a stop within 5 s", 15, (calls) => calls.writer.stopContainer(containerIdOf, 5, signal)],
    [
      "a stop within a day",
      30,
      (calls) => calls.writer.stopContainer(containerIdOf, 86_400, signal),
    ],
  ])("%s after %d s", async (_, count, ask) => {
    const { engine, world } = fakeEngine();
    const startNs = world.uptime;
    const runtime = { containerDetail: never, sandboxDetail: never };
    const silent = {
      ...engine.writer,
      stopContainer: never,
      removeContainer: never,
      stopSandbox: never,
      removeSandbox: never,
    };
    const calls = impatient({ runtime, writer: silent }, engine.timer);
    const failure: unknown = await ask(calls).catch((thrown: unknown) => thrown);
    expect(failureCode(failure)).toBe("deadline");
    expect(world.uptime - startNs).toBe(seconds(count));
  });
});

describe("a container that has to be stopped", () => {
  test("is kept when the pass is stopped", async () => {
    const handler = { sleep: { seconds: 3600 } };
    const annotations = {
      "io.kubernetes.pod.terminationGracePeriod": "86400",
      "io.kubernetes.container.preStopHandler": JSON.stringify(handler),
    };
    const containers = [{ ...one, state: "unknown" as const }];
    const stop = new AbortController();
    const sleep = async (ms: number): Promise<void> => void (ms > 10_000 && stop.abort());
    const { fake, outcome } = await collect({
      containers,
      detail: { annotations },
      options: { signal: stop.signal, timer: { monotonicNs: () => 0n, sleep } },
    });
    expect(fake.writes).toEqual([]);
    expect(outcome).toMatchObject({
      end: "stopped",
      errors: [],
      containers: [{ ...itemOf("skipped"), stopped: false }],
    });
  });
});

describe("a log directory", () => {
  const logs = podLogs;
  const entry = "default_pod-a_uid-a";
  const listed = (change: Partial<Container>) => dead("b", "c", { state: "running", ...change });

  claims([
    [
      "stays while a container with the pod's UID is listed",
      { containers: [listed({ podUid: podUid("uid-a") })], logs },
      { calls: [] },
    ],
    [
      "stays while a sandbox with the pod's UID is listed",
      { sandboxes: [sandboxOf("b", { metadataUid: podUid("uid-a") })], logs },
      { calls: [] },
    ],
    [
      "stays if its container is still listed after the removal",
      { containers: [one], logs, options: { writer: { ...writer, removeContainer: silence } } },
      { calls: [`RemoveLogs ${logPath}`], logs: [] },
    ],
    [
      "is deleted beside the containers and sandboxes of other pods",
      { containers: [listed({})], sandboxes: [sandboxOf("b")], logs },
      { calls: [`RemovePodLogs ${entry}`] },
    ],
    [
      "that cannot be deleted is a failed item",
      { logs, fails: ["RemovePodLogs default_pod-a_uid-a"] },
      { logs: [itemOf("failed", { step: "remove" })], end: "done" },
    ],
    [
      "of which something cannot be deleted is a failed item with what went",
      { logs, options: { logs: { ...remover, removePodLogs: async () => partly } } },
      { logs: [{ ...itemOf("failed", { message: "it stays" }), bytes: 7n }], end: "done" },
    ],
    [
      "that somebody else deleted was gone already",
      { logs, options: { logs: { ...remover, removePodLogs: async () => null } } },
      { logs: [itemOf("already-gone")] },
    ],
  ]);
});

describe("unreadable log directories", () => {
  const logs = { kind: "failed", message: "cannot open /l" } as const;

  claims([
    [
      "do not keep a container and its sandbox from being removed, but its logs are kept",
      { containers: [one], sandboxes: [sandbox], logs },
      {
        calls: ["RemoveContainer", "StopPodSandbox", "RemovePodSandbox"],
        errors: ["no log is deleted: cannot open /l"],
      },
    ],
  ]);
});

describe("a dangling link", () => {
  const link = danglingLink();
  const logs: LogFacts = { ...noLogs, danglingLinks: [link] };
  const many = [0, 1, 2].map((attempt) => danglingLink({ entry: `link-${attempt}`, attempt }));

  claims([
    [
      "is deleted when its container is not listed",
      { logs, containers: [two], input: noPodIsGone },
      {
        calls: [`RemoveLink ${link.entry}`],
        logs: [{ kind: "log-link", reason: { kind: "container-gone" }, ...itemOf("removed") }],
      },
    ],
    [
      "is deleted after the last container of its pod, name and attempt",
      { logs, containers: [one] },
      { calls: ["RemoveContainer", "RemoveLogs", "RemoveLink"] },
    ],
    ...(["running", "created", "unknown", "exited"] as const).map((state): Row => [
      `is kept while its container is listed, ${state}`,
      { logs, containers: [{ ...one, state }], input: noPodIsGone },
      { calls: [] },
    ]),
    [
      "is kept from the moment a hold begins",
      { logs, heldAfter: 1 },
      { calls: [], end: "blocked" },
    ],
    [
      "that cannot be deleted is a failed item",
      { logs, fails: [`RemoveLink ${link.entry}`] },
      { logs: [itemOf("failed", { step: "remove" })] },
    ],
    [
      "stays after the pass was asked to stop",
      { logs: { ...logs, danglingLinks: many }, stops: true },
      { calls: ["RemoveLink"], end: "stopped", errors: [] },
    ],
  ]);

  test("stays where a hold begins while others are removed", async () => {
    let looks = 0;
    const { fake } = await collect({
      logs: { ...logs, danglingLinks: many },
      world: { writeTakes: seconds(6) },
      options: {
        decideAgain: (lists) => {
          const input = { ...lists, logs: { ...logs, danglingLinks: many } };
          looks += 1;
          return decideContainers(inputOf(input, looks > 1 ? { blocks: onHold } : {}));
        },
      },
    });
    expect(called(fake, "RemoveLink")).toHaveLength(1);
  });
});

describe("execution", () => {
  // Four where three may stay: each name gets an equal share of one, which is less than was asked for.
  const fourOfThree = [40, 30].flatMap((age) =>
    ["x", "y"].map((name) => dead("a", name, { createdAt: ago(age) })),
  );

  claims([
    [
      "finishes the removal in flight when stopped, and starts no other",
      { containers: [one, two], sandboxes: [sandbox], stops: true },
      {
        calls: ["RemoveContainer", "RemoveLogs"],
        end: "stopped",
        errors: [],
        containers: [itemOf("removed")],
      },
    ],
    [
      "ends without touching sandboxes and logs when the lists cannot be read again",
      { containers: [one], sandboxes: [sandbox], logs: podLogs, fails: ["ListContainers"] },
      {
        calls: ["RemoveContainer", "RemoveLogs"],
        end: "observation-failed",
        errors: [expect.stringContaining("the rest is kept")],
      },
    ],
    [
      "is stopped, not failed, where the wish to stop cuts the lists off",
      { containers: [one], prepare: cutOffAt("ListContainers") },
      { end: "stopped", errors: [] },
    ],
    [
      "continues if measuring fails, and says so",
      {
        containers: [one],
        options: { measureFree: () => Promise.reject(new Error("statfs failed")) },
      },
      { end: "done", measuredFreedBytes: null, errors: ["statfs failed"] },
    ],
  ]);

  test("requests no list if removal is blocked or there is nothing to do", async () => {
    for (const [end, input] of [
      ["blocked", { blocks: onHold }],
      ["done", noPodIsGone],
    ] as const) {
      const { fake, outcome } = await collect({ containers: [one], input });
      const { calls, writes } = fake;
      expect({ calls, writes, end: outcome.end }).toEqual({
        calls: [],
        writes: [],
        end,
      });
    }
  });

  test("removes what the plan removes, even if its own removals meet the limits meanwhile", async () => {
    const limits = { ...containerLimits, maximumPerPodContainer: -1, maximumContainers: 3 };
    const { fake } = await collect({
      containers: fourOfThree,
      world: { writeTakes: seconds(11) },
      input: { ...noPodIsGone, limits },
    });
    expect(listsIn(fake)).toBeGreaterThan(1);
    expect(called(fake, "RemoveContainer")).toEqual(fourOfThree.slice(0, 2).map(({ id }) => id));
  });

  test("reads a pod source that takes longer than lists may be old only once", async () => {
    let looks = 0;
    let fake: FakeEngine | null = null;
    const input = inputOf({ containers: [one] }, { pods: judged({ gone: ["uid-a"] }) });
    const { outcome } = await collect({
      containers: [one],
      prepare: (its) => {
        fake = its;
        its.elapse(1_000);
      },
      options: {
        decideAgain: async (lists) => {
          looks += 1;
          fake?.elapse(3_000);
          return againOn(lists, input);
        },
      },
    });
    expect(outcome.containers).toMatchObject([{ result: { kind: "removed" } }]);
    expect(looks).toBe(1);
  });

  test.each([
    ["measures the freed space", [100n, 350n], 250n],
    ["counts what others wrote meanwhile as the change of the disk that it is", [100n, 50n], -50n],
  ])("%s", async (_, readings, freed) => {
    const left = [...readings];
    const measureFree = async (): Promise<bigint> => left.shift() ?? 0n;
    const { outcome } = await collect({ containers: [one], options: { measureFree } });
    expect(outcome.measuredFreedBytes).toBe(freed);
  });
});
