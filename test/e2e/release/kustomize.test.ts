// The kustomize base and its overlays: built by an old kubectl, decoded strictly, and the same as the printed DaemonSet.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";

import * as v from "valibot";

import packaged from "../../../package.json" with { type: "json" };
import { command } from "../../support/containerd/command.ts";
import { put, scratch } from "../../support/scratch.ts";
import { run, starting, top } from "./build.ts";

setDefaultTimeout(120_000);

const kubectl = `${top}/.cache/packages/usr/bin/kubectl`;
const folder = `${top}/deploy/kustomize`;

// What the API has at these places; another field is a mistake, which an API server would drop or refuse.
const Text = v.pipe(v.string(), v.minLength(1));
const Labels = v.record(v.string(), v.string());
const Metadata = v.strictObject({
  name: Text,
  namespace: v.optional(v.literal("crigc")),
  labels: v.optional(Labels),
});
const Selector = v.strictObject({ matchLabels: Labels });
const Path = v.pipe(v.string(), v.startsWith("/"));
const named = <const T extends v.ObjectEntries>(entries: T) =>
  v.strictObject({ name: Text, ...entries });
const Field = v.strictObject({ fieldRef: v.strictObject({ fieldPath: Text }) });
const Mount = named({
  mountPath: Path,
  readOnly: v.optional(v.boolean()),
  mountPropagation: v.optional(v.literal("HostToContainer")),
});
const Item = v.strictObject({ key: Text, path: Text });
const Volume = v.union([
  named({
    hostPath: v.strictObject({ path: Path, type: v.picklist(["Directory", "DirectoryOrCreate"]) }),
  }),
  named({ configMap: named({}) }),
  named({
    projected: v.strictObject({
      sources: v.array(
        v.union([
          v.strictObject({
            serviceAccountToken: v.strictObject({ path: Text, expirationSeconds: v.number() }),
          }),
          v.strictObject({ configMap: named({ items: v.array(Item) }) }),
        ]),
      ),
    }),
  }),
]);
const Container = named({
  image: Text,
  imagePullPolicy: v.literal("IfNotPresent"),
  command: v.array(Text),
  args: v.array(Text),
  env: v.array(v.union([named({ value: Text }), named({ valueFrom: Field })])),
  ports: v.array(named({ containerPort: v.number() })),
  securityContext: v.strictObject({
    privileged: v.literal(false),
    allowPrivilegeEscalation: v.literal(false),
    readOnlyRootFilesystem: v.literal(true),
    runAsUser: v.literal(0),
    runAsGroup: v.literal(0),
    capabilities: v.strictObject({ drop: v.tuple([v.literal("ALL")]) }),
  }),
  resources: v.strictObject({
    requests: v.strictObject({ cpu: Text, memory: Text }),
    limits: v.strictObject({ memory: Text }),
  }),
  livenessProbe: v.strictObject({
    httpGet: v.strictObject({ path: v.literal("/healthz"), port: v.literal("metrics") }),
    initialDelaySeconds: v.number(),
    periodSeconds: v.number(),
    timeoutSeconds: v.number(),
    failureThreshold: v.number(),
  }),
  volumeMounts: v.array(Mount),
});
const Pod = v.strictObject({
  serviceAccountName: v.literal("crigc"),
  automountServiceAccountToken: v.literal(false),
  enableServiceLinks: v.boolean(),
  hostNetwork: v.literal(false),
  hostPID: v.literal(false),
  hostIPC: v.literal(false),
  priorityClassName: Text,
  nodeSelector: Labels,
  tolerations: v.array(v.strictObject({ operator: v.literal("Exists") })),
  terminationGracePeriodSeconds: v.number(),
  securityContext: v.strictObject({ seccompProfile: v.strictObject({ type: Text }) }),
  containers: v.tuple([Container]),
  volumes: v.array(Volume),
});
const kind = <const K extends string, const T extends v.ObjectEntries>(
  apiVersion: string,
  name: K,
  entries: T,
) =>
  v.strictObject({
    apiVersion: v.literal(apiVersion),
    kind: v.literal(name),
    metadata: Metadata,
    ...entries,
  });
