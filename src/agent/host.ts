/** The machine as observed, built from the configuration. */

import type { Config } from "../config/config.ts";
import type { DiskReader, HostReader } from "../model/ports.ts";
import { toMs } from "../model/time.ts";
import { readClocks, timer } from "../node/clock.ts";
import { defaultRootDirectory, diskOf } from "../node/disk.ts";
import { readKeepRules, steadyKeepRules } from "../node/keep-files.ts";
import { readContainerMarks } from "../node/kubelet/container-marks.ts";
import { MANIFEST_DIRECTORIES } from "../node/kubelet/pod-documents.ts";
import { readPods } from "../node/kubelet/pods.ts";
import { PullRecords } from "../node/kubelet/pull-records.ts";
import type { Kubelet } from "../node/kubelet/settings.ts";
import { logReader } from "../node/log-reader.ts";
import { parseKeepPattern } from "../policy/keep/keep-pattern.ts";
import { parseKeepFile } from "../policy/keep/keep.ts";

export interface Host {
  readonly disk: DiskReader;
  readonly reader: HostReader;
}

type KubeletPaths = Pick<Kubelet, "rootDirectory"> & Partial<Pick<Kubelet, "staticPodPath">>;

/** Reads `config` each time, so that a reload applies to the next pass. */
export async function hostOf(
  config: () => Config,
  kubeletOfNode: () => KubeletPaths | null,
  usualRoot: () => Promise<string> = defaultRootDirectory,
): Promise<Host> {
  const first = config();
  let root = first.values.rootDir ?? "/";
  let isOfRunning = false;
  /**
   * Remembers a running kubelet's root directory: while it restarts, the default one says nothing about its pods. Looks
   * for the default one until it exists: on its first boot a node may run crigc before its kubelet.
   */
  const rootDirectory = async (kubelet: KubeletPaths | null): Promise<string> => {
    if (first.values.rootDir !== null) return root;
    const own = kubelet?.rootDirectory ?? null;
    if (own !== null) [root, isOfRunning] = [own, true];
    else if (!isOfRunning && root === "/") root = await usualRoot();
    return root;
  };
  await rootDirectory(kubeletOfNode());
  let pullRecords: PullRecords | null = null;
  const pulls = (): PullRecords => {
    if (pullRecords?.root !== root) pullRecords = new PullRecords(root, () => readClocks().wall);
    return pullRecords;
  };
  let hadKubelet = false;
  let manifestsOfKubelet: string | null = null;
  /** Likewise for the manifests, which that kubelet will run once it is back. */
  const manifestPaths = (kubelet: KubeletPaths | null) => {
    const named = kubelet?.staticPodPath ?? null;
    manifestsOfKubelet = named ?? manifestsOfKubelet;
    const known = manifestsOfKubelet === null ? [] : [manifestsOfKubelet];
    return named === null ? [...known, ...MANIFEST_DIRECTORIES] : known;
  };
  return {
    disk: diskOf(() => root),
    reader: {
      clocks: () => readClocks(),
      keepRules: steadyKeepRules(
        (known) => keepRulesOf(config(), known),
        () => timer.monotonicNs(),
      ),
      pods: async (signal) => {
        const kubelet = kubeletOfNode();
        const source = podSource(config(), await rootDirectory(kubelet));
        const pods = await readPods(
          { ...source, hadKubelet, manifestPaths: manifestPaths(kubelet) },
          signal,
        );
        hadKubelet ||= pods.kind === "none" || pods.source !== "cri";
        return pods;
      },
      // Each pass has looked for the root directory before.
      containerMarks: (pods, isNew) => readContainerMarks(root, pods, isNew),
      pulls: {
        read: (images, isSettled) => pulls().read(images, isSettled),
        intents: () => pulls().intents(),
        records: () => pulls().records(),
      },
      logs: logReader(first.values),
    },
  };
}

/** The current keep rules; `known`: directories that had rules before. */
export const keepRulesOf = (
  config: Config,
  known: readonly string[],
): ReturnType<HostReader["keepRules"]> =>
  readKeepRules({
    directory: config.values.keepDir,
    isNamed: config.sources.keepDir.kind !== "default",
    patterns: config.values.keep,
    infraImages: config.limits.images.infraImages,
    known,
    parseFile: parseKeepFile,
    parsePattern: parseKeepPattern,
  });

const podSource = (config: Config, rootDirectory: string): Parameters<typeof readPods>[0] => ({
  source: config.values.podSource,
  rootDirectory,
  kubelet: { ...config.kubelet, timeoutMs: toMs(config.values.runtimeRequestTimeout) },
});
