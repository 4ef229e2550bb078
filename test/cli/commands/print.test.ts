// The commands that print: what is refused, and what the flags beside them become.

import { expect, test } from "bun:test";

import { legalFiles } from "../../../src/install/legal.ts";
import { ours } from "../../config/loading.ts";
import { crigc } from "../world.ts";

/** A manifest, as the test looks into it. */
// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

const sum = "c".repeat(64);
const image = `registry.lan/crigc@sha256:${sum}`;

const mirror = ["cloud-config", "--url", "https://m/x"];
const daemonSet = ["daemonset", "--image", image];
const refused: readonly (readonly string[])[] = [
  mirror,
  ["cloud-config", "--sha256", sum],
  [...mirror, "--sha256", "abc"],
  ["cloud-config", "--url", "https://m/x\ny", "--sha256", sum],
  [...mirror, "--sha256", sum, "--disk", "D"],
  ["cloud-config", "--disk", "a/b"],
  ["daemonset", "--image", "crigc:1"],
  [...daemonSet, "--namespace", "A_b"],
  [...daemonSet, "--container-runtime-endpoint", "/x/y.sock"],
  // A unit would expand it.
  ["systemd-unit", "--bin-dir", "/a%b"],
  ["prometheus-rules", "--runbooks", "a page"],
  // With an invalid keep rule, each machine would remove no image.
  ["cloud-config", "--keep", "not a pattern"],
];

test("what contradicts, is incomplete or cannot stand in a manifest is refused", async () => {
  const said: string[] = [];
  for (const argv of refused) {
    const { code, stdout, stderr } = await crigc(["print", ...argv]);
    expect([code, stdout]).toEqual([2, ""]);
    said.push(`${argv.join(" ").replaceAll(sum, "SUM")}\n  ${stderr.replaceAll(sum, "SUM")}`);
  }
  expect(said.join("")).toMatchSnapshot();
});

