// Unit, script and DaemonSet as data: what has to stand in them, whoever asks for them.

import { describe, expect, test } from "bun:test";

import { daemonSet, placesOf } from "../../src/install/manifests.ts";
import { openrcScript, systemdUnit } from "../../src/install/service.ts";
import { load } from "../config/loading.ts";
import { put, scratch } from "../support/scratch.ts";

const executable = "/opt/bin/crigc";

describe("the systemd unit", () => {
  const lines = systemdUnit({ executable }).split("\n");

  test("passes settings to the agent quoted for systemd, and makes their directories writable", () => {
    const flags = ["--max-images=40", '--keep=a b"%$'];
    const text = systemdUnit({ executable, flags, writable: ["/data/crigc"] });
    expect(text).toContain('ExecStart=/opt/bin/crigc run --max-images=40 "--keep=a b\\"%%$$"\n');
    expect(text).toContain("\nReadWritePaths=-/data/crigc\n");
  });

  test.each([
    "MemoryDenyWriteExecute",
    "ProcSubset",
    "PrivateNetwork",
    "IPAddressDeny",
    "PrivateUsers",
  ])("does not set %s, which would break it", (setting) => {
    expect(lines.filter((line) => line.startsWith(`${setting}=`))).toEqual([]);
  });
});

describe("the OpenRC script", () => {
  test("is a shell script that names the executable", () => {
    const script = openrcScript({ executable });
    expect(script).toContain('command="/opt/bin/crigc"');
    expect(Bun.spawnSync(["sh", "-n"], { stdin: Buffer.from(script) }).exitCode).toBe(0);
  });

  test("passes each setting to the agent as one word, through both levels of quoting", () => {
    const flags = ["--max-images=40", `--keep=a b'"$x\\`];
    const script = openrcScript({ executable, flags });
    const line = script.split("\n").find((it) => it.startsWith("command_args="));
    const shown = Bun.spawnSync(["sh", "-c", `${line}\neval "printf '%s|' $command_args"`]);
    expect(shown.stdout.toString()).toBe(`run|${flags.join("|")}|`);
  });

  test("writes the baseline with the settings of the agent", () => {
    const flags = ["--keep-dir=/data/keep d", "--max-images=40"];
    const around = 'checkpath() { :; }\nyesno() { [ "$1" = yes ]; }\ncrigc_baseline=yes\n';
    const program = put(scratch(), "a directory/crigc", '#!/bin/sh\nprintf "%s|" "$@"\n', 0o755);
    const script = `${openrcScript({ executable: program, flags })}${around}`;
    const { stdout } = Bun.spawnSync(["sh", "-c", `${script}start_pre`]);
    expect(stdout.toString()).toBe(`keep|baseline|--once|${flags.join("|")}|`);
  });
});

test("the DaemonSet has no access to the API, no host namespace and no capability, and writes only to logs, state and run directory", () => {
  const socket = "/run/k3s/containerd/containerd.sock";
  const places = placesOf(socket);
  if (places === null) throw new Error("the socket of k3s is known");
  const image = `registry.lan/crigc@sha256:${"b".repeat(64)}`;
  const namespace = "kube-system";
  const text = daemonSet({ image, namespace, socket, places, config: load({}) });
  type Container = {
    readonly volumeMounts: readonly { readonly mountPath: string; readonly readOnly?: boolean }[];
  };
  const manifest = Bun.YAML.parse(text) as {
    spec: { template: { spec: { containers: readonly [Container] } } };
  };
  const pod = manifest.spec.template.spec;
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    hostNetwork: false,
    hostPID: false,
    containers: [
      {
        securityContext: {
          privileged: false,
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        },
      },
    ],
  });
  const writable = pod.containers[0].volumeMounts.filter(({ readOnly }) => readOnly !== true);
  expect(writable.map(({ mountPath }) => mountPath)).toEqual([
    "/var/log/pods",
    "/var/log/containers",
    "/var/lib/crigc",
    "/run/crigc",
  ]);
});
