/** A kubelet's API over HTTPS on the loopback address, as far as a reader of pods sees it. */
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

import type { Certificate } from "./certificate.ts";

export interface FakeKubelet extends AsyncDisposable {
  readonly endpoint: string;
  /** What each request brought along. */
  readonly requests: { readonly path: string; readonly authorization: string }[];
  /** What the next requests are answered with. */
  answer: Answer;
}

export type Answer =
  | { readonly kind: "pods"; readonly pods: readonly object[] }
  | { readonly kind: "text"; readonly status: number; readonly body: string }
  /** The connection is closed without an answer. */
  | { readonly kind: "hang-up" }
  /** Half of the announced bytes, then the end. */
  | { readonly kind: "cut-off" }
  /** Nothing, for ever. */
  | { readonly kind: "silence" };

export async function startFakeKubelet(certificate: Certificate): Promise<FakeKubelet> {
  const requests: { path: string; authorization: string }[] = [];
  const state: { answer: Answer } = { answer: { kind: "pods", pods: [] } };
  const server = createServer(
    { key: certificate.key, cert: certificate.certificate },
    (request, response) => {
      requests.push({
        path: request.url ?? "",
        authorization: request.headers.authorization ?? "",
      });
      const { answer } = state;
      if (answer.kind === "silence") return;
      if (answer.kind === "hang-up") {
        response.destroy();
        return;
      }
      if (answer.kind === "cut-off") {
        const body = podList([aPod("uid-a")]);
        response.writeHead(200, { "content-length": String(body.length) });
        response.write(body.slice(0, body.length / 2), () => response.destroy());
        return;
      }
      response.statusCode = answer.kind === "pods" ? 200 : answer.status;
      response.end(answer.kind === "pods" ? podList(answer.pods) : answer.body);
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    endpoint: `https://127.0.0.1:${port}`,
    requests,
    get answer() {
      return state.answer;
    },
    set answer(answer) {
      state.answer = answer;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const podList = (pods: readonly object[]): string =>
  JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: {}, items: pods });

export const aPod = (
  uid: string,
  change: { readonly status?: object; readonly spec?: object; readonly annotations?: object } = {},
): object => ({
  metadata: {
    name: `pod-${uid}`,
    namespace: "default",
    uid,
    annotations: change.annotations ?? {},
  },
  spec: change.spec ?? { containers: [{ name: "c", image: "registry.example/app:v1" }] },
  status: change.status ?? { phase: "Running" },
});
