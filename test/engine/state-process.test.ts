// The requester's side of the state process, with a shell in its place.

import { expect, test } from "bun:test";

import { processChannel } from "../../src/engine/state-process.ts";
import { HostError } from "../../src/model/errors.ts";
import type { StateReply } from "../../src/store/state-request.ts";

/** What the requester is told when the process runs this script. */
const answerOf = async (script: string): Promise<StateReply | Error> =>
  processChannel({ program: ["/bin/sh", "-c", script, "sh"], directory: "/d" })
    .ask({ kind: "refresh", revision: null }, () => undefined)
    .catch((thrown: unknown) => thrown as Error);

/** Replies with this text as a message. */
const replying = (text: string): string =>
  `read request; echo '{"kind":"reply","reply":{"kind":"failed","error":"write","message":"'${text}'"}}'`;

test("what a crashed state process printed is in the error of each request", async () => {
  const error = await answerOf("echo 'cannot open' >&2; echo 'a library' >&2; exit 3");
  expect(error).toBeInstanceOf(HostError);
  expect(error).toHaveProperty("message", "the ledger process ended: cannot open a library");
});

test("a line that is no reply ends the process, and rejects nothing but the request", async () => {
  const error = await answerOf("read request; echo '{\"kind\":'; sleep 60");
  expect(error).toHaveProperty("message", `the ledger process ended: it sent "{\\"kind\\":"`);
});

test("the state process has the directory and TMPDIR, and no other variable of ours", async () => {
  const told = (text: string) => ({ kind: "failed", error: "write", message: text });
  expect(await answerOf(replying('"$1 $2 $3"'))).toEqual(told("__state /d ") as never);
  const { TMPDIR = "/tmp" } = process.env;
  expect(await answerOf(replying('"$TMPDIR $HOME"'))).toEqual(told(`${TMPDIR} `) as never);
});
