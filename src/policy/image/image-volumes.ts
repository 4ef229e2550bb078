/** Which runtimes can mount an image as a volume. On others, a container's mounts do not matter. */
import type { RuntimeInfo } from "../../model/snapshot.ts";

/** The first version that mounts images. Any other runtime is assumed to. */
const FIRST: Readonly<Record<string, readonly [number, number]>> = {
  containerd: [2, 1],
  "cri-o": [1, 31],
};

/** An unknown version counts as one that mounts images. */
export function imageVolumesSupported(runtime: Pick<RuntimeInfo, "name" | "version">): boolean {
  const first = FIRST[runtime.name.toLowerCase()];
  const match = /^v?(\d+)\.(\d+)(?:\D|$)/.exec(runtime.version);
  if (first === undefined || match === null) return true;
  const [major, minor] = [Number(match[1]), Number(match[2])];
  return major > first[0] || (major === first[0] && minor >= first[1]);
}
