import { describe, expect, test } from "bun:test";

import { type Config, configOf } from "../../src/config/config.ts";
import type { KubeletOnNode } from "../../src/config/kubelet/above-kubelet.ts";
import { readWritten } from "../../src/config/load.ts";
import { FILE, ours, readerOf } from "./loading.ts";

const SOURCE = "/var/lib/kubelet/config.yaml";

const kubelet = (settings: Readonly<Record<string, string>>): KubeletOnNode => ({
  settings: Object.entries(settings).map(([field, text]) => ({ field, text, source: SOURCE })),
});

const load = (found: KubeletOnNode | null, body = ""): Config =>
  configOf(readWritten({ flags: [], env: {}, reader: readerOf({ [FILE]: ours(body) }) }), found);

const hard = (config: Config) => config.values.evictionHard;

describe("our default eviction thresholds", () => {
  test("are the kubelet's defaults if there is no kubelet", () => {
    expect(hard(load(null))).toMatchObject({
      source: "default",
      value: { "imagefs.available": "15%" },
    });
  });

  test("are five points above a kubelet's defaults, and say so", () => {
    expect(hard(load(kubelet({})))).toEqual({
      value: {
        "nodefs.available": "15%",
        "nodefs.inodesFree": "10%",
        "imagefs.available": "20%",
        "imagefs.inodesFree": "10%",
      },
      source: "kubelet",
      from: ["above the kubelet's (its defaults)"],
    });
  });

  test("are above the kubelet's own, hard and soft", () => {
    const config = load(
      kubelet({
        evictionHard: "imagefs.available<10%,nodefs.available<2%",
        evictionSoft: "imagefs.available<25%",
        evictionSoftGracePeriod: "imagefs.available=1m",
      }),
    );
    expect(hard(config)).toMatchObject({
      value: { "imagefs.available": "30%", "nodefs.available": "7%" },
      from: [`above the kubelet's (${SOURCE})`],
    });
    const images = config.limits.pressure.thresholds.find(
      (it) => it.signal === "imagefs.available",
    );
    expect(images?.amount).toEqual({ kind: "fraction", value: Math.fround(0.3) });
  });

  test.each([
    ["imagefs.available<4Gi", "5Gi"],
    ["imagefs.available<80Gi", "100Gi"],
    ["imagefs.available<98%", "99%"],
  ])("with %s are %s", (text, above) => {
    expect(hard(load(kubelet({ evictionHard: text }))).value).toMatchObject({
      "imagefs.available": above,
    });
  });

  test("of signals that the kubelet does not watch are unchanged", () => {
    const { value } = hard(load(kubelet({ evictionHard: "memory.available<100Mi" })));
    expect(value).toMatchObject({ "imagefs.available": "15%", "nodefs.available": "10%" });
  });

  test("are above the kubelet's defaults if its settings are invalid", () => {
    const { value } = hard(load(kubelet({ evictionHard: "imagefs.available<lots" })));
    expect(value).toMatchObject({ "imagefs.available": "20%" });
  });

  test("are overridden by the operator's, and by the kubelet's own with compat kubelet", () => {
    const body = "evictionHard: {imagefs.available: 2%}\n";
    expect(hard(load(kubelet({}), body))).toMatchObject({
      source: "file",
      value: { "imagefs.available": "2%" },
    });
    expect(hard(load(kubelet({}), "compat: kubelet\n"))).toMatchObject({
      source: "default",
      value: { "imagefs.available": "15%" },
    });
  });
});
