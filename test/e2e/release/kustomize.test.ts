// The kustomize base and its overlays: built by an old kubectl, decoded strictly, and the same as the printed DaemonSet.

import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";

import packaged from "../../../package.json" with { type: "json" };
import { command } from "../../support/containerd/command.ts";
import { put, scratch } from "../../support/scratch.ts";
import { run, starting, top } from "./build.ts";

setDefaultTimeout(120_000);

const kubectl = `${top}/.cache/packages/usr/bin/kubectl`;
const folder = `${top}/deploy/kustomize`;

// What the API has at these places; another field is a mistake, which an API server would drop or refuse.
const META = "{ name: any, namespace: any, labels: any }";
const SELECTOR = "{ matchLabels: any }";
const FIELDS: unknown = Bun.YAML.parse(`
Namespace: { metadata: ${META} }
ServiceAccount: { metadata: ${META}, automountServiceAccountToken: any }
ConfigMap: { metadata: ${META}, data: any }
ClusterRole: { metadata: ${META}, rules: { apiGroups: any, resources: any, verbs: any } }
ClusterRoleBinding:
  metadata: ${META}
  roleRef: { apiGroup: any, kind: any, name: any }
  subjects: { kind: any, name: any, namespace: any }
PodMonitor:
  metadata: ${META}
  spec:
    selector: ${SELECTOR}
    podMetricsEndpoints:
      { port: any, path: any, interval: any, relabelings: { sourceLabels: any, targetLabel: any } }
DaemonSet:
  metadata: ${META}
  spec:
    selector: ${SELECTOR}
    updateStrategy: { type: any, rollingUpdate: { maxUnavailable: any } }
    template:
      metadata: ${META}
      spec:
        serviceAccountName: any
        automountServiceAccountToken: any
        enableServiceLinks: any
        hostNetwork: any
        hostPID: any
        hostIPC: any
        priorityClassName: any
        nodeSelector: any
        tolerations: { operator: any }
        terminationGracePeriodSeconds: any
        securityContext: { seccompProfile: { type: any } }
        containers:
          name: any
          image: any
          imagePullPolicy: any
          command: any
          args: any
          env: { name: any, value: any, valueFrom: { fieldRef: { fieldPath: any } } }
          ports: { name: any, containerPort: any }
          securityContext:
            privileged: any
            allowPrivilegeEscalation: any
            readOnlyRootFilesystem: any
            runAsUser: any
            runAsGroup: any
            capabilities: { drop: any }
          resources: { requests: { cpu: any, memory: any }, limits: { memory: any } }
          livenessProbe:
            httpGet: { path: any, port: any }
            initialDelaySeconds: any
            periodSeconds: any
            timeoutSeconds: any
            failureThreshold: any
          volumeMounts: { name: any, mountPath: any, readOnly: any, mountPropagation: any }
        volumes:
          name: any
          hostPath: { path: any, type: any }
          configMap: { name: any }
          projected:
            sources:
              serviceAccountToken: { path: any, expirationSeconds: any }
              configMap: { name: any, items: { key: any, path: any } }
`);

// oxlint-disable-next-line typescript/no-explicit-any -- a document of the API
type Resource = any;

/** Paths of fields that are not in this tree. */
function unknownFields(value: Resource, fields: Resource, path: string): readonly string[] {
  if (fields === "any") return [];
  if (fields === undefined) return [path];
  if (Array.isArray(value)) return value.flatMap((item) => unknownFields(item, fields, path));
  return Object.entries(value).flatMap(([key, below]) =>
    unknownFields(below, fields[key], `${path}.${key}`),
  );
}
const unknownIn = (resource: Resource): readonly string[] => {
  const known = { apiVersion: "any", kind: "any", ...(FIELDS as Resource)[resource.kind] };
  return unknownFields(resource, known, resource.kind);
};

async function built(overlay: string): Promise<readonly Resource[]> {
  const text = await command(kubectl, "kustomize", `${folder}/${overlay}`);
  return text.split(/^---$/m).map((document) => Bun.YAML.parse(document));
}

const ofKind = (resources: readonly Resource[], wanted: string): readonly Resource[] =>
  resources.filter(({ kind }) => kind === wanted);

