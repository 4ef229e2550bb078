import { describe, expect, test } from "bun:test";

import { graceSecondsOf, handlerPort, readHandler, stopGracefully } from "../../src/gc/stop-pod.ts";
import type { ContainerDetail } from "../../src/model/ports.ts";
import { dead, sandboxOf } from "../support/build/pods.ts";
import { containerExecution, type ExecutionChange, fakeEngine } from "../support/fake-engine.ts";

const GRACE = "io.kubernetes.pod.terminationGracePeriod";
const DELETION = "io.kubernetes.pod.deletionGracePeriod";
const HANDLER = "io.kubernetes.container.preStopHandler";
const PORTS = "io.kubernetes.container.ports";
const container = dead("a", "c", { state: "unknown" });

async function stop(
  annotations: Readonly<Record<string, string>>,
  change: {
    readonly fails?: readonly string[];
    readonly exitCode?: number;
    readonly lacksSandbox?: boolean;
    readonly ports?: ExecutionChange;
    readonly signal?: AbortSignal;
  } = {},
): Promise<{ readonly calls: readonly string[]; readonly error: string | null }> {
  const fake = fakeEngine({
    containers: [container],
    sandboxes: change.lacksSandbox === true ? [] : [sandboxOf("a", { state: "not-ready" })],
    address: "10.1.2.3",
    fails: new Set(change.fails),
    exitCode: change.exitCode ?? 0,
  });
  const detail: ContainerDetail = {
    id: container.id,
    imageVolumes: [],
    state: "unknown",
    labels: {},
    annotations,
  };
  const error = await stopGracefully(container, detail, {
    ...containerExecution(fake, change.ports),
    signal: change.signal ?? new AbortController().signal,
  });
  return { calls: fake.writes, error };
}

const stopped = (graceSeconds: number): string => `StopContainer ${container.id} ${graceSeconds}`;

test.each([
  [{}, 2],
  [{ [GRACE]: "30" }, 30],
  [{ [GRACE]: "30", [DELETION]: "5" }, 5],
  [{ [GRACE]: "30", [DELETION]: "0" }, 0],
  [{ [GRACE]: "soon" }, 2],
  [{ [GRACE]: "-1" }, 2],
  [{ [GRACE]: "30s" }, 2],
  [{ [GRACE]: "99999999" }, 30],
])("the grace period of %j is %d s", (annotations: Readonly<Record<string, string>>, expected) => {
  expect(graceSecondsOf(annotations)).toBe(expected);
});

test("a grace period is cut to 30 s", async () => {
  const { calls } = await stop({ [GRACE]: "99999999" });
  expect(calls).toEqual([stopped(30)]);
});

