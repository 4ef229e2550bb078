// The files of deploy/ as data: what has to stand in them.

import { describe, expect, test } from "bun:test";

import { configurationFile } from "../../scripts/docs.ts";
import { fieldNames, fieldOf } from "../../src/config/fields.ts";
import { loadConfig } from "../../src/config/load.ts";
import { deployFiles } from "../../src/install/deploy.ts";

describe("the systemd unit", () => {
  const lines = deployFiles["systemd-unit"].split("\n");

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

test("the OpenRC script is a shell script", () => {
  const { exitCode } = Bun.spawnSync(["sh", "-n"], { stdin: Buffer.from(deployFiles.openrc) });
  expect(exitCode).toBe(0);
});

test("the DaemonSet has no access to the API, no host namespace and no capability, and writes only to logs, state and run directory", () => {
  type Container = {
    readonly volumeMounts: readonly { readonly mountPath: string; readonly readOnly?: boolean }[];
  };
  const manifest = Bun.YAML.parse(deployFiles.daemonset) as {
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

test.each(["cloud-config", "daemonset", "prometheus-rules"] as const)(
  "%s is valid YAML",
  (name) => {
    expect(Bun.YAML.parse(deployFiles[name])).toBeObject();
  },
);

describe("the configuration", () => {
  const load = (text: string | null) =>
    loadConfig({
      flags: [],
      env: {},
      reader: { file: (path) => (path.endsWith("crigc.yaml") ? text : null), names: () => null },
    });

  test("is what scripts/docs makes of the flag table", () => {
    expect(deployFiles.config).toBe(configurationFile());
  });

  test("is valid and changes nothing as written", () => {
    const { sources, warnings } = load(deployFiles.config);
    expect(warnings).toEqual([]);
    expect(Object.values(sources).every(({ kind }) => kind === "default")).toBe(true);
  });

  test("gives the defaults, from the file, with every setting uncommented, and with each of them alone", () => {
    const setting = /^#(?! )/gm;
    const uncommented = deployFiles.config.replaceAll(setting, "");
    expect(load(uncommented).values).toEqual(load(null).values);
    for (const { index } of deployFiles.config.matchAll(setting)) {
      const { config } = deployFiles;
      const text = config.slice(0, index) + config.slice(index + 1);
      expect(() => load(text)).not.toThrow();
    }
    const shown = fieldNames.filter((name) => fieldOf(name).outsideFiles !== true);
    const { sources } = load(uncommented);
    expect(shown.filter((name) => sources[name].kind !== "file")).toEqual([]);
  });
});
