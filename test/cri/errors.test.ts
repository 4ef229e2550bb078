// Each way in which a call can go wrong has its own kind, and a message that says what to do.
import { describe, expect, test } from "bun:test";

import { toRuntimeError } from "../../src/cri/errors.ts";
import { methods } from "../../src/cri/messages.ts";
import type { RuntimeError } from "../../src/model/errors.ts";
import { containerId } from "../../src/model/ids.ts";
import type { Fault } from "../support/fake-runtime/faults.ts";
import { connected, failureOf } from "./connection.ts";

describe("a call that fails", () => {
  const faults: readonly (readonly [code: string, message?: string])[] = [
    ["UNKNOWN", "disk on fire"],
    ["UNKNOWN", "layer not known"],
    ["INTERNAL"],
    ["PERMISSION_DENIED"],
    ["NOT_FOUND", "no namespace"],
    ["UNIMPLEMENTED", "unknown service"],
    ["RESOURCE_EXHAUSTED", "larger than max (20 vs. 16)"],
    ["UNAVAILABLE", "shutting down"],
    ["garbage"],
  ];

  test("has a kind, and a message that says what to do", async () => {
    await using connection = await connected();
    const { fake, runtime, signal } = connection;
    const said: string[] = [];
    for (const [code, message = ""] of faults) {
      const error = { kind: "error", code, message } as Fault;
      fake.fail("ListImages", code === "garbage" ? { kind: "garbage" } : error, { times: 1 });
      const failure = await failureOf(runtime.reader.listImages(signal));
      expect(failure.cause).toBeInstanceOf(Error);
      const text = failure.message.replaceAll(fake.endpoint, "ENDPOINT");
      said.push(`${code} ${message}: ${failure.kind}\n  ${text}`);
    }
    expect(said.join("\n")).toMatchSnapshot();
    fake.fail("ListImages", { kind: "drop" });
    expect(await failureOf(runtime.reader.listImages(signal))).toMatchObject({
      kind: "unreachable",
      message: expect.stringMatching(/unix:\/\/\S+ does not answer \(.+\)/),
    });
  });

  test.each([
    [
      "busy",
      'failed to set removing state for container "a": container is already in removing state',
    ],
    ["busy", "Error response from daemon: removal of container a is already in progress"],
    [null, 'failed to remove container "a": Error response from daemon: No such container: a'],
    ["failed", 'failed to remove container "a": Error response from daemon: No such container: b'],
  ])("that removes container a is %p if the runtime says: %s", async (kind, message) => {
    await using connection = await connected();
    const { fake, runtime, signal } = connection;
    fake.fail("*", { kind: "error", code: "UNKNOWN", message });
    const kindOf = (call: Promise<unknown>): Promise<string | null> =>
      call.then(
        () => null,
        (error: unknown) => (error as RuntimeError).kind,
      );
    expect(await kindOf(runtime.writer.removeContainer(containerId("a")))).toBe(kind);
    expect(await kindOf(runtime.reader.listContainers(signal))).toBe("failed");
    const detail = kindOf(runtime.reader.containerDetail(containerId("a"), signal));
    expect(await detail).toBe(kind === null ? null : "failed");
  });

  test.each([
    [14, "connect EACCES /run/cri.sock", "permission"],
    [14, "connect ENOENT /run/cri.sock", "absent"],
    [14, "connect ECONNREFUSED /run/cri.sock", "unreachable"],
    [14, "Protocol error", "not-cri"],
    [13, "Received RST_STREAM with code 0 (Call ended without gRPC status)", "unreachable"],
    [8, "Bandwidth exhausted or memory limit exceeded", "unreachable"],
    [undefined, undefined, "failed"],
    [12, "unknown method ListImages", "unimplemented"],
  ] as const)("with code %p and details %p is %s", (code, details, kind) => {
    const error = toRuntimeError(
      Object.assign(new Error(`${code}: ${details}`), { code, details }),
      {
        method: methods.ListImages,
        about: "",
        endpoint: "unix:///run/cri.sock",
        timeoutMs: 1000,
        aborted: false,
      },
    );
    expect(error.kind).toBe(kind);
  });

  test("is a deadline when the runtime does not answer in time", async () => {
    await using connection = await connected({ timeoutSeconds: 0.2 });
    const { fake, runtime, signal, records } = connection;
    fake.fail("ListImages", { kind: "hang" });
    const startedAt = performance.now();
    const error = await failureOf(runtime.reader.listImages(signal));
    expect(performance.now() - startedAt).toBeGreaterThan(150);
    expect(error.kind).toBe("deadline");
    expect(error.message).toMatch(/did not answer within 0\.2 s; .*--runtime-request-timeout/);
    expect(records.at(-1)).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  });

  test("is cancelled at once when the caller gives up", async () => {
    await using connection = await connected();
    const { fake, runtime, records } = connection;
    fake.fail("ListContainers", { kind: "hang" });
    const abort = new AbortController();
    fake.before("ListContainers", () => abort.abort());
    const error = await failureOf(runtime.reader.listContainers(abort.signal));
    // Not after its deadline.
    expect(error.kind).toBe("cancelled");
    expect(records.at(-1)).toMatchObject({ method: "ListContainers", code: "CANCELLED" });
  });

  test("is not made when the caller has given up before", async () => {
    await using connection = await connected();
    const error = await failureOf(connection.runtime.reader.listImages(AbortSignal.abort()));
    expect(error.kind).toBe("cancelled");
    expect(connection.fake.calls).toEqual([]);
  });

  test("is never tried again behind the caller's back", async () => {
    await using connection = await connected();
    const { fake, runtime } = connection;
    fake.fail("RemoveContainer", { kind: "error", code: "UNAVAILABLE" }, { times: 1 });
    const error = await failureOf(runtime.writer.removeContainer(containerId("a")));
    expect(error.message).toStartWith("cannot remove container a: ");
    expect(error.kind).toBe("unreachable");
    expect(fake.callsOf("RemoveContainer")).toHaveLength(1);
  });
});

describe("a call that needs longer", () => {
  test("may take the grace period of a stop beyond the deadline", async () => {
    await using connection = await connected({ timeoutSeconds: 0.2 });
    const { fake, runtime, signal } = connection;
    const stop = (graceSeconds: number) =>
      runtime.writer.stopContainer(containerId("a"), graceSeconds, signal);
    fake.fail("StopContainer", { kind: "delay", ms: 400 });
    await stop(30);
    expect((await failureOf(stop(0))).kind).toBe("deadline");
  });
});
