import { describe, expect, test } from "bun:test";

import { LiveConfig } from "../../src/agent/reload.ts";
import type { Config } from "../../src/config/config.ts";
import type { KubeletOnNode } from "../../src/config/kubelet.ts";
import { readWritten } from "../../src/config/load.ts";
import { messageOf } from "../../src/model/errors.ts";
import { DROP_INS, FILE, ours, readerOf } from "../config/loading.ts";

const DROP_IN = `${DROP_INS}/10-site.yaml`;

interface Started {
  readonly connected?: boolean;
  readonly kubelet?: () => KubeletOnNode | null;
}

/** An agent's configuration, from files that a test changes. */
function started(body: string, { connected = true, kubelet = () => null }: Started = {}) {
  const files: Record<string, string> = { [FILE]: ours(body) };
  const read = () => readWritten({ flags: [], env: {}, reader: readerOf(files) });
  const [rejections, reloads, followed]: [string[], Config[], Config[]] = [[], [], []];
  const live = new LiveConfig({ first: read(), read }, kubelet, (config) => followed.push(config));
  live.isConnected = connected;
  const reload = (): void => {
    try {
      reloads.push(live.reload());
    } catch (thrown) {
      rejections.push(messageOf(thrown));
    }
  };
  const write = (path: string, text: string): void => void (files[path] = ours(text));
  const { current, difference } = live;
  return { current, difference, reload, files, write, rejections, reloads, followed };
}

const high = ({ current }: { readonly current: () => Config }): number =>
  current().limits.images.highPercent;

describe("the configuration of a running agent", () => {
  test("changes on reload alone, and until then says how the files differ", () => {
    const agent = started("imageGCHighThresholdPercent: 90\n");
    agent.write(FILE, "imageGCHighThresholdPercent: 90\n# a comment changes nothing\n");
    expect(agent.difference()).toBeNull();
    agent.write(DROP_IN, "imageGCHighThresholdPercent: 95\nkeep: [r.example/app]\n");
    expect(high(agent)).toBe(90);
    expect(agent.difference()).toBe(
      "imageGCHighThresholdPercent (--image-gc-high-threshold) is 90 in force and 95 as written; keep (--keep) is none in force and r.example/app as written: run systemctl reload crigc or send SIGHUP",
    );
    agent.reload();
    delete agent.files[DROP_IN];
    expect(agent.difference()).toContain("is 95 in force and 90 as written");
    expect(high(agent)).toBe(95);
  });

  test("keeps directories and modes, also in the values that it shows, and says that they wait for a restart", () => {
    const agent = started("");
    agent.write(FILE, "stateDir: /srv/crigc\ndryRun: true\nmaxImages: 5\n");
    expect(agent.difference()).toEndWith(
      ": run systemctl reload crigc or send SIGHUP, and restart the agent to change stateDir, dryRun",
    );
    agent.reload();
    expect(agent.current()).toMatchObject({
      values: { stateDir: "/var/lib/crigc", dryRun: false, maxImages: 5 },
      sources: { dryRun: { kind: "default" } },
      waiting: ["stateDir", "dryRun"],
    });
    expect(agent.difference()).toEndWith(": restart the agent to change stateDir, dryRun");
  });

  test("takes another socket until the agent is connected", () => {
    const body = "containerRuntimeEndpoint: unix:///run/other.sock\n";
    const endpoint = (connected: boolean): string | null => {
      const agent = started("", { connected });
      agent.write(FILE, body);
      agent.reload();
      return agent.current().values.containerRuntimeEndpoint;
    };
    expect(endpoint(false)).toBe("unix:///run/other.sock");
    expect(endpoint(true)).toBeNull();
  });

  test("keeps its compatibility mode with all that it implies", () => {
    const agent = started("compat: kubelet\n");
    agent.write(FILE, "");
    agent.reload();
    expect(agent.current().limits.images).toMatchObject({
      compat: "kubelet",
      whenFutile: "collect",
    });
    expect(agent.current().values.spaceAccounting).toBe("reported");
  });

  test("is not reloaded if it contradicts a value that waits for a restart", () => {
    const agent = started("compat: kubelet\n");
    agent.write(FILE, "spaceAccounting: measured\n");
    agent.reload();
    expect(agent.rejections[0]).toMatch(/contradicts compat.*restart the agent/);
    expect(agent.reloads).toEqual([]);
  });

  test("follows the kubelet's thresholds without a reload, if none are configured", () => {
    const settings = (text: string) => ({
      settings: [{ field: "evictionHard", text, source: "x" }],
    });
    let kubelet: KubeletOnNode | null = settings("imagefs.available<20%");
    const agent = started("", { kubelet: () => kubelet });
    const own = started("evictionHard: {imagefs.available: 12%}\n", { kubelet: () => kubelet });
    const hard = ({ current }: typeof agent) => current().values.evictionHard;
    expect(hard(agent)).toMatchObject({ "imagefs.available": "25%" });
    kubelet = settings("imagefs.available<30%");
    expect(hard(agent)).toMatchObject({ "imagefs.available": "35%" });
    expect(hard(own)).toEqual({ "imagefs.available": "12%" });
    expect([agent, own].map(({ followed }) => followed.length)).toEqual([1, 0]);
    expect(agent.difference()).toBeNull();
  });
});
