/** Writes pull records as a kubelet does, in `ROOT/image_manager`. */

import { lstatSync } from "node:fs";

import { type Instant, instant } from "../../src/model/time.ts";
import { sha256OfText } from "../../src/node/files.ts";
import { put } from "./scratch.ts";

export const pullFile = (name: string): string => `sha256-${sha256OfText(name)}`;

/** By default of an image that every pod of the node may use. */
export function pullRecord(root: string, imageRef: string, change: object = {}): void {
  const record = {
    kind: "ImagePulledRecord",
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    lastUpdatedTime: "2026-01-15T12:00:00Z",
    imageRef,
    credentialMapping: { "registry.example/app": { nodePodsAccessible: true } },
    ...change,
  };
  put(root, `image_manager/pulled/${pullFile(imageRef)}`, JSON.stringify(record), 0o600);
}

/** Returns the time of its file. */
export function pullIntent(root: string, image: string): Instant {
  const intent = { kind: "ImagePullIntent", apiVersion: "kubelet.config.k8s.io/v1beta1", image };
  const file = put(root, `image_manager/pulling/${pullFile(image)}`, JSON.stringify(intent), 0o600);
  return instant(lstatSync(file, { bigint: true }).mtimeNs);
}
