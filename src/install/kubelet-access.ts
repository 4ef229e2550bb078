/**
 * What an agent in a pod needs for the kubelet's API: the node's address, a token, a trusted certificate and the right to
 * list pods.
 */
import type { Config } from "../config/config.ts";
import { filled } from "./template.ts";
import rights from "./templates/kubelet-rights.txt" with { type: "text" };

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
  const { sources, kubelet } = config;
  const isSecure = kubelet.endpoint.startsWith("https:");
  const byToken = isSecure && kubelet.tokenFile === null && kubelet.clientCertFile === null;
  const environment = [
    ...(sources.kubeletEndpoint.kind === "default"
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
    documents: filled(rights, { namespace: JSON.stringify(namespace) }),
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
