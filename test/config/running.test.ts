import { describe, expect, test } from "bun:test";

import type { Config } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { ConfigError } from "../../src/model/errors.ts";
import { FILE, ours, readerOf } from "./loading.ts";

const read = (body: string, running: Config | null = null): Config =>
  loadConfig({ flags: [], env: {}, reader: readerOf({ [FILE]: ours(body) }), running });

describe("a configuration that a running process reads again", () => {
  test("takes what is not bound to the process", () => {
    const again = read("imageGCHighThresholdPercent: 95\n", read(""));
    expect(again.limits.images.highPercent).toBe(95);
    expect(again.waiting).toEqual([]);
  });

  test("leaves directories, sockets and modes as they were, in the values that it shows too, and names them", () => {
    const again = read("stateDir: /srv/crigc\ndryRun: true\n", read(""));
    expect(again.paths.stateDir).toBe("/var/lib/crigc");
    expect(again.dryRun).toBe(false);
    expect(again.values.dryRun).toMatchObject({ value: false, source: "default" });
    expect(again.waiting).toEqual(["stateDir", "dryRun"]);
  });

  test("takes another socket as long as it has reached none, and leaves it once it has", () => {
    const body = "containerRuntimeEndpoint: unix:///run/other.sock\nstateDir: /srv/crigc\n";
    const again = (connected: boolean): Config =>
      loadConfig({
        flags: [],
        env: {},
        reader: readerOf({ [FILE]: ours(body) }),
        running: loadConfig({ flags: [], env: {}, reader: readerOf({}) }),
        connected,
      });
    expect(again(false).endpoints.runtime).toBe("unix:///run/other.sock");
    expect(again(false).waiting).toEqual(["stateDir"]);
    expect(again(true).endpoints.runtime).toBeNull();
    expect(again(true).waiting).toEqual(["containerRuntimeEndpoint", "stateDir"]);
  });

  test("goes on deciding as it began when the compatibility is another one", () => {
    const asKubelet = read("compat: kubelet\n", read(""));
    expect(asKubelet.limits.images).toMatchObject({ compat: "none", accounting: "measured" });
    expect(asKubelet.values.spaceAccounting.value).toBe("measured");

    const asOurselves = read("", read("compat: kubelet\n"));
    expect(asOurselves.limits.images).toMatchObject({ compat: "kubelet", whenFutile: "collect" });
    expect(asOurselves.limits.memory.bootGrace).toBe(0n as never);
    expect(asOurselves.waiting).toEqual(["compat"]);
  });

  test("is refused where it would only go together with what waits for the next start", () => {
    const running = read("compat: kubelet\n");
    const reading = () => read("spaceAccounting: measured\n", running);
    expect(reading).toThrow(ConfigError);
    expect(reading).toThrow(/contradicts compat.*restart the agent/);
  });
});
