// The containerd configuration of a test node, in the version that its release reads.
import type { Release, ReleasePrograms } from "./release.ts";

export interface ContainerdConfig {
  readonly release: Release;
  readonly programs: ReleasePrograms;
  /** containerd's own state: content, metadata and (unless told otherwise) snapshots. Lies on the disk under test. */
  readonly root: string;
  /** Sockets and fifos. Lies off the disk under test, so that a full disk cannot take the runtime down. */
  readonly state: string;
  readonly sandboxImage: string;
  /** How often the sizes of snapshots are read. Until the first time ImageFsInfo says 0 used bytes. */
  readonly statsPeriodSeconds: number;
}

export const socketOf = (state: string): string => `${state}/containerd.sock`;

/** They look for kernel modules and devices that no test needs. */
const DISABLED = [
  ...["aufs", "blockfile", "btrfs", "devmapper", "erofs", "zfs"].map(
    (name) => `io.containerd.snapshotter.v1.${name}`,
  ),
  "io.containerd.internal.v1.tracing",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.nri.v1.nri",
];

const quoted = (value: string | readonly string[]): string => JSON.stringify(value);

/** 1.x reads version 2. 2.1 reads version 3, where CRI is two plugins and the sandbox image is a pinned image. */
export function containerdToml(config: ContainerdConfig): string {
  const { release, programs, root, state } = config;
  const isNew = release === "2.1";
  const cri = `plugins."io.containerd.${isNew ? "cri.v1.runtime" : "grpc.v1.cri"}"`;
  const images = isNew ? 'plugins."io.containerd.cri.v1.images"' : cri;
  const [image, noCni] = [quoted(config.sandboxImage), `${state}/no-cni`];
  const noPrograms = quoted(`${noCni}/bin`);
  return `version = ${isNew ? 3 : 2}
root = ${quoted(root)}
state = ${quoted(state)}
disabled_plugins = ${quoted(DISABLED)}
[grpc]
  address = ${quoted(socketOf(state))}
[plugins."io.containerd.internal.v1.opt"]
  path = ${quoted(`${state}/opt`)}
[${images}]
  stats_collect_period = ${config.statsPeriodSeconds}
${isNew ? `[${images}.pinned_images]\n  sandbox = ${image}\n[${cri}]` : `  sandbox_image = ${image}`}
  # A sandboxed machine may refuse a negative oom_score_adj, which pods on the host network otherwise ask for.
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
[${cri}.cni]
  ${isNew ? `bin_dirs = [${noPrograms}]` : `bin_dir = ${noPrograms}`}
  conf_dir = ${quoted(`${noCni}/net.d`)}
[${cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[${cri}.containerd.runtimes.runc.options]
  BinaryName = ${quoted(programs.runc)}
  Root = ${quoted(`${state}/runc`)}
`;
}