test("a DaemonSet without --image names the released image, and says so", async () => {
  const { code, stdout, stderr } = await crigc(["print", "daemonset"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/kind: DaemonSet[^]*image: "localhost\/crigc:\d/);
  expect(stderr).toContain("no --image given: the manifest names localhost/crigc:");
});

test("a DaemonSet names each file and socket of its settings that it does not mount", async () => {
  const argv = [
    "--event-hook=/opt/hook",
    "--kubelet-ca-file=/pki/ca.crt",
    "--image-service-endpoint=/run/images/images.sock",
  ];
  expect((await crigc(["print", ...daemonSet, ...argv])).stderr).toBe(
    [
      "/run/images/images.sock (--image-service-endpoint)",
      "/pki/ca.crt (--kubelet-ca-file)",
      "/opt/hook (--event-hook)",
    ]
      .map((what) => `crigc: the manifest does not mount ${what}: add a volume for it\n`)
      .join(""),
  );
  const fine = [
    "--event-hook=/etc/crigc/hook",
    "--kubelet-ca-file=/var/lib/kubelet/pki/kubelet.crt",
  ];
  expect((await crigc(["print", ...daemonSet, ...fine])).stderr).toBe("");
});

test.each([
  ["127.0.0.1:9419", "exec: {command: [crigc, status]}"],
  ["0.0.0.0:9419", "httpGet: {path: /healthz, port: metrics}"],
])("a DaemonSet with metrics at %s is probed by %s", async (address, probe) => {
  const argv = ["print", ...daemonSet, "--metrics-bind-address", address];
  expect((await crigc(argv)).stdout).toContain(`livenessProbe:\n            ${probe}\n`);
});

test.each([
  "systemd-unit",
  "openrc-script",
  "cloud-config --path=/opt/crigc/crigc --baseline",
  `cloud-config --url=https://mirror.lan/it's?a=b&c --sha256=${sum}`,
  "cloud-config --disk=CRIGC-1 --path=/release/crigc-linux-x64",
  `daemonset --image=${image}`,
])("%s prints the same, with the settings of flags and files", async (line) => {
  const files = {
    "/site/crigc.yaml": ours("maxImages: 40\nimageGCPeriod: 7m\nlogging: {format: json}\n"),
    "/site/conf.d/10.yaml": ours("maxImages: 41\nimageStoreBudget: off\n"),
    "/etc/crigc/crigc.yaml": ours("maxImages: 1\n"),
  };
  const flags = ["--config=/site/crigc.yaml", "--config-dir=/site/conf.d", "--keep=a/x*"];
  const quoted = ["--eviction-hard=nodefs.available<5%", "--event-hook=/a/$x*"];
  const argv = ["print", ...line.split(" "), ...flags, "--keep=b", ...quoted];
  const ran = await crigc(argv, { files });
  expect(ran.code).toBe(0);
  expect(ran.stdout.replaceAll(sum, "SUM")).toMatchSnapshot();
  if (!line.startsWith("cloud-config")) return;
  const { runcmd, write_files: written } = Bun.YAML.parse(ran.stdout) as Json;
  expect(Bun.YAML.parse(written[0].content)).toMatchObject({ maxImages: 41 });
  const [shell, , script] = runcmd[0];
  if (shell === "sh") expect(Bun.spawnSync(["sh", "-n", "-c", script]).exitCode).toBe(0);
});

test("eviction thresholds that are turned off stay off in a DaemonSet, where an empty variable would count as unset", async () => {
  const argv = ["print", ...daemonSet, "--eviction-hard="];
  const [, text] = /CRIGC_EVICTION_HARD, value: "(.*)"/.exec((await crigc(argv)).stdout) ?? [];
  const env = { CRIGC_EVICTION_HARD: text ?? "missing" };
  const { values } = JSON.parse((await crigc(["config", "-o", "json"], { env })).stdout);
  expect(values.evictionHard).toMatchObject({ value: {}, source: "environment" });
});

test("a DaemonSet with a kubelet endpoint has a token and the rights for it", async () => {
  const { stdout } = await crigc([
    "print",
    ...daemonSet,
    "--kubelet-endpoint",
    "https://10.0.0.1:10250",
  ]);
  expect(stdout.replaceAll(sum, "SUM")).toMatchSnapshot();
  const kinds = stdout.split("\n---\n").map((text) => (Bun.YAML.parse(text) as Json).kind);
  expect(kinds).toEqual(["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet"]);
});

/** Host paths by volume, and where each is mounted. */
async function mountsOf(...flags: readonly string[]) {
  const { stdout } = await crigc(["print", ...daemonSet, ...flags]);
  const manifest: Json = Bun.YAML.parse(stdout);
  const { containers, volumes } = manifest.spec.template.spec;
  const [container] = containers;
  const mounted = container.volumeMounts.map((it: Json) => [it.name, it.mountPath]);
  expect(mounted).toEqual(volumes.map((it: Json) => [it.name, it.hostPath.path]));
  const variables: readonly string[] = container.env.map((it: Json) => `${it.name}=${it.value}`);
  return { variables, mounts: Object.fromEntries(mounted) };
}

test.each([
  ["--state-dir", "/data/crigc", "state"],
  ["--run-dir", "/data/run", "control"],
  ["--keep-dir", "/data/keep", "keep"],
  ["--root-dir", "/data/kubelet", "kubelet"],
])("%s of a DaemonSet's agent is a directory of the node", async (flag, path, volume) => {
  const { variables, mounts } = await mountsOf(flag, path);
  expect(variables).toContain(`CRIGC${flag.slice(1).toUpperCase().replaceAll("-", "_")}=${path}`);
  expect(mounts).toMatchObject({
    [volume]: path,
    run: "/run/crigc",
    configuration: "/etc/crigc",
  });
});

test.each([
  ["/run/k0s/containerd.sock", "/var/lib/k0s/kubelet"],
  ["/var/snap/microk8s/common/run/containerd.sock", "/var/snap/microk8s/common/var/lib/kubelet"],
])("with %s a DaemonSet's agent looks for the kubelet in %s", async (socket, path) => {
  const { variables, mounts } = await mountsOf("--container-runtime-endpoint", socket);
  expect(variables).toContain(`CRIGC_ROOT_DIR=${path}`);
  expect(mounts).toMatchObject({ kubelet: path });
  const named = await mountsOf("--container-runtime-endpoint", socket, "--root-dir", "/x");
  expect(named.variables.filter((it) => it.startsWith("CRIGC_ROOT_DIR"))).toEqual([
    "CRIGC_ROOT_DIR=/x",
  ]);
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

test("each alert's runbook_url is its section of the page that --runbooks names", async () => {
  const page = "https://wiki.example/crigc.html?v=1";
  const printed = await crigc(["print", "prometheus-rules", "--runbooks", page]);
  expect(printed.stdout).toContain(`runbook_url: ${page}#crigcdiskpressure\n`);
  expect((await crigc(["print", "prometheus-rules"])).stdout).toContain(
    "runbook_url: /usr/share/doc/crigc/operations.md#crigcabsent\n",
  );
});

test.each([
  [["--licenses", "--sbom"], "--licenses contradicts --sbom; use one of them"],
  [["--licenses", "-o", "json"], "--licenses prints text only; leave -o out"],
])("version refuses %j", async (words, message) => {
  const { code, stdout, stderr } = await crigc(["version", ...words]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(message);
});

test.each([
  ["--licenses", legalFiles.licenses],
  ["--sbom", legalFiles.sbom],
])("%s prints the data of the build", async (option, file) => {
  expect((await crigc(["version", option])).stdout).toBe(await file.text());
});