describe("the pre-stop handler", () => {
  test("runs its command in the container, for as long as the grace period", async () => {
    const handler = JSON.stringify({ exec: { command: ["/bin/drain", "now"] } });
    const { calls, error } = await stop({ [HANDLER]: handler, [GRACE]: "30" });
    expect(calls).toEqual([`ExecSync ${container.id} /bin/drain now 30`, stopped(30)]);
    expect(error).toBeNull();
  });

  test("sends its request to the pod's address, at the named port", async () => {
    const handler = JSON.stringify({
      httpGet: {
        path: "drain",
        port: "web",
        scheme: "HTTPS",
        httpHeaders: [{ name: "X-A", value: "b" }],
      },
    });
    const ports = JSON.stringify([{ name: "web", containerPort: 8443 }]);
    const { calls } = await stop({ [HANDLER]: handler, [GRACE]: "10", [PORTS]: ports });
    expect(JSON.parse(calls[0]?.replace("GET ", "") ?? "")).toEqual({
      scheme: "https",
      host: "10.1.2.3",
      port: 8443,
      path: "/drain",
      headers: [{ name: "X-A", value: "b" }],
      timeoutMs: 10_000,
    });
  });

  test("sleeps, and that time is deducted", async () => {
    const handler = JSON.stringify({ sleep: { seconds: 12 } });
    const { calls, error } = await stop({ [HANDLER]: handler, [GRACE]: "30" });
    expect(calls).toEqual([stopped(18)]);
    expect(error).toBeNull();
  });

  test("is not run in a grace period of 0", async () => {
    const handler = JSON.stringify({ exec: { command: ["/bin/drain"] } });
    expect((await stop({ [HANDLER]: handler, [DELETION]: "0" })).calls).toEqual([stopped(2)]);
  });

  test("that ends leaves no timer behind", async () => {
    const signals: AbortSignal[] = [];
    const timer: ExecutionChange["timer"] = {
      monotonicNs: () => 0n,
      sleep: (_, signal) => {
        signals.push(signal);
        return new Promise(() => {});
      },
    };
    const handler = JSON.stringify({ exec: { command: ["/bin/drain"] } });
    await stop({ [HANDLER]: handler, [GRACE]: "30" }, { ports: { timer } });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  });

  test("that does not end is waited for until the grace period is over", async () => {
    let stoppedWith = -1;
    const ports: ExecutionChange = {
      writer: {
        ...fakeEngine().engine.writer,
        execSync: () => new Promise(() => {}),
        stopContainer: async (_, graceSeconds) => void (stoppedWith = graceSeconds),
      },
    };
    const handler = JSON.stringify({ exec: { command: ["/bin/forever"] } });
    const { error } = await stop({ [HANDLER]: handler, [GRACE]: "30" }, { ports });
    expect(error).toBe("the pre-stop handler did not end within 30 s");
    expect(stoppedWith).toBe(2);
  });

  test.each([
    [
      "fails",
      { exec: { command: ["/bin/drain"] } },
      { fails: [`ExecSync ${container.id}`] },
      /the pre-stop handler failed: ExecSync/,
    ],
    [
      "ends with another code than 0",
      { exec: { command: ["/bin/drain"] } },
      { exitCode: 3 },
      /its command exited with code 3/,
    ],
    [
      "needs the address of a pod that is gone",
      { httpGet: { port: 80 } },
      { lacksSandbox: true },
      /no address/,
    ],
    ["names a port that is not there", { httpGet: { port: "web" } }, {}, /no port web/],
    ["is of no known form", { grpc: {} }, {}, /unknown kind of pre-stop handler/],
  ])(
    "that %s does not keep the container from being stopped",
    async (_, handler, change, message) => {
      const { calls, error } = await stop(
        { [HANDLER]: JSON.stringify(handler), [GRACE]: "30" },
        change,
      );
      expect(error).toMatch(message);
      expect(calls.at(-1)).toEqual(stopped(30));
    },
  );
});

describe("a recorded handler", () => {
  test.each([
    "",
    "null",
    '{"exec":{}}',
    '{"exec":{"command":[]}}',
    '{"exec":{"command":[1]}}',
    '{"exec":{"command":["a",1]}}',
    '{"httpGet":{}}',
    '{"httpGet":{"port":80,"httpHeaders":["b"]}}',
    '{"sleep":{"seconds":-1}}',
    '{"sleep":{"seconds":"1"}}',
  ])("is ignored if invalid: %j", (text) => {
    expect(readHandler(text)).toBeNull();
  });

  test("with a host sends the request there", () => {
    expect(readHandler('{"httpGet":{"port":80,"host":"10.0.0.9"}}')).toMatchObject({
      scheme: "http",
      host: "10.0.0.9",
      path: "/",
    });
  });

  test("a path that begins with a slash is taken as it is", () => {
    expect(readHandler('{"httpGet":{"port":80,"path":"/drain"}}')).toMatchObject({
      path: "/drain",
    });
  });

  test("a sleep of no time is one", () => {
    expect(readHandler('{"sleep":{"seconds":0}}')).toEqual({ kind: "sleep", seconds: 0 });
  });

  test("with a header without a name sends the request without it", () => {
    const httpHeaders = [{ name: "", value: "c" }, { name: "X-D" }];
    expect(readHandler(JSON.stringify({ httpGet: { port: 80, httpHeaders } }))).toMatchObject({
      headers: [{ name: "X-D", value: "" }],
    });
  });

  test.each([
    [8080, 8080],
    ["8080", 8080],
    [65_535, 65_535],
    [65_536, null],
    [0, null],
    [1.5, null],
    ["web", null],
  ])("with port %j uses %j", (port, expected) => {
    expect(handlerPort(port, {})).toBe(expected);
  });

  test.each(["web", "8web", "web8"])("port %j is looked up by its name", (name) => {
    const ports = ["x", "web", "8web", "web8"].map((each, index) => ({
      name: each,
      containerPort: 9_000 + index,
    }));
    const found = ports.find((each) => each.name === name)?.containerPort ?? null;
    expect(handlerPort(name, { [PORTS]: JSON.stringify(ports) })).toBe(found);
  });
});
