// A node for tests: a real containerd whose state lies on disks of its own.
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";

import { containerdToml, socketOf } from "./config.ts";
import { type Answer, connectCri, type CriClient } from "./cri.ts";
import { type Disk, type DiskOptions, mountDisk } from "./disk.ts";
import { loadImages } from "./import.ts";
import { programsOf, type Release, type ReleasePrograms } from "./release.ts";
import { makeNodeDirectory, tearDown, tearDownAbandoned } from "./teardown.ts";
import { until } from "./until.ts";

export interface NodeOptions {
  /** Pod logs, the kubelet's directory and the collector's state; images too unless they have a disk. */
  readonly disk?: DiskOptions;
  /** A disk for containerd's root: content, metadata, snapshots, writable layers. */
  readonly imageDisk?: DiskOptions;
  /** Default registry.k8s.io/pause:3.9. */
  readonly sandboxImage?: string;
  /** Default 1; containerd's own is 10. ImageFsInfo says 0 used bytes until the first period has passed. */
  readonly statsPeriodSeconds?: number;
}

/**
 * Measured on Debian's 1.6.20, 1.7.24 and 2.1.9, all alike unless said:
 * - From start to the first pod takes 0.3 s; tearing down 0.2 s.
 * - Container.image_id is empty in lists; image_ref is the digest of the image's configuration.
 * - Status(verbose) names the sandbox image on 1.6 and 1.7 (config.sandboxImage), not on 2.1.
 * - The imported sandbox image is pinned on 1.7 and 2.1, which know it from their configuration. 1.6 has no pins at
 *   all: a label io.cri-containerd.pinned is not seen there.
 * - An image's size is that of its blobs. Removing it frees the blobs and the unpacked layers before the answer,
 *   whatever it shares stays: random layers free 2.0 times their size, repeated ones far more.
 * - An image that was imported with --digests is never freed through CRI: RemoveImage forgets it, but looks for its
 *   \`import-DATE@sha256:…\` name as \`docker.io/library/import-DATE@sha256:…\`, and so leaves it in containerd's store.
 *   It comes back to CRI's list, without a tag, when containerd starts again; then removing it frees it.
 * - overlayfs's async_remove changes nothing for images: 47 MiB in 6000 files were free when RemoveImage answered.
 * - Removing an image that a running container uses, or has mounted (2.1), is not refused.
 * - The garbage collector's schedule_delay (0 s by default) delays the answer of RemoveImage, not the freeing after it.
 * - Loading 100 MiB of random layers takes 1.0 to 1.5 s: prefer small disks where the size does not matter.
 * - CRI learns of images that are imported or removed past it by event, some milliseconds later.
 */
export interface ContainerdNode extends AsyncDisposable {
  readonly release: Release;
  readonly programs: ReleasePrograms;
  /** Everything of the node lies below it. */
  readonly directory: string;
  readonly socket: string;
  /** The socket as the program's flag takes it. */
  readonly endpoint: string;
  readonly disk: Disk;
  /** The node's disk where images have none of their own. */
  readonly imageDisk: Disk;
  readonly podLogsDirectory: string;
  readonly containerLogsDirectory: string;
  /** As the kubelet's: empty, so that it names no pod and shows no kubelet. */
  readonly rootDirectory: string;
  /** For the collector's ledger, on the node's disk. */
  readonly stateDirectory: string;
  /** For the collector's control socket, off every disk. */
  readonly runDirectory: string;
  /** For keep rules, off every disk; empty. */
  readonly keepDirectory: string;
  readonly sandboxImage: string;
  readonly cri: CriClient;
  /** Ends containerd alone, as a crash would; pods run on. */
  readonly killRuntime: () => Promise<void>;
  /** Starts it again and waits until it answers. */
  readonly startRuntime: () => Promise<void>;
  /** Leaves nothing behind; twice does no harm. */
  readonly stop: () => Promise<void>;
}

