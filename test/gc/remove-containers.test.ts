import { describe, expect, test } from "bun:test";

import { LogUsers } from "../../src/gc/log-users.ts";
import { removeContainers } from "../../src/gc/remove-containers.ts";
import { HostError, RuntimeError } from "../../src/model/errors.ts";
import { containerId, containerLogLink, podUid, sandboxId } from "../../src/model/ids.ts";
import type { ContainerOutcome } from "../../src/model/pass.ts";
import type { ContainerDetail, UsedLog } from "../../src/model/ports.ts";
import type { Container, LogFacts, LogReading, Sandbox } from "../../src/model/snapshot.ts";
import { seconds } from "../../src/model/time.ts";
import type { ContainerInput } from "../../src/policy/container/container-rules.ts";
import { decideContainers } from "../../src/policy/container/containers.ts";
import { ownership } from "../../src/policy/container/ownership.ts";
import {
  againOn,
  ago,
  dead,
  hexId,
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
const two = dead("a", "c", { createdAt: ago(20) });
const three = dead("a", "c", { createdAt: ago(10) });
const sandbox = sandboxOf("a", { state: "not-ready" });
const directory = "/var/log/pods/default_pod-a_uid-a/c";
const logPath = `${directory}/0.log`;
const podLogs: LogFacts = {
  ...noLogs,
  podLogs: [{ entry: "default_pod-a_uid-a", uid: podUid("uid-a") }],
};
const { writer, remover } = fakeEngine().engine;
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
  const running = dead("a", "other", { state: "running" });
  const loggingTo = (...paths: readonly (readonly [Container, string])[]): Partial<FakeWorld> => ({
    detail: (id) => ({ logPath: paths.find(([container]) => container.id === id)?.[1] ?? "" }),
  });
  /** Of a container with the log of this name, beside which these are kept. */
  const removal = (name: string, ...kept: readonly string[]) => [
    "RemoveContainer",
    ["RemoveLogs", `${directory}/${name}`, "uid-a", ...kept].join(" "),
    "RemoveLink",
  ];
  const numbered = loggingTo(
    [one, `${directory}/0.log`],
    [two, `${directory}/1.log`],
    [three, `${directory}/2.log`],
  );

  claims([
    [
      "is removed before its logs, then its sandbox, and the log directory of its pod last",
      { containers: [one], sandboxes: [sandbox], logs: podLogs, detail: { logPath } },
      {
        calls: [
          "RemoveContainer",
          `RemoveLogs ${logPath} uid-a`,
          `RemoveLink pod-a_default_c-${one.id}.log`,
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
      "is removed with its log, of whose name another directory of its pod has one in use",
      {
        containers: [one, running],
        world: loggingTo(
          [one, logPath],
          [running, "/var/log/pods/default_pod-a_uid-a/other/0.log"],
        ),
      },
      { calls: removal("0.log") },
    ],
    [
      "is removed without the logs next to its own, until their containers are removed",
      { containers: [one, two, three], world: numbered },
      {
        calls: [
          ...removal("0.log", "1.log", "2.log"),
          ...removal("1.log", "2.log"),
          ...removal("2.log"),
        ],
      },
    ],
    [
      "is removed without the log next to its own of one that could not be removed",
      { containers: [one, two], world: numbered, fails: [`RemoveContainer ${one.id}`] },
      { calls: ["RemoveContainer", ...removal("1.log", "0.log")] },
    ],
    ...["pod.name", "pod.namespace", "container.name"].map((label): Row => {
      const labels = {
        "io.kubernetes.pod.uid": "uid-a",
        "io.kubernetes.pod.name": "pod-a",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.container.name": "c",
      };
      const { [`io.kubernetes.${label}` as keyof typeof labels]: _, ...rest } = labels;
      return [
        `without its label ${label} has no link that could be told`,
        { containers: [one], detail: { labels: rest } },
        { calls: ["RemoveContainer"] },
      ];
    }),
  ]);

  test("has its path resolved once per pass, although others are compared with it", async () => {
    const asked: UsedLog[] = [];
    const placesOf: typeof remover.placesOf = async (used) => {
      asked.push(...used);
      return remover.placesOf(used);
    };
    const logs = { ...remover, placesOf };
    await collect({ containers: [one, two], world: numbered, options: { logs } });
    expect(asked).toEqual(
      ["0.log", "1.log"].map((name) => ({ path: `${directory}/${name}`, podUid: "" })),
    );
  });

  test.each([
    ["that Kubernetes did not make", dead("b", "other", { podUid: podUid("") }), "kept"],
    ["of another pod", dead("b", "other"), "deleted"],
  ])(
    "is removed, and while the status of a container %s fails its log is %s",
    async (_, other, log) => {
      const { fake, outcome } = await collect({
        containers: [one, other],
        detail: { logPath },
        fails: [`ContainerStatus ${other.id}`],
      });
      expect(called(fake, "RemoveContainer")).toEqual([one.id]);
      expect(called(fake, "RemoveLogs")).toEqual(log === "kept" ? [] : [logPath]);
      expect(outcome.containers[0]?.logError).toEqual(
        log === "kept" ? expect.stringContaining(`status of container ${other.id}`) : null,
      );
    },
  );

  test.each([
    ["its own status", one.id],
    ["the status of another one of its pod", two.id],
  ])(
    "is not removed by a pass that is cut off during %s, and goes with its log next",
    async (_, about) => {
      const options = {};
      const world = numbered;
      const containers = [one, two];
      const first = await collect({
        containers,
        world,
        options,
        prepare: ({ world: node, engine: { logUsers } }, stop) => {
          Object.assign(options, { logUsers });
          node.before = (method, id) => {
            if (method !== "ContainerStatus" || id !== about || stop.signal.aborted) return;
            stop.abort();
            throw new RuntimeError("cancelled", "given up");
          };
        },
      });
      expect(first.fake.writes).toEqual([]);
      const { fake } = await collect({ containers, world, options });
      expect(called(fake, "RemoveLogs")).toEqual([`${directory}/0.log`, `${directory}/1.log`]);
    },
  );

  test("is removed although the status of another one of its pod hangs", async () => {
    const gate = Promise.withResolvers<void>();
    const { fake } = await collect({
      containers: [one, two],
      world: numbered,
      prepare: ({ world }) => {
        world.before = (method, about) => {
          if (method === "RemoveContainer") gate.resolve();
          return method === "ContainerStatus" && about === two.id ? gate.promise : undefined;
        };
      },
    });
    expect(called(fake, "RemoveContainer")).toEqual([one.id, two.id]);
    // Its own, and that of the other for both.
    expect(fake.calls.filter((method) => method === "ContainerStatus")).toHaveLength(3);
  });

  test("that is still listed after its removal is reported", async () => {
    const removeContainer = async (): Promise<void> => undefined;
    const options = { writer: { ...writer, removeContainer } };
    const { outcome } = await collect({ containers: [one], options });
    expect(outcome.errors).toEqual([`container ${one.id} is still listed after its removal`]);
  });

  test("is removed beside many that are listed although they are gone at the cost of one status of each", async () => {
    const ghosts = Array.from({ length: 50 }, (_, at) => dead("a", `${at}`, { createdAt: ago(1) }));
    const { fake, outcome } = await collect({
      containers: [one, two, three, ...ghosts],
      input: { ...noPodIsGone, limits: containerLimits },
      world: {
        lies: (_, about) => (ghosts.some(({ id }) => id === about) ? "absent" : null),
      },
    });
    expect(resultsOf(outcome)).toEqual(["removed", "removed"]);
    expect(fake.calls.filter((method) => method === "ContainerStatus")).toHaveLength(50 + 2 + 2);
    expect(listsIn(fake)).toBe(2);
  });

  test("that is the newest of its name, because a younger one has gone, is kept", async () => {
    const { fake } = await collect({
      containers: [one, two, three],
      input: noPodIsGone,
      prepare: ({ world }) => {
        world.before = (method, about) => {
          if (method !== "ContainerStatus" || about !== three.id) return;
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
  const link = `pod-a_default_c-${one.id}.log`;

  claims([
    meanwhile("runs", { state: "running" }, "it is running now"),
    meanwhile("became unknown", { state: "unknown" }, "its state is now unknown"),
    meanwhile("belongs to another pod", { labels: otherUid }, 'its pod UID is now "uid-b"'),
    [
      "not created by Kubernetes has no log of its own, whatever path it names",
      {
        containers: [{ ...one, podUid: podUid("") }],
        detail: { logPath },
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
        calls: ["RemoveContainer", "RemoveLink"],
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
        detail: { logPath },
      },
      {
        calls: ["RemoveContainer", "RemoveContainer", "RemoveLink"],
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
        detail: { logPath },
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
        detail: { logPath },
        fails: [`RemoveLogs ${logPath}`, `RemoveLink ${link}`],
      },
      {
        containers: [
          {
            ...itemOf("removed"),
            logError: [`RemoveLogs ${logPath}`, `RemoveLink ${link}`]
              .map((call) => `${call} was made to fail`)
              .join("; "),
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
        calls: ["StopContainer", "RemoveContainer", "RemoveLink"],
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
      { calls: ["RemoveContainer", "RemoveLink"] },
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
  /** Everything is gone so many turns after the call; `null`: it stays. */
  const refused = async (kind: "busy" | "failed", goneAfter: number | null, scene: Scene = {}) => {
    const { fake, outcome } = await collect({
      containers: [one],
      sandboxes: [sandbox],
      ...scene,
      prepare: ({ world }) => {
        const gone = async (): Promise<void> => {
          for (let turn = 0; turn < (goneAfter ?? Infinity); turn += 1) await nextTurn();
          Object.assign(world, { containers: [], sandboxes: [] });
        };
        world.before = (method) => {
          if (method === "StopPodSandbox" || !CHANGES.test(method)) return;
          if (goneAfter !== null) void gone();
          throw new RuntimeError(kind, "refused");
        };
      },
    });
    const items = [...outcome.containers, ...outcome.sandboxes];
    const looks = fake.calls.filter((method) => method === "ContainerStatus").length;
    return { looks, outcome, results: items.map(({ result }) => result.kind) };
  };
  const unknown: Scene = { containers: [{ ...one, state: "unknown" }], sandboxes: [] };

  test.each<[string, "busy" | "failed", number, Scene]>([
    ["is removing it is waited for, and", "busy", 3, {}],
    ["has just removed it", "failed", 0, {}],
    ["removes it while it is stopped", "failed", 0, unknown],
    ["has just removed a sandbox", "failed", 0, { containers: [] }],
  ])("%s counts as removed already", async (_, kind, goneAfter, scene) => {
    const { results, outcome } = await refused(kind, goneAfter, scene);
    expect(results).toEqual(["already-gone"]);
    expect(outcome.containers.some(({ stopped }) => stopped)).toBe(scene === unknown);
  });

  test("never finishes removing it is skipped after five seconds in all, and has not failed", async () => {
    const sandboxes = [sandboxOf("b", { state: "not-ready" })];
    const input = { pods: judged({ gone: ["uid-a", "uid-b"] }) };
    const { outcome, results, looks } = await refused("busy", null, { sandboxes, input });
    expect(results).toEqual(["skipped", "skipped"]);
    expect(outcome).toMatchObject({ end: "done", errors: [] });
    expect(looks).toBe(1 + 5_000 / 250 + 1);
  });

  test("has just removed it leaves its logs to this pass", async () => {
    const logs = { ...remover, removeContainerLogs: async () => partly };
    const { outcome } = await refused("failed", 0, { detail: { logPath }, options: { logs } });
    expect(outcome.containers).toMatchObject([{ ...itemOf("already-gone"), logFiles: ["0.log"] }]);
  });

  test("uses it has failed after one look", async () => {
    expect(await refused("failed", null)).toMatchObject({ results: ["failed"], looks: 2 });
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

  test("ends the pass after two calls, and the next pass tries these items last", async () => {
    const { passes } = fakeEngine().engine;
    const options = { passes };
    const first = await collect({ sandboxes, silent, options });
    expect(called(first.fake, "StopPodSandbox")).toHaveLength(2);
    expect(first.outcome.errors).toEqual([
      "sandboxes: 2 calls got no answer; the next pass does the rest",
    ]);
    const second = await collect({ sandboxes, silent, options });
    expect(called(second.fake, "RemovePodSandbox")).toHaveLength(10);
    expect(called(second.fake, "StopPodSandbox").slice(-2)).toEqual(
      sandboxes.slice(0, 2).map(({ id }) => id),
    );
  });
});

describe("a container that has to be stopped", () => {
  const unknown = (name: string): Container => dead("a", name, { state: "unknown" });

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

  test("is left to the next pass if the stops of this one took minutes already", async () => {
    const containers = Array.from({ length: 9 }, (_, index) => unknown(`c${index}`));
    const { fake, outcome } = await collect({
      containers,
      world: { writeTakes: seconds(20) },
    });
    expect(called(fake, "StopContainer")).toHaveLength(3);
    const skipped = outcome.containers.filter(({ result }) => result.kind === "skipped");
    expect(skipped.map(({ stopped }) => stopped)).toEqual(Array.from({ length: 6 }, () => false));
  });

  test("is stopped although the removals that needed no stop took minutes already", async () => {
    const slow = Array.from({ length: 9 }, (_, at) => dead("a", "c", { createdAt: ago(90 - at) }));
    const { fake } = await collect({
      containers: [...slow, dead("a", "c", { state: "unknown", createdAt: ago(1) })],
      world: { writeTakes: seconds(20) },
    });
    expect(called(fake, "RemoveContainer")).toHaveLength(10);
  });
});

describe("a log directory", () => {
  const logs = podLogs;
  const usedBy = (change: Partial<Container>) => dead("b", "c", { state: "running", ...change });
  const other = sandboxOf("b");
  const inUse = (name: string) => ({
    calls: [],
    logs: [itemOf("skipped", { what: `${name} logs to it` })],
  });
  const loggedBy = (...users: readonly Container[]) => ({
    containers: users,
    logs,
    world: { detail: () => ({ logPath }) },
  });
  const [running, exited, foreign] = [
    usedBy({}),
    usedBy({ state: "exited" }),
    usedBy({ podUid: podUid("") }),
  ];

  claims([
    ...[running, exited, foreign].map((user): Row => [
      `that a container of another pod logs to is kept: ${user.podUid}, ${user.state}`,
      loggedBy(user),
      inUse(`container ${user.id}`),
    ]),
    [
      "that a sandbox without containers names as its log directory is kept",
      {
        sandboxes: [other],
        logs,
        world: { logDirectories: new Map([[other.id, "/var/log/pods/default_pod-a_uid-a"]]) },
      },
      inUse(`sandbox ${other.id}`),
    ],
    [
      "stays for the second container that logs to it, where the first one went",
      // The one that went is listed for a moment longer.
      { ...loggedBy(one, running), options: { writer } },
      { containers: [itemOf("removed")], logs: [itemOf("skipped")] },
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

  test.each([
    ["made by Kubernetes for another pod", {}, ["default_pod-a_uid-a"]],
    ["not made by Kubernetes", { podUid: podUid("") }, []],
    ["of its own pod", { podUid: podUid("uid-a") }, []],
  ])(
    "is deleted or kept if the status of a running container fails: one %s",
    async (_, change, gone) => {
      const container = usedBy({ sandboxId: sandboxId("sandbox-not-listed"), ...change });
      const fails = [`ContainerStatus ${container.id}`];
      const { fake } = await collect({ containers: [container], logs, fails });
      expect(called(fake, "RemovePodLogs")).toEqual([...gone]);
    },
  );

  test("costs one status of a container for as long as it is listed", async () => {
    const { engine } = fakeEngine({ containers: [running], detail: () => ({ logPath: "" }) });
    const { runtime } = engine.observe;
    const asked: string[] = [];
    const containerDetail: typeof runtime.containerDetail = async (id, signal) => {
      asked.push(id);
      return runtime.containerDetail(id, signal);
    };
    const logUsers = new LogUsers({ ...runtime, containerDetail }, { monotonicNs: () => 0n });
    const counts: number[] = [];
    for (const listed of [[running], [running], [], [running]]) {
      await collect({ containers: listed, logs, options: { logUsers } });
      counts.push(asked.length);
    }
    expect(counts).toEqual([1, 1, 1, 2]);
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
    const sandboxLogDirectory = async (id: string) => directories.get(id) ?? null;
    const { runtime } = fakeEngine().engine.observe;
    const users = new LogUsers({ ...runtime, sandboxLogDirectory }, { monotonicNs: () => 0n });
    const owners = ownership({ sandboxes }, "none");
    expect(await users.ofSandboxes(sandboxes, owners, new AbortController().signal)).toMatchObject([
      { id: "named", use: { kind: "path", path: "/var/log/pods/default_pod-a_uid-a/-" } },
    ]);
  });
});

describe("unreadable log directories", () => {
  const logs = { kind: "failed", message: "cannot open /l" } as const;

  claims([
    [
      "do not keep a container and its sandbox from being removed, but its logs are kept",
      { containers: [one], sandboxes: [sandbox], logs, detail: { logPath } },
      {
        calls: ["RemoveContainer", "StopPodSandbox", "RemovePodSandbox"],
        errors: ["no log is deleted: cannot open /l"],
      },
    ],
  ]);
});

describe("a dangling link", () => {
  const id = hexId("c1");
  const link = { entry: `pod-a_default_c-${id}.log`, containerId: id };
  const logs: LogFacts = { ...noLogs, danglingLinks: [link] };
  const many = ["c1", "c2", "c3"].map((name) => ({
    entry: `pod-a_default_c-${hexId(name)}.log`,
    containerId: hexId(name),
  }));
  const container = (state: Container["state"]): Container =>
    dead("b", "c", { id: containerId(id), state });
  const of = (state: Container["state"]): Scene => ({
    logs,
    containers: [container(state)],
    input: noPodIsGone,
  });

  claims([
    [
      "is deleted when the runtime does not know its container",
      { logs },
      { logs: [{ kind: "log-link", reason: { kind: "container-gone" } }] },
    ],
    [
      "is deleted when its container has exited",
      of("exited"),
      { logs: [{ reason: { kind: "container-exited" }, ...itemOf("removed") }] },
    ],
    ...(["running", "created", "unknown"] as const).map((state): Row => [
      `is kept while its container is ${state}`,
      of(state),
      { calls: [] },
    ]),
    [
      "is kept when the runtime answers for another container, as for an ID prefix",
      { ...of("exited"), world: { detail: () => ({ id: containerId(hexId("c2")) }) } },
      { calls: [] },
    ],
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
      "is left to the next pass with the others once the statuses of two were not answered",
      {
        logs: { ...logs, danglingLinks: many },
        silent: many.map((it) => `ContainerStatus ${it.containerId}`),
      },
      {
        calls: [],
        errors: [
          expect.stringContaining("kept"),
          expect.stringContaining("kept"),
          expect.stringMatching(/^log links: 2 calls got no answer/),
        ],
      },
    ],
    [
      "stays after the pass was asked to stop",
      { logs: { ...logs, danglingLinks: many }, stops: true },
      { calls: ["RemoveLink"], end: "stopped", errors: [] },
    ],
    [
      "stays where the wish to stop cuts its container's status off, which is no error",
      {
        logs,
        prepare: cutOffAt("ContainerStatus"),
      },
      { end: "stopped", errors: [], logs: [] },
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

  test("with a truncated name is deleted when its only container has exited", async () => {
    const long = { ...container("exited"), podName: "p".repeat(200) };
    const entry = containerLogLink(long);
    expect(entry).toHaveLength(255);
    const cut = { ...logs, danglingLinks: [{ entry, containerId: id.slice(0, 37) }] };
    const twin = { ...long, id: containerId(`${id.slice(0, 63)}1`) };
    const input = { ...noPodIsGone, limits: { ...containerLimits, maximumPerPodContainer: -1 } };
    for (const [containers, gone] of [
      [[long], [entry]],
      [[long, twin], []],
      [[], []],
      [[{ ...long, podName: "q".repeat(200) }], []],
    ] as const) {
      const { fake } = await collect({ logs: cut, containers, input });
      expect(called(fake, "RemoveLink")).toEqual([...gone]);
    }
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
        calls: ["RemoveContainer", "RemoveLink"],
        end: "stopped",
        errors: [],
        containers: [itemOf("removed")],
      },
    ],
    [
      "ends without touching sandboxes and logs when the lists cannot be read again",
      { containers: [one], sandboxes: [sandbox], logs: podLogs, fails: ["ListContainers"] },
      {
        calls: ["RemoveContainer", "RemoveLink"],
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
        options: { measureAvailable: () => Promise.reject(new Error("statfs failed")) },
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
    const measureAvailable = async (): Promise<bigint> => left.shift() ?? 0n;
    const { outcome } = await collect({ containers: [one], options: { measureAvailable } });
    expect(outcome.measuredFreedBytes).toBe(freed);
  });
});
