// Unusual names of images, in pods that anybody may write.
import { expect, test } from "bun:test";
import { hostname } from "node:os";

import { makeCertificate } from "../../support/certificate.ts";
import { aPod, startFakeKubelet } from "../../support/fake-kubelet.ts";
import { hexId, imageIdOf } from "../../support/fake-runtime/describe.ts";
import { put } from "../../support/scratch.ts";
import { removable, startNode } from "./node.ts";

const ca = makeCertificate({ name: "ca", authority: true });
const serving = makeCertificate({ name: "node", dnsNames: [hostname().toLowerCase()], issuer: ca });

test("pods whose images are ID prefixes stop no collection and protect no other image", async () => {
  // Two IDs begin with `a`, and one with `0`, as those pods have it.
  const images = [1, 2].map((index) => ({
    id: `sha256:a${hexId(index).slice(1)}`,
    repoTags: [`r.example/unused:${index}`],
    sizeBytes: 1_000_000,
  }));
  const zero = { id: `sha256:0${hexId(3).slice(1)}`, repoTags: ["r.example/zero:1"] };
  const named = { id: imageIdOf("named"), repoTags: ["docker.io/library/busybox:latest"] };
  const short = { id: imageIdOf("short"), repoTags: ["quay.io/team/tool:v1"] };
  await using kubelet = await startFakeKubelet(serving);
  kubelet.answer = {
    kind: "pods",
    pods: [
      aPod("uid-a", {
        status: { phase: "Pending" },
        spec: {
          containers: ["a", "0", "busybox", "tool:v1", "R.example/UPPER"].map((image, index) => ({
            name: `c${index}`,
            image,
          })),
        },
      }),
    ],
  };
  await using node = await startNode({
    node: {
      images: [...images, zero, named, short].map((it) => ({ sizeBytes: 1_000_000, ...it })),
    },
    traits: { idPrefixes: true },
    flags: removable,
  });
  put(node.home, "root/pods/uid-a/etc-hosts");
  const flags = [
    "--pod-source=kubelet-api",
    `--kubelet-endpoint=${kubelet.endpoint}`,
    `--kubelet-ca-file=${put(node.home, "ca.crt", ca.certificate)}`,
    `--kubelet-token-file=${put(node.home, "token", "secret")}`,
  ];
  const { exitCode, stderr } = await node.crigc("gc", "--images", "--all-unused", ...flags);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  expect(node.removedImages().toSorted()).toEqual([...images, zero].map(({ id }) => id).toSorted());
});
