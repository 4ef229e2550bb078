import { describe, expect, test } from "bun:test";

import {
  knowledgeOfLedger,
  knowledgeOfSnapshot,
  readContainerDetails,
  readSandboxImages,
} from "../../src/gc/detail.ts";
import { RuntimeError } from "../../src/model/errors.ts";
import { containerId, sandboxId } from "../../src/model/ids.ts";
import { emptyLedger } from "../../src/model/ledger.ts";
import type { RuntimeReader } from "../../src/model/ports.ts";
import { aContainer, aSandbox, aSnapshot } from "../support/build/values.ts";

const { signal } = new AbortController();
const known = knowledgeOfLedger(emptyLedger);

/** Calls are answered with what is given, or after a turn with no answer. */
function runtimeThat(hangs: boolean) {
  const asked: string[] = [];
  const answer = async (id: string): Promise<null> => {
    asked.push(id);
    await new Promise((resolve) => void setImmediate(resolve));
    if (hangs) throw new RuntimeError("deadline", "no answer in time");
    return null;
  };
  const runtime = { containerDetail: answer, sandboxImage: answer } as unknown as RuntimeReader;
  return { asked, runtime };
}

describe("a runtime that does not answer for a status", () => {
  test("of containers is not asked for all of them, and the volumes of all are unknown", async () => {
    const containers = Array.from({ length: 100 }, (_, index) =>
      aContainer(`c${index}`, { id: containerId(`c${index}`) }),
    );
    const { asked, runtime } = runtimeThat(true);
    const need = { volumes: true, ends: false };
    const { volumes } = await readContainerDetails(runtime, { containers, known, need }, signal);
    expect(asked.length).toBeLessThanOrEqual(17);
    expect([...volumes.values()].filter(({ kind }) => kind === "unknown")).toHaveLength(100);
  });

  test("of sandboxes is not asked for all of them, and the observation continues", async () => {
    const sandboxes = Array.from({ length: 100 }, (_, index) =>
      aSandbox(`s${index}`, { id: sandboxId(`s${index}`) }),
    );
    const { asked, runtime } = runtimeThat(true);
    expect((await readSandboxImages(runtime, { sandboxes, known }, signal)).size).toBe(0);
    expect(asked.length).toBeLessThanOrEqual(17);
  });

  test("of a sandbox is asked for it again by the next pass, but not within this one", async () => {
    const sandboxes = [aSandbox("hangs")];
    const { asked, runtime } = runtimeThat(true);
    const sandboxImages = await readSandboxImages(runtime, { sandboxes, known }, signal);
    const snapshot = aSnapshot({ sandboxes, sandboxImages });
    const within = {
      sandboxes: [...sandboxes, aSandbox("new")],
      known: knowledgeOfSnapshot(snapshot),
    };
    await readSandboxImages(runtime, within, signal);
    expect(asked).toEqual([aSandbox("hangs").id, aSandbox("new").id]);
    await readSandboxImages(runtime, { sandboxes, known }, signal);
    expect(asked).toHaveLength(3);
  });

  test("at first, but then does, is asked again within the pass if it refused and did not hang", async () => {
    const sandboxes = [aSandbox("refused")];
    const answers = [new RuntimeError("failed", "busy"), "registry.example/pause:1"];
    const runtime = {
      sandboxImage: async () => {
        const answer = answers.shift();
        if (answer instanceof Error) throw answer;
        return answer ?? "";
      },
    } as unknown as RuntimeReader;
    const first = await readSandboxImages(runtime, { sandboxes, known }, signal);
    expect(first.size).toBe(0);
    const snapshot = aSnapshot({ sandboxes, sandboxImages: first });
    const within = { sandboxes, known: knowledgeOfSnapshot(snapshot) };
    const second = await readSandboxImages(runtime, within, signal);
    expect([...second.values()]).toEqual(["registry.example/pause:1"]);
  });

  test("but reports that containers do not exist is asked for all of them", async () => {
    const containers = Array.from({ length: 100 }, (_, index) =>
      aContainer(`c${index}`, { id: containerId(`c${index}`) }),
    );
    const { asked, runtime } = runtimeThat(false);
    const need = { volumes: true, ends: false };
    await readContainerDetails(runtime, { containers, known, need }, signal);
    expect(asked).toHaveLength(100);
  });
});
