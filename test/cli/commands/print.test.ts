// The commands that print: what is refused, and what the flags beside them become.

import { describe, expect, test } from "bun:test";

import { legalPaths } from "../../../src/install/legal.ts";
import { crigc } from "../world.ts";

const sum = "c".repeat(64);
const image = `registry.lan/crigc@sha256:${sum}`;

describe("print", () => {
  test.each([
    ["a mirror without a sum", ["cloud-config", "--url", "https://m/x"], "--sha256"],
    ["a sum without a mirror", ["cloud-config", "--sha256", sum], "--url"],
    [
      "a sum that is none",
      ["cloud-config", "--url", "https://m/x", "--sha256", "abc"],
      "64 hex digits",
    ],
    [
      "an address with a line break",
      ["cloud-config", "--url", "https://m/x\ny", "--sha256", sum],
      "--url",
    ],
    [
      "a mirror and a disk",
      ["cloud-config", "--url", "https://m/x", "--sha256", sum, "--disk", "D"],
      "contradicts",
    ],
    ["a path that the shell would split", ["cloud-config", "--path", "/a b"], "--path"],
    ["a label that is none", ["cloud-config", "--disk", "a/b"], "--disk"],
    ["an image without a digest", ["daemonset", "--image", "crigc:1"], "has no digest"],
    ["no image", ["daemonset"], "--image is missing"],
    [
      "a namespace that is none",
      ["daemonset", "--image", image, "--namespace", "A_b"],
      "--namespace",
    ],
    [
      "a socket whose store is not known",
      ["daemonset", "--image", image, "--container-runtime-endpoint", "/x/y.sock"],
      "--image-store",
    ],
    [
      "a directory with a percent sign, which a unit would expand",
      ["systemd-unit", "--bin-dir", "/a%b"],
      "--bin-dir",
    ],
  ])("%s is refused", async (_, argv, words) => {
    const { code, stdout, stderr } = await crigc(["print", ...argv]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(words);
  });

  test("flags beside a cloud-config become the machine's configuration; those of this machine do not", async () => {
    const { stdout } = await crigc(["print", "cloud-config", "--max-images", "40"], {
      env: { CRIGC_IMAGE_GC_PERIOD: "9m" },
    });
    expect(stdout).toContain("maxImages: 40\n");
    expect(stdout).not.toContain("imageGCPeriod");
  });

  test("flags beside a DaemonSet become arguments of the agent", async () => {
    const argv = [
      "print",
      "daemonset",
      "--image",
      image,
      "--keep",
      "a/**",
      "--keep",
      "b",
      "--image-minimum-gc-age=5m",
    ];
    const { stdout } = await crigc(argv);
    for (const flag of ["--keep=a/**", "--keep=b", "--minimum-image-ttl-duration=5m"]) {
      expect(stdout).toContain(`- "${flag}"\n`);
    }
  });

  /** Host paths by volume, and where each is mounted. */
  async function mountsOf(...flags: readonly string[]) {
    const { stdout } = await crigc(["print", "daemonset", "--image", image, ...flags]);
    const manifest = Bun.YAML.parse(stdout) as {
      spec: {
        template: {
          spec: {
            containers: readonly {
              args: readonly string[];
              volumeMounts: readonly { name: string; mountPath: string; readOnly?: boolean }[];
            }[];
            volumes: readonly { name: string; hostPath: { path: string } }[];
          };
        };
      };
    };
    const { containers, volumes } = manifest.spec.template.spec;
    const [container] = containers;
    const mounted = container?.volumeMounts.map(({ name, mountPath }) => [name, mountPath]);
    expect(mounted).toEqual(volumes.map(({ name, hostPath }) => [name, hostPath.path]));
    return { args: container?.args ?? [], mounts: Object.fromEntries(mounted ?? []) };
  }

  test.each([
    ["--state-dir", "/data/crigc", "state"],
    ["--run-dir", "/data/run", "control"],
    ["--keep-dir", "/data/keep", "keep"],
    ["--root-dir", "/data/kubelet", "kubelet"],
    ["--pod-logs-dir", "/data/pods", "pod-logs"],
    ["--container-logs-dir", "/data/containers", "container-logs"],
  ])("%s of a DaemonSet's agent is a directory of the node", async (flag, path, volume) => {
    const { args, mounts } = await mountsOf(flag, path);
    expect(args).toContain(`${flag}=${path}`);
    expect(mounts).toMatchObject({
      [volume]: path,
      run: "/run/crigc",
      configuration: "/etc/crigc",
    });
  });

  test.each([
    ["/run/k0s/containerd.sock", "/var/lib/k0s/kubelet"],
    ["/var/snap/microk8s/common/run/containerd.sock", "/var/snap/microk8s/common/var/lib/kubelet"],
  ])("beside %s a DaemonSet's agent looks for the kubelet in %s", async (socket, path) => {
    const { args, mounts } = await mountsOf("--container-runtime-endpoint", socket);
    expect(args).toContain(`--root-dir=${path}`);
    expect(mounts).toMatchObject({ kubelet: path });
    const named = await mountsOf("--container-runtime-endpoint", socket, "--root-dir", "/x");
    expect(named.args.filter((it) => it.startsWith("--root-dir"))).toEqual(["--root-dir=/x"]);
  });

  test.each(["systemd-unit", "openrc-script", "config", "prometheus-rules"])(
    "%s needs no configuration",
    async (topic) => {
      const { code, stdout } = await crigc(["print", topic], {
        files: { "/etc/crigc/crigc.yaml": "maxImages: [" },
      });
      expect(code).toBe(0);
      expect(stdout.length).toBeGreaterThan(100);
    },
  );
});

describe("version", () => {
  test.each([
    ["--licenses", legalPaths.licenses],
    ["--sbom", legalPaths.sbom],
  ])("%s answers with what the build carries", async (option, path) => {
    expect((await crigc(["version", option])).stdout).toBe(await Bun.file(path).text());
  });
});
