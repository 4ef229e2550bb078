import { expect, test } from "bun:test";

import { Steps } from "../../src/gc/steps.ts";
import { instant, toMs } from "../../src/model/time.ts";
import { SimClock } from "../sim/clock.ts";

test("the waits of one name within a pass are one step with their total, and shorter ones than a millisecond are none", async () => {
  const clock = new SimClock();
  const steps = new Steps({ timer: clock }, () => instant(clock.monotonicNs()));
  const removing = steps.run("execute", async () => {
    for (const ms of [300, 400]) {
      await steps.wait("lists", () => clock.sleep(ms));
      await steps.wait("space", () => clock.sleep(0.2));
    }
    await steps.wait("creation", () => clock.sleep(50)).catch(() => undefined);
  });
  await clock.run(1_000);
  await removing;
  expect(steps.list().map(({ name, took }) => [name, toMs(took)])).toEqual([
    ["execute", 750],
    ["lists", 700],
    ["creation", 50],
  ]);
});
