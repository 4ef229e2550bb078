// A fake runtime and a client of it for one test, which are taken down afterwards.
import { expect } from "bun:test";

import { openRuntime, type Runtime } from "../../src/cri/client.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import type { CallRecord } from "../../src/model/ports.ts";
import { seconds } from "../../src/model/time.ts";
import { failureOf as thrownBy } from "../support/failure.ts";
import {
  type FakeRuntime,
  type FakeRuntimeOptions,
  startFakeRuntime,
} from "../support/fake-runtime/server.ts";

export interface Connection extends AsyncDisposable {
  readonly fake: FakeRuntime;
  readonly runtime: Runtime;
  /** What the client said of its calls. */
  readonly records: readonly CallRecord[];
  readonly signal: AbortSignal;
}

export async function connected(
  options: FakeRuntimeOptions & { readonly timeoutSeconds?: number } = {},
): Promise<Connection> {
  const fake = await startFakeRuntime(options);
  const records: CallRecord[] = [];
  const runtime = openRuntime({
    endpoint: fake.endpoint,
    imageEndpoint: fake.endpoint,
    requestTimeout: seconds(options.timeoutSeconds ?? 10),
    onCall: (call) => records.push(call),
  });
  return {
    fake,
    runtime,
    records,
    signal: new AbortController().signal,
    [Symbol.asyncDispose]: async () => {
      runtime.close();
      await fake.stop();
    },
  };
}

/** What a call that has to fail failed with. */
export async function failureOf(call: Promise<unknown>): Promise<RuntimeError> {
  const thrown = await thrownBy(call);
  expect(thrown).toBeInstanceOf(RuntimeError);
  return thrown as RuntimeError;
}

/** Root may open everything: for as long as `act` runs, this process is nobody. */
export async function withoutPrivilege<Result>(act: () => Promise<Result>): Promise<Result> {
  if (process.geteuid?.() !== 0) return act();
  process.seteuid?.(65_534);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}
