import { describe, expect, test } from "bun:test";

import type { Config } from "../../src/config/config.ts";
import { loadConfig } from "../../src/config/load.ts";
import { ConfigError } from "../../src/model/errors.ts";
import { FILE, ours, readerOf } from "./loading.ts";

const read = (body: string, running: Config | null = null): Config =>
  loadConfig({ flags: [], env: {}, reader: readerOf({ [FILE]: ours(body) }), running });

describe("a configuration that a running process reads again", () => {
  test("adopts values that are not bound to the process", () => {
    const again = read("imageGCHighThresholdPercent: 95\n", read(""));
    expect(again.limits.images.highPercent).toBe(95);
    expect(again.waiting).toEqual([]);
  });

  test("keeps directories, sockets and modes, also in the values that it shows, and names them", () => {
    const again = read("stateDir: /srv/crigc\ndryRun: true\n", read(""));
    expect(again.paths.stateDir).toBe("/var/lib/crigc");
    expect(again.dryRun).toBe(false);
    expect(again.values.dryRun).toMatchObject({ value: false, source: "default" });
    expect(again.waiting).toEqual(["stateDir", "dryRun"]);
  });

  test("adopts another socket until it has connected to one", () => {
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

  test("keeps its compatibility mode when the setting changes", () => {
    const asKubelet = read("compat: kubelet\n", read(""));
    expect(asKubelet.limits.images).toMatchObject({ compat: "none", accounting: "measured" });
    expect(asKubelet.values.spaceAccounting.value).toBe("measured");

    const asOurselves = read("", read("compat: kubelet\n"));
    expect(asOurselves.limits.images).toMatchObject({ compat: "kubelet", whenFutile: "collect" });
    expect(asOurselves.limits.memory.bootGrace).toBe(0n as never);
    expect(asOurselves.waiting).toEqual(["compat"]);
  });

  test("is refused if it contradicts a value that stays in force until a restart", () => {
    const running = read("compat: kubelet\n");
    const reading = () => read("spaceAccounting: measured\n", running);
    expect(reading).toThrow(ConfigError);
    expect(reading).toThrow(/contradicts compat.*restart the agent/);
  });
});
