/**
 * What an agent in a pod needs for the kubelet's API: the node's address, a token, a trusted certificate and the right to
 * list pods.
 */
import type { Config } from "../config/config.ts";

export interface KubeletAccess {
  /** YAML documents before the DaemonSet. */
  readonly documents: string;
  readonly podSpec: string;
  readonly environment: string;
  readonly mounts: string;
  readonly volumes: string;
}

const none: KubeletAccess = {
  documents: "",
  podSpec: "      automountServiceAccountToken: false\n",
  environment: "",
  mounts: "",
  volumes: "",
};

const CREDENTIALS = "/var/run/secrets/crigc";

/** Empty unless the pod source is kubelet-api. Keeps values given by flag. */
export function kubeletAccess(config: Config, namespace: string, rootDir: string): KubeletAccess {
  if (config.podSource !== "kubelet-api") return none;
  const { values, kubelet } = config;
  const isSecure = kubelet.endpoint.startsWith("https:");
  const byToken = isSecure && kubelet.tokenFile === null && kubelet.clientCertFile === null;
  const environment = [
    ...(values.kubeletEndpoint.source === "default"
      ? [
          `            # The kubelet does not listen on the pod's own loopback address. For IPv6 set --kubelet-endpoint, with brackets.`,
          `            - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}`,
          `            - {name: CRIGC_KUBELET_ENDPOINT, value: "https://$(HOST_IP):10250"}`,
        ]
      : []),
    ...(byToken
      ? [`            - {name: CRIGC_KUBELET_TOKEN_FILE, value: ${CREDENTIALS}/token}`]
      : []),
    ...(isSecure && kubelet.caFile === null
      ? [
          `            # The kubelet's own certificate. If the cluster signs it (serverTLSBootstrap), set ${CREDENTIALS}/ca.crt.`,
          `            - {name: CRIGC_KUBELET_CA_FILE, value: ${JSON.stringify(`${rootDir}/pki/kubelet.crt`)}}`,
        ]
      : []),
  ];
  return {
    documents: rightsOf(namespace),
    podSpec: "      serviceAccountName: crigc\n      automountServiceAccountToken: false\n",
    environment: environment.map((line) => `${line}\n`).join(""),
    mounts: `            - {name: credentials, mountPath: ${CREDENTIALS}, readOnly: true}\n`,
    volumes: `        - name: credentials
          projected:
            sources:
              - serviceAccountToken: {path: token, expirationSeconds: 3600}
              - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
`,
  };
}

const rightsOf = (
  namespace: string,
): string => `# Allows reading the pods of each kubelet, and nothing else.
apiVersion: v1
kind: ServiceAccount
metadata: {name: crigc, namespace: ${JSON.stringify(namespace)}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: crigc-kubelet-pods}
rules:
  # Enough since Kubernetes 1.33. Before that the kubelet checks nodes/proxy, which also allows running commands in every pod of the node.
  - {apiGroups: [""], resources: [nodes/pods], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crigc-kubelet-pods}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crigc-kubelet-pods}
subjects:
  - {kind: ServiceAccount, name: crigc, namespace: ${JSON.stringify(namespace)}}
---
`;
