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

export function socketOf(state: string): string {
  return `${state}/containerd.sock`;
}

/** 1.x reads version 2. 2.1 reads version 3, where CRI is two plugins and the sandbox image is a pinned image. */
export function containerdToml(config: ContainerdConfig): string {
  const cri = config.release === "2.1" ? criVersion3(config) : criVersion2(config);
  return `${common(config)}\n${cri}\n`;
}

function common(config: ContainerdConfig): string {
  return `version = ${config.release === "2.1" ? 3 : 2}
root = ${quoted(config.root)}
state = ${quoted(config.state)}
# They look for kernel modules and devices that no test needs.
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.tracing",
  "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.nri.v1.nri",
]

[grpc]
  address = ${quoted(socketOf(config.state))}

[plugins."io.containerd.internal.v1.opt"]
  path = ${quoted(`${config.state}/opt`)}
`;
}

function criVersion2(config: ContainerdConfig): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `[${cri}]
  sandbox_image = ${quoted(config.sandboxImage)}
  stats_collect_period = ${config.statsPeriodSeconds}
${hostLimits}
[${cri}.cni]
  bin_dir = ${quoted(`${config.state}/no-cni/bin`)}
  conf_dir = ${quoted(`${config.state}/no-cni/net.d`)}
${runcRuntime(cri, config)}`;
}

function criVersion3(config: ContainerdConfig): string {
  const runtime = 'plugins."io.containerd.cri.v1.runtime"';
  return `[plugins."io.containerd.cri.v1.images"]
  stats_collect_period = ${config.statsPeriodSeconds}
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = ${quoted(config.sandboxImage)}

[${runtime}]
${hostLimits}
[${runtime}.cni]
  bin_dirs = [${quoted(`${config.state}/no-cni/bin`)}]
  conf_dir = ${quoted(`${config.state}/no-cni/net.d`)}
${runcRuntime(runtime, config)}`;
}

/** A sandboxed machine may refuse a negative oom_score_adj, which pods on the host network otherwise ask for. */
const hostLimits = `  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
`;

function runcRuntime(section: string, config: ContainerdConfig): string {
  return `[${section}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[${section}.containerd.runtimes.runc.options]
  BinaryName = ${quoted(config.programs.runc)}
  Root = ${quoted(`${config.state}/runc`)}
`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
