// Conflicts between the kubelet's thresholds and crigc's.

import { describe, expect, test } from "bun:test";

import type { KubeletFact } from "../../../src/agent/openers.ts";
import { kubeletChecks } from "../../../src/cli/checks/kubelet.ts";
import type { Filesystem } from "../../../src/model/snapshot.ts";
import { load } from "../../config/loading.ts";
import { aFilesystem, GIB } from "../../support/build/values.ts";

interface Node {
  readonly settings?: Readonly<Record<string, string>>;
  readonly ours?: readonly (readonly [string, string])[];
  readonly filesystem?: Filesystem | null;
  readonly kubelet?: Partial<KubeletFact>;
}

function checks({ settings = {}, ours = [], filesystem, kubelet }: Node) {
  const found = kubeletChecks(
    {
      signs: ["/etc/systemd/system/kubelet.service"],
      running: [],
      settings: Object.entries(settings).map(([field, text]) => ({
        field,
        text,
        source: "/var/lib/kubelet/config.yaml",
      })),
      problems: [],
      ...kubelet,
    },
    load({ flags: ours }),
    filesystem === undefined ? aFilesystem() : filesystem,
  );
  return new Map(found.filter(([, check]) => check !== null));
}

const eviction = (node: Node) => checks(node).get("kubelet-eviction");

describe("a kubelet", () => {
  test("is not reported without a sign of one", () => {
    expect([...checks({ kubelet: { signs: [] } }).values()]).toEqual([
      {
        result: "ok",
        message: "no sign of a kubelet on this node",
        advice: null,
      },
    ]);
  });

  test("is found if it is only running", () => {
    const found = checks({ kubelet: { signs: [], running: [4711] } });
    expect(found.get("kubelet")?.message).toContain("this node has a kubelet (process 4711)");
  });

  test("with an unreadable configuration is reported without thresholds", () => {
    const found = checks({ kubelet: { problems: ["cannot read x: permission denied"] } });
    expect([...found.keys()]).toEqual(["kubelet"]);
    expect(found.get("kubelet")).toMatchObject({ result: "warning" });
  });

  test("configured by kubeadm is understood", () => {
    const settings = {
      imageMaximumGCAge: "0s",
      imageMinimumGCAge: "0s",
      containerRuntimeEndpoint: "",
      evictionSoft: "",
    };
    expect([...checks({ settings }).keys()]).toEqual([
      "kubelet",
      "kubelet-image-gc",
      "kubelet-eviction",
    ]);
  });
});

describe("the kubelet's own image collection", () => {
  test("is a warning with its thresholds, because it ignores keep rules", () => {
    const settings = { imageGCHighThresholdPercent: "90", imageGCLowThresholdPercent: "70" };
    expect(checks({ settings }).get("kubelet-image-gc")).toMatchObject({
      result: "warning",
      message: "the kubelet also removes images, from 90% down to 70%, and ignores keep rules",
    });
  });

  test("turned off by a threshold of 100 is ok", () => {
    const settings = { imageGCHighThresholdPercent: "100" };
    expect(checks({ settings }).get("kubelet-image-gc")?.result).toBe("ok");
  });

  test("by age is a separate warning", () => {
    const settings = { imageGCHighThresholdPercent: "100", imageMaximumGCAge: "72h" };
    expect(checks({ settings }).get("kubelet-image-age")?.message).toContain("unused for 3d");
    expect(checks({}).has("kubelet-image-age")).toBeFalse();
  });
});

describe("eviction", () => {
  const oursAt = (text: string) => [["eviction-hard", text]] as const;

  test("advice never says to omit a flag that was not given", () => {
    const advice = eviction({})?.advice ?? "";
    expect(advice).toBe(
      "set --eviction-hard to nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<20%,imagefs.inodesFree<5%",
    );
    expect(eviction({ ours: oursAt("imagefs.available<5%") })?.advice).toStartWith(
      "omit --eviction-hard",
    );
  });

  test("advice keeps crigc's other thresholds, which a new value would replace", () => {
    const ours = oursAt("nodefs.available<8%,imagefs.available<5%");
    expect(eviction({ ours })?.advice).toEndWith(
      "or set it to nodefs.available<8%,imagefs.available<20%",
    );
  });

  test("of the kubelet comes second if crigc's threshold is above it", () => {
    expect(eviction({ ours: oursAt("imagefs.available<20%") })).toEqual({
      result: "ok",
      message:
        "crigc frees space at imagefs.available<20%, before the kubelet evicts pods at imagefs.available<15%",
      advice: null,
    });
  });

  test.each(["imagefs.available<2%", "imagefs.available<15%", "nodefs.inodesFree<5%"])(
    "of the kubelet comes first if crigc's threshold is %s",
    (text) => {
      expect(eviction({ ours: oursAt(text) })).toMatchObject({
        result: "warning",
        message: expect.stringContaining(
          "the kubelet evicts pods at imagefs.available<15%; crigc ",
        ),
        advice: expect.stringContaining("imagefs.available<20%"),
      });
    },
  );

  test("by a signal that the configuration omits does not count", () => {
    const settings = { evictionHard: "memory.available<100Mi,nodefs.available<5%" };
    expect(eviction({ settings })?.result).toBe("ok");
  });

  test("by an amount of bytes is compared as a share of this filesystem", () => {
    const settings = { evictionHard: "imagefs.available<20Gi" };
    const of = (capacityBytes: bigint) =>
      eviction({ settings, filesystem: aFilesystem({ capacityBytes }) });
    expect(of(100n * GIB)).toMatchObject({
      result: "warning",
      message: expect.stringContaining("evicts pods at imagefs.available<20%"),
    });
    expect(of(1000n * GIB)?.result).toBe("ok");
  });

  test("by an amount of bytes is not checked if the image filesystem cannot be read", () => {
    const settings = { evictionHard: "imagefs.available<20Gi" };
    expect(eviction({ settings, filesystem: null })?.result).toBe("skipped");
    expect(eviction({ filesystem: null })?.result).toBe("warning");
  });

  test("for the node's filesystem counts only if it holds images", () => {
    const settings = { evictionHard: "nodefs.available<30%" };
    const apart = aFilesystem({ roles: ["imagefs"] });
    expect(eviction({ settings })?.result).toBe("warning");
    expect(eviction({ settings, filesystem: apart })?.result).toBe("ok");
  });

  test("that is soft counts as well", () => {
    const settings = {
      evictionHard: "imagefs.available<5%",
      evictionSoft: "imagefs.available<25%",
      evictionSoftGracePeriod: "imagefs.available=1m",
    };
    expect(eviction({ settings })?.message).toContain("evicts pods at imagefs.available<25%");
  });
});
