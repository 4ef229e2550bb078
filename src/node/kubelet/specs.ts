/** The images that specifications of the kubelet's pods name, from its list of pods: additional uses, and nothing else. */

import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { checkServerIdentity, type PeerCertificate } from "node:tls";

import * as v from "valibot";

import { HostError, messageOf } from "../../model/errors.ts";
import { type PodUid, podUid } from "../../model/ids.ts";
import type { KubeletOptions } from "../../model/ports.ts";
import type { PodImages, PodSpecs } from "../../model/snapshot.ts";
import { hostError } from "../files.ts";
import { type GetRequest, httpGet } from "../http.ts";
import { hasDirectory } from "./pods.ts";

/**
 * Remembers what each pod names as long as the pod's directory exists, also while the kubelet does not answer. The result
 * never rejects.
 */
export function podSpecReader(
  kubelet: KubeletOptions,
  rootDirectory: () => string,
): (signal: AbortSignal) => Promise<PodSpecs> {
  let last: ReadonlyMap<PodUid, PodImages> = new Map();
  return async (signal) => {
    let error: string | null = null;
    const listed = await kubeletPods(kubelet, signal).catch((thrown: unknown) => {
      error = messageOf(thrown);
      return [];
    });
    const next = new Map(listed.map((pod) => [pod.uid, pod]));
    for (const [uid, pod] of last)
      if (!next.has(uid) && hasDirectory(rootDirectory(), uid)) next.set(uid, pod);
    last = next;
    return { pods: [...next.values()], error };
  };
}

const TEXT = v.nullish(v.string(), "");
const listOf = <Item extends v.GenericSchema>(item: Item) => v.nullish(v.array(item), []);
const CONTAINERS = listOf(v.object({ image: TEXT }));

const SPEC = v.object({
  initContainers: CONTAINERS,
  containers: CONTAINERS,
  ephemeralContainers: CONTAINERS,
  volumes: listOf(v.object({ image: v.nullish(v.object({ reference: TEXT })) })),
});

const POD_LIST = v.pipe(
  v.string(),
  v.parseJson(undefined, "it is not JSON"),
  v.object({
    kind: v.literal("PodList"),
    // The kubelet writes null if it has no pods.
    items: v.nullable(
      v.array(
        v.object({
          metadata: v.object({ uid: v.pipe(v.string(), v.minLength(1)) }),
          spec: v.nullish(SPEC, {}),
        }),
      ),
      [],
    ),
  }),
);

/** Parses the body of `/pods`. Throws `HostError` `parse`. */
export function podsIn(body: string): readonly PodImages[] {
  const list = v.safeParse(POD_LIST, body, { abortEarly: true });
  if (!list.success) {
    const [issue] = list.issues;
    const why = [v.getDotPath(issue) ?? [], issue.message].flat().join(": ");
    throw new HostError("parse", `invalid response from the kubelet: ${why}`);
  }
  return list.output.items.map(({ metadata, spec }) => ({
    uid: podUid(metadata.uid),
    images: imagesOf(spec),
  }));
}

/** Of init, main and debug containers, and of image volumes. */
function imagesOf(spec: v.InferOutput<typeof SPEC>): readonly string[] {
  const containers = [...spec.initContainers, ...spec.containers, ...spec.ephemeralContainers];
  const names = containers.map(({ image }) => image);
  const references = spec.volumes.map(({ image }) => image?.reference ?? "");
  return [...new Set([...names, ...references])].filter((name) => name !== "");
}

/** 500 pods of 30 kB are 15 MB. */
const BYTES_MAX = 64 * 1024 * 1024;

/** Throws `HostError`. Reads the files on every call, because credentials rotate. */
async function kubeletPods(
  options: KubeletOptions,
  signal: AbortSignal,
): Promise<readonly PodImages[]> {
  const url = new URL("/pods", options.endpoint);
  const secure = url.protocol === "https:";
  const answer = await httpGet({
    url: url.href,
    headers: { accept: "application/json", ...(secure ? await authorization(options) : {}) },
    tls: secure ? await tlsOf(options, url.hostname) : { rejectUnauthorized: true },
    timeoutMs: options.timeoutMs,
    bytesMax: BYTES_MAX,
    signal,
  });
  if (answer.status !== 200) throw refusal(url, answer.status);
  return podsIn(answer.body);
}

/** Never over `http:`, where anybody could read it. */
async function authorization({
  tokenFile,
}: KubeletOptions): Promise<Readonly<Record<string, string>>> {
  if (tokenFile === null) return {};
  const token = (await textOf(tokenFile, "the token")).trim();
  return { authorization: `Bearer ${token}` };
}

/**
 * The certificate is always verified. On most nodes the kubelet signs its own: then that very file is to be trusted,
 * and a default would be unsafe, because any program of the node may listen on the port of a kubelet that is down,
 * and would be sent the token.
 */
async function tlsOf(options: KubeletOptions, host: string): Promise<GetRequest["tls"]> {
  const { caFile, clientCertFile, clientKeyFile } = options;
  if (caFile === null) {
    throw new HostError(
      "refused",
      "crigc did not contact the kubelet, because it cannot verify the kubelet's certificate; set --kubelet-ca-file " +
        "(the cluster's CA if it signs serving certificates, else /var/lib/kubelet/pki/kubelet.crt)",
    );
  }
  const ca = await textOf(caFile, "the kubelet's CA");
  return {
    rejectUnauthorized: true,
    ca,
    // Called once the chain is verified.
    checkServerIdentity: (_, certificate) => nameFault(host, ca, certificate),
    ...(clientCertFile === null
      ? {}
      : { cert: await textOf(clientCertFile, "the client certificate") }),
    ...(clientKeyFile === null ? {} : { key: await textOf(clientKeyFile, "the client key") }),
  };
}

async function textOf(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw hostError("read", error, `cannot read ${what} from ${path}`);
  }
}

const loopback: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];

/**
 * A kubelet's certificate names the node, but crigc connects to the loopback address: there, the node's own name is
 * valid too. A certificate that is in the CA file itself needs no matching name.
 */
function nameFault(host: string, ca: string, certificate: PeerCertificate): Error | undefined {
  if (ca.replaceAll(/\s/g, "").includes(`-${certificate.raw.toString("base64")}-`))
    return undefined;
  const names = loopback.includes(host)
    ? [bare(host), "localhost", hostname().toLowerCase()]
    : [bare(host)];
  const faults = names.map((name) => checkServerIdentity(name, certificate));
  return faults.includes(undefined) ? undefined : faults[0];
}

const bare = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

function refusal(url: URL, status: number): HostError {
  const denied = status === 401 || status === 403;
  const advice = denied
    ? "use an identity that may get nodes/pods (nodes/proxy before Kubernetes 1.33): set --kubelet-token-file, or --kubelet-client-cert and --kubelet-client-key"
    : "see the kubelet's log";
  return new HostError("http", `GET ${url.href} returned status ${status}; ${advice}`);
}