const DaemonSet = kind("apps/v1", "DaemonSet", {
  spec: v.strictObject({
    selector: Selector,
    updateStrategy: v.strictObject({
      type: v.literal("RollingUpdate"),
      rollingUpdate: v.strictObject({ maxUnavailable: v.number() }),
    }),
    template: v.strictObject({ metadata: v.strictObject({ labels: Labels }), spec: Pod }),
  }),
});
const ConfigMap = kind("v1", "ConfigMap", { data: Labels });
const rbac = "rbac.authorization.k8s.io";
const Resource = v.variant("kind", [
  DaemonSet,
  ConfigMap,
  kind("v1", "Namespace", {}),
  kind("v1", "ServiceAccount", { automountServiceAccountToken: v.literal(false) }),
  kind(`${rbac}/v1`, "ClusterRole", {
    rules: v.array(
      v.strictObject({
        apiGroups: v.array(v.string()),
        resources: v.array(Text),
        verbs: v.array(Text),
      }),
    ),
  }),
  kind(`${rbac}/v1`, "ClusterRoleBinding", {
    roleRef: named({ apiGroup: v.literal(rbac), kind: v.literal("ClusterRole") }),
    subjects: v.array(named({ kind: v.literal("ServiceAccount"), namespace: v.literal("crigc") })),
  }),
  kind("monitoring.coreos.com/v1", "PodMonitor", {
    spec: v.strictObject({
      selector: Selector,
      podMetricsEndpoints: v.array(
        v.strictObject({
          port: v.literal("metrics"),
          path: v.literal("/metrics"),
          interval: Text,
          relabelings: v.array(v.strictObject({ sourceLabels: v.array(Text), targetLabel: Text })),
        }),
      ),
    }),
  }),
]);
type Resource = v.InferOutput<typeof Resource>;

async function built(overlay: string): Promise<readonly Resource[]> {
  const text = await command(kubectl, "kustomize", `${folder}/${overlay}`);
  return text.split(/^---$/m).map((document) => v.parse(Resource, Bun.YAML.parse(document)));
}

const ofKind = <K extends Resource["kind"]>(resources: readonly Resource[], wanted: K) =>
  resources.filter((it): it is Extract<Resource, { kind: K }> => it.kind === wanted);

const BASE = ["ConfigMap", "ConfigMap", "DaemonSet", "Namespace", "ServiceAccount"];

test.each([
  ["base", BASE],
  ["k3s", BASE],
  ["rke2", BASE],
  ["crio", BASE],
  ["kubelet-api", [...BASE, "ClusterRole", "ClusterRoleBinding"].toSorted()],
  ["pod-monitor", ["PodMonitor"]],
])("%s has these resources, with fields that are known: %p", async (overlay, kinds) => {
  expect((await built(overlay)).map((it) => it.kind as string).toSorted()).toEqual(kinds);
});

test("the decoding refuses a misspelt field", () => {
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "crigc" } };
  const isValid = (fields: object) => v.safeParse(Resource, { ...account, ...fields }).success;
  expect(isValid({ automountServiceAccountToken: false })).toBe(true);
  expect(isValid({ automountServiceAccountToken: false, secret: [] })).toBe(false);
});

const byName = <T extends { readonly name: string }>(items: readonly T[]): readonly T[] =>
  items.toSorted((one, other) => one.name.localeCompare(other.name));