/** Starts a node and waits until it can run pods. Nodes that killed test runs have left are torn down first. */
export async function startNode(
  release: Release,
  options: NodeOptions = {},
): Promise<ContainerdNode> {
  const programs = programsOf(release);
  if (process.getuid?.() !== 0) {
    throw new Error("a real runtime needs loop devices and namespaces: run these tests as root");
  }
  await tearDownAbandoned();
  const directory = makeNodeDirectory();
  try {
    const node = await makeNode(directory, programs, { ...options, release });
    await node.startRuntime();
    // As the real one, it does nothing until it is killed.
    const command = ["/bin/busybox", "sleep", "1000000"];
    await loadImages(node, [{ names: [node.sandboxImage], command, identity: "pause" }]);
    return node;
  } catch (cause) {
    await tearDown(directory);
    throw cause;
  }
}

async function makeNode(
  directory: string,
  programs: ReleasePrograms,
  options: NodeOptions & { readonly release: Release },
): Promise<ContainerdNode> {
  const disk = await mountDisk(directory, "node", options.disk);
  const imageDisk = options.imageDisk
    ? await mountDisk(directory, "images", options.imageDisk)
    : disk;
  const sandboxImage = options.sandboxImage ?? "registry.k8s.io/pause:3.9";
  const state = `${directory}/state`;
  const toml = containerdToml({
    release: options.release,
    programs,
    root: `${imageDisk.path}/containerd`,
    state,
    sandboxImage,
    statsPeriodSeconds: options.statsPeriodSeconds ?? 1,
  });
  writeFileSync(`${directory}/containerd.toml`, toml);
  const socket = socketOf(state);
  const cri = connectCri(socket);
  const runtime = runtimeProcess(directory, programs, cri);
  const stop = async (): Promise<void> => {
    cri.close();
    await tearDown(directory);
  };
  return {
    release: options.release,
    programs,
    directory,
    socket,
    endpoint: `unix://${socket}`,
    disk,
    imageDisk,
    ...makeNodeDirectories(directory, disk),
    sandboxImage,
    cri,
    killRuntime: runtime.kill,
    startRuntime: runtime.start,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function makeNodeDirectories(directory: string, disk: Disk) {
  const directories = {
    podLogsDirectory: `${disk.path}/log/pods`,
    containerLogsDirectory: `${disk.path}/log/containers`,
    rootDirectory: `${disk.path}/kubelet`,
    stateDirectory: `${disk.path}/crigc`,
    runDirectory: `${directory}/run`,
    keepDirectory: `${directory}/keep.d`,
  } as const;
  for (const path of Object.values(directories)) mkdirSync(path, { recursive: true });
  return directories;
}

/** containerd as a child of the test, its words in a file beside the disks. */
function runtimeProcess(directory: string, programs: ReleasePrograms, cri: CriClient) {
  let child: ReturnType<typeof Bun.spawn> | undefined;
  return {
    start: async () => {
      const log = openSync(`${directory}/containerd.log`, "a");
      const running = Bun.spawn([programs.containerd, "--config", `${directory}/containerd.toml`], {
        env: { PATH: `${programs.binDirectory}:/usr/sbin:/usr/bin:/sbin:/bin` },
        stdin: "ignore",
        stdout: log,
        stderr: log,
      });
      child = running;
      await until(`containerd of ${directory} is ready`, 30_000, async () => {
        if (running.exitCode !== null) {
          const words = readFileSync(`${directory}/containerd.log`, "utf8").slice(-2_000);
          throw new Error(`containerd ended with ${running.exitCode}: ${words}`);
        }
        return isReady(cri);
      });
    },
    kill: async () => {
      child?.kill("SIGKILL");
      await child?.exited;
    },
  };
}

/** The network condition stays false: there is no CNI, and pods on the host's network need none. */
const isReady = (cri: CriClient): Promise<boolean> =>
  cri.call("Status", {}, 2_000).then(
    ({ status }) => status.conditions.some((it: Answer) => it.type === "RuntimeReady" && it.status),
    () => false,
  );