const BASE = [
  "apps/v1 DaemonSet",
  "v1 ConfigMap",
  "v1 ConfigMap",
  "v1 Namespace",
  "v1 ServiceAccount",
];
const RBAC = ["ClusterRole", "ClusterRoleBinding"].map(
  (kind) => `rbac.authorization.k8s.io/v1 ${kind}`,
);

test.each([
  ["base", BASE],
  ["k3s", BASE],
  ["rke2", BASE],
  ["crio", BASE],
  ["kubelet-api", [...BASE, ...RBAC].toSorted()],
  ["pod-monitor", ["monitoring.coreos.com/v1 PodMonitor"]],
])("%s has these resources, with fields that are known: %p", async (overlay, kinds) => {
  const resources = await built(overlay);
  expect(resources.map((it): string => `${it.apiVersion} ${it.kind}`).toSorted()).toEqual(kinds);
  expect(resources.flatMap(unknownIn)).toEqual([]);
});

test("a misspelt field is found", () => {
  const account = { kind: "ServiceAccount", metadata: { name: "crigc", label: {} }, secret: [] };
  expect(unknownIn(account)).toEqual(["ServiceAccount.metadata.label", "ServiceAccount.secret"]);
});

const byName = <T extends { readonly name: string }>(items: readonly T[]): readonly T[] =>
  items.toSorted((one, other) => one.name.localeCompare(other.name));

test.each([
  ["base", []],
  ["k3s", ["--container-runtime-endpoint=/run/k3s/containerd/containerd.sock"]],
  ["rke2", ["--container-runtime-endpoint=/run/k3s/containerd/containerd.sock"]],
  ["crio", ["--container-runtime-endpoint=/run/crio/crio.sock"]],
  ["kubelet-api", ["--kubelet-endpoint=https://$(HOST_IP):10250"]],
])(
  "the DaemonSet of %s is the one that crigc prints with %p, but for the account and the ConfigMaps, and has each variable before those that refer to it",
  async (overlay, flags) => {
    const words = ["print", "daemonset", "--namespace=crigc", "--keep-dir=/etc/crigc-keep"];
    const metrics = "--metrics-bind-address=0.0.0.0:9419";
    const { stdout } = await run(...(await starting("x64")), ...words, metrics, ...flags);
    const documents = stdout.split(/^---$/m).map((text) => Bun.YAML.parse(text));
    const [ours, printed] = [await built(overlay), documents].map((resources) => {
      const { containers, volumes, ...pod } = ofKind(resources, "DaemonSet")[0].spec.template.spec;
      const { env, volumeMounts, ...container } = containers[0];
      const isOwn = ({ name }: Resource) => !["configuration", "keep"].includes(name);
      const sorted = { env: byName(env), volumeMounts: byName(volumeMounts) };
      return {
        env,
        pod: { ...pod, volumes: byName(volumes.filter(isOwn)) },
        container: { ...container, ...sorted },
      };
    });
    expect(ours?.pod).toEqual({ ...printed?.pod, serviceAccountName: "crigc" });
    const image = `localhost/crigc:${packaged.version}`;
    expect(ours?.container).toEqual({ ...printed?.container, image });
    const names = ours?.env.map(({ name }: Resource) => name);
    for (const [index, { value = "" }] of ours?.env.entries() ?? [])
      for (const [, name] of value.matchAll(/\$\((\w+)\)/g))
        expect(names.slice(0, index)).toContain(name);
  },
);

test("the ConfigMaps are those that the pod mounts, as the agent accepts them", async () => {
  const resources = await built("base");
  const maps = ofKind(resources, "ConfigMap");
  const [set] = ofKind(resources, "DaemonSet");
  const mounted = set.spec.template.spec.volumes.flatMap(
    ({ configMap }: Resource) => configMap?.name ?? [],
  );
  expect(mounted.toSorted()).toEqual(maps.map(({ metadata }): string => metadata.name).toSorted());
  const node = scratch();
  // The kubelet mounts a ConfigMap as links into a directory that it swaps.
  for (const { metadata, data } of maps) {
    const directory = `${node}/${metadata.name}`;
    mkdirSync(`${directory}/..2026_01_01`, { recursive: true });
    symlinkSync("..2026_01_01", `${directory}/..data`);
    for (const [name, text] of Object.entries<string>(data)) {
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
