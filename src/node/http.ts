// Bounded HTTP requests to the node's own kubelet, for its pods, and to pods; and the check of an address to listen on.

import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { hostname } from "node:os";
import { checkServerIdentity, type PeerCertificate } from "node:tls";

import { HostError } from "../model/errors.ts";
import type { HookRequest, KubeletClient } from "../model/ports.ts";
import type { PodRecordSeen } from "../model/snapshot.ts";
import { TIMER_MS_MAX } from "../model/time.ts";
import { hostAndPort } from "../model/values.ts";
import { boundedBytes, codeOf, hostError, reasonOf } from "./files.ts";
import { readPodList } from "./kubelet/pod-documents.ts";

interface GetRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** For `https:` only. */
  readonly tls: Pick<Bun.TLSOptions, "ca" | "cert" | "key"> & {
    readonly checkServerIdentity?: typeof checkServerIdentity;
    /** False only if the other side is a pod. */
    readonly rejectUnauthorized: boolean;
  };
  readonly timeoutMs: number;
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

interface GetAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * One GET, with a deadline for the whole exchange and without redirects. Throws `HostError` `http`. Ignores the proxy
 * variables of the environment: a request to the node itself, with a credential in it, must not go through a proxy. No
 * connection is kept: there is one exchange per pass, and an old connection would keep an old identity.
 */
async function httpGet(get: GetRequest): Promise<GetAnswer> {
  const { url, headers, tls, timeoutMs, bytesMax } = get;
  const deadline = AbortSignal.timeout(Math.min(timeoutMs, TIMER_MS_MAX));
  const signal = AbortSignal.any([get.signal, deadline]);
  try {
    const options = { tls, signal, redirect: "manual", proxy: false, keepalive: false } as const;
    // Not decompressed: a few bytes from a pod could fill the memory.
    const plain = { "accept-encoding": "identity", ...headers };
    const response = await fetch(url, { ...options, headers: plain, decompress: false });
    const body = await boundedBytes(response.body ?? [], bytesMax);
    return { status: response.status, body: body.toString() };
  } catch (error) {
    const reason = reasonOf(error);
    const code = codeOf(error);
    const coded = code === "" || reason.includes(code) ? reason : `${reason} (${code})`;
    const why = deadline.aborted ? `no complete response within ${timeoutMs} ms` : coded;
    throw new HostError("http", `GET ${url.href} failed: ${why}`, { cause: error });
  }
}

/** The response of a hook is not read; this limits one that never ends. */
const HOOK_BYTES_MAX = 64 * 1024;

/** Sends the request of a pod's recorded pre-stop handler; resolves with the status, whatever it is. Throws `HostError` `http`. */
export async function sendHook(hook: HookRequest, signal: AbortSignal): Promise<number> {
  const host = hook.host.includes(":") && !hook.host.startsWith("[") ? `[${hook.host}]` : hook.host;
  const text = `${hook.scheme}://${host}:${hook.port}${hook.path}`;
  if (!URL.canParse(text))
    throw new HostError(
      "http",
      `the recorded pre-stop handler has an invalid URL: ${JSON.stringify(text)}`,
    );
  const answer = await httpGet({
    url: new URL(text),
    headers: Object.fromEntries(hook.headers.map(({ name, value }) => [name, value])),
    tls: { rejectUnauthorized: false },
    timeoutMs: hook.timeoutMs,
    bytesMax: HOOK_BYTES_MAX,
    signal,
  });
  return answer.status;
}

/** Listens on `HOST:PORT` for a moment; `null`: it is free. */
export function addressFault(address: string): Promise<string | null> {
  const server = createServer();
  const { host, port } = hostAndPort(address);
  return new Promise((resolve) => {
    server.once("error", (error) =>
      resolve(codeOf(error) === "EADDRINUSE" ? "it is in use" : reasonOf(error)),
    );
    server.listen({ port, ...(host === "*" ? {} : { host }) }, () =>
      server.close(() => resolve(null)),
    );
  });
}

export interface KubeletOptions extends KubeletClient {
  readonly timeoutMs: number;
}

/** 500 pods of 30 kB are 15 MB. */
const BYTES_MAX = 64 * 1024 * 1024;

/** Throws `HostError`. Reads the files on every call, because credentials rotate. */
export async function kubeletPods(
  options: KubeletOptions,
  signal: AbortSignal,
): Promise<readonly PodRecordSeen[]> {
  const url = new URL("/pods", options.endpoint);
  const secure = url.protocol === "https:";
  const answer = await httpGet({
    url,
    headers: { accept: "application/json", ...(secure ? await authorization(options) : {}) },
    tls: secure ? await tlsOf(options, url.hostname) : { rejectUnauthorized: true },
    timeoutMs: options.timeoutMs,
    bytesMax: BYTES_MAX,
    signal,
  });
  if (answer.status !== 200) throw refusal(url, answer.status);
  return readPodList(answer.body);
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
 * and there is no safe substitute, because any program of the node may listen on the port of a kubelet that is down,
 * and its answer would cause removals.
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
    checkServerIdentity: (_, certificate) => nameFault(host, pinned(ca), certificate),
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
    throw hostError("read", error, (why) => `cannot read ${what} from ${path}: ${why}`);
  }
}

const loopback: readonly string[] = ["127.0.0.1", "localhost", "[::1]"];

/**
 * A kubelet's certificate names the node, but crigc connects to the loopback address: there, the node's own name is
 * valid too. A certificate that is in the CA file itself needs no matching name.
 */
function nameFault(
  host: string,
  pins: ReadonlySet<string>,
  certificate: PeerCertificate,
): Error | undefined {
  if (pins.has(certificate.fingerprint256)) return undefined;
  const names = loopback.includes(host)
    ? [bare(host), "localhost", hostname().toLowerCase()]
    : [bare(host)];
  const faults = names.map((name) => checkServerIdentity(name, certificate));
  return faults.includes(undefined) ? undefined : faults[0];
}

const bare = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

/** Fingerprints of the certificates in a PEM file; ignores other content. */
function pinned(pem: string): ReadonlySet<string> {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  const prints = blocks.flatMap((block) => {
    try {
      return [new X509Certificate(block).fingerprint256];
    } catch {
      return [];
    }
  });
  return new Set(prints);
}

function refusal(url: URL, status: number): HostError {
  const denied = status === 401 || status === 403;
  const advice = denied
    ? "use an identity that may get nodes/pods (nodes/proxy before Kubernetes 1.33): set --kubelet-token-file, or --kubelet-client-cert and --kubelet-client-key"
    : "see the kubelet's log";
  return new HostError("http", `GET ${url.href} returned status ${status}; ${advice}`);
}