describe.each([
  ["base", []],
  ["k3s", ["--container-runtime-endpoint=/run/k3s/containerd/containerd.sock"]],
  ["rke2", ["--container-runtime-endpoint=/run/k3s/containerd/containerd.sock"]],
  ["crio", ["--container-runtime-endpoint=/run/crio/crio.sock"]],
  ["kubelet-api", ["--pod-source=kubelet-api"]],
])("the DaemonSet of %s", (overlay, flags) => {
  let ours: v.InferOutput<typeof DaemonSet>["spec"]["template"]["spec"];
  let printed: typeof ours;

  beforeAll(async () => {
    const [set] = ofKind(await built(overlay), "DaemonSet");
    if (set === undefined) throw new Error("no DaemonSet was built");
    ours = set.spec.template.spec;
    const { stdout } = await run(
      ...(await starting("x64")),
      "print",
      "daemonset",
      "--namespace=crigc",
      "--metrics-bind-address=0.0.0.0:9419",
      "--keep-dir=/etc/crigc-keep",
      ...flags,
    );
    const documents = stdout.split(/^---$/m).map((text) => Bun.YAML.parse(text) as Resource);
    const [asked] = ofKind(documents, "DaemonSet");
    if (asked === undefined) throw new Error("no DaemonSet was printed");
    printed = asked.spec.template.spec;
  });

  test("is the one that crigc prints, but for the account and the ConfigMaps", () => {
    const [container] = ours.containers;
    const [expected] = printed.containers;
    const { env, volumeMounts, ...rest } = container;
    const { env: printedEnv, volumeMounts: printedMounts, ...printedRest } = expected;
    expect(rest).toEqual({ ...printedRest, image: `localhost/crigc:${packaged.version}` });
    expect(byName(env)).toEqual(byName(printedEnv));
    expect(byName(volumeMounts)).toEqual(byName(printedMounts));
    const { containers: _, volumes, ...pod } = ours;
    const { containers: __, volumes: printedVolumes, ...printedPod } = printed;
    expect(pod).toEqual({ ...printedPod, serviceAccountName: "crigc" });
    const isOwn = ({ name }: { readonly name: string }) =>
      !["configuration", "keep"].includes(name);
    expect(byName(volumes.filter(isOwn))).toEqual(byName(printedVolumes.filter(isOwn)));
  });

  test("has each variable before those that refer to it", () => {
    const names = ours.containers[0].env.map(({ name }) => name);
    for (const [index, entry] of ours.containers[0].env.entries())
      for (const [, name = ""] of ("value" in entry ? entry.value : "").matchAll(/\$\((\w+)\)/g))
        expect(names.slice(0, index)).toContain(name);
  });
});

describe("the ConfigMaps", () => {
  test("are those that the pod mounts, as the agent accepts them", async () => {
    const resources = await built("base");
    const maps = ofKind(resources, "ConfigMap");
    const [set] = ofKind(resources, "DaemonSet");
    const mounted = set?.spec.template.spec.volumes.flatMap((it) =>
      "configMap" in it ? [it.configMap.name] : [],
    );
    expect(mounted?.toSorted()).toEqual(maps.map(({ metadata }) => metadata.name).toSorted());
    const node = scratch();
    // The kubelet mounts a ConfigMap as links into a directory that it swaps.
    for (const { metadata, data } of maps) {
      const directory = `${node}/${metadata.name}`;
      mkdirSync(`${directory}/..2026_01_01`, { recursive: true });
      symlinkSync("..2026_01_01", `${directory}/..data`);
      for (const [name, text] of Object.entries(data)) {
        put(`${directory}/..2026_01_01`, name, text);
        symlinkSync(`..data/${name}`, `${directory}/${name}`);
      }
    }
    const crigc = await starting("x64");
    const config = maps.find(({ metadata }) => metadata.name.startsWith("crigc-config-"));
    const file = `${node}/${config?.metadata.name}/crigc.yaml`;
    expect(await run(...crigc, "config", "--check", file)).toMatchObject({ exitCode: 0 });
    const checked = await run(
      ...crigc,
      "keep",
      "check",
      `--keep-dir=${node}/crigc-keep`,
      `--state-dir=${node}/state`,
    );
    expect(checked).toMatchObject({ exitCode: 0 });
    expect(checked.stdout).toContain("1");
  });
});
