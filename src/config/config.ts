/** The configuration in the units of the model, with the source of each value. */
import type { Compat, Limits } from "../model/limits.ts";
import type { LoopName } from "../model/pass.ts";
import type { KubeletClient } from "../model/ports.ts";
import { type Duration, duration, hours, toMs } from "../model/time.ts";
import type { FieldName, Values } from "./fields.ts";
import { aboveKubelet, type KubeletOnNode } from "./kubelet/above-kubelet.ts";
import type { Merged, Sourced } from "./source/merge.ts";
import { type Validated, validated } from "./validate.ts";
import type { Written } from "./written.ts";

export interface Paths {
  readonly stateDir: string;
  readonly runDir: string;
  readonly podLogsDir: string;
  readonly containerLogsDir: string;
  /** `null`: `/var/lib/kubelet` if it exists, else `/`. */
  readonly rootDir: string | null;
  readonly keepDir: string;
  /** Whether the keep directory is configured, so that it must exist. */
  readonly keepDirNamed: boolean;
}

export interface Config {
  readonly limits: Limits;
  /** `unix:///…`; `null`: search for the runtime, and use it as image service. */
  readonly endpoints: { readonly runtime: string | null; readonly image: string | null };
  readonly requestTimeout: Duration;
  /** Pauses of the agent's loops, in milliseconds. */
  readonly periods: Readonly<Record<LoopName, number>>;
  readonly paths: Paths;
  readonly keepPatterns: readonly string[];
  readonly podSource: Values["podSource"];
  readonly kubelet: KubeletClient;
  readonly metricsBindAddress: string | null;
  readonly eventHook: string | null;
  readonly logging: { readonly format: "text" | "json"; readonly verbosity: number };
  readonly compat: Compat;
  readonly dryRun: boolean;
  /** Every file read, in merge order. */
  readonly files: readonly string[];
  /** By configuration-file name. */
  readonly values: Readonly<Record<FieldName, Sourced>>;
  /** After a reload: fields whose new value waits for a restart. */
  readonly waiting: readonly FieldName[];
  readonly warnings: readonly string[];
}

/** Merges what operators wrote with what is found on the node; `kubelet`: `null` if there is none. */
export function configOf(written: Written, kubelet: KubeletOnNode | null): Config {
  const merged = aboveKubelet(written.merged, written.isOfAgent ? null : kubelet);
  const checked = validated(merged);
  const { values } = checked;
  return {
    limits: limitsOf(checked, merged),
    endpoints: { runtime: values.containerRuntimeEndpoint, image: values.imageServiceEndpoint },
    requestTimeout: values.runtimeRequestTimeout,
    periods: periodsOf(values),
    paths: pathsOf(values, merged),
    keepPatterns: values.keep,
    podSource: values.podSource,
    kubelet: kubeletClientOf(values),
    metricsBindAddress: values.metricsBindAddress,
    eventHook: values.eventHook,
    logging: { format: values["logging.format"], verbosity: values["logging.verbosity"] },
    compat: values.compat,
    dryRun: values.dryRun,
    files: written.files,
    values: withImplied(merged, values),
    waiting: written.waiting,
    warnings: [...written.warnings, ...checked.warnings],
  };
}

function limitsOf({ values, thresholds }: Validated, merged: Merged): Limits {
  const { compat } = values;
  const asKubelet = compat === "kubelet";
  return {
    images: {
      highPercent: values.imageGCHighThresholdPercent,
      lowPercent: values.imageGCLowThresholdPercent,
      minimumAge: values.imageMinimumGCAge,
      maximumAge: values.imageMaximumGCAge,
      inodeHighPercent: values.imageGCInodeHighThresholdPercent,
      inodeLowPercent: values.imageGCInodeLowThresholdPercent,
      storeBudgetBytes: values.imageStoreBudget,
      maximumImages: values.maxImages,
      keepLoaded: values.keepLoaded,
      keepPerRepository: values.keepPerRepository ?? 0,
      infraImages: values.podInfraContainerImage,
      whenFutile: asKubelet ? "collect" : values.whenFutile,
      accounting: asKubelet ? "reported" : values.spaceAccounting,
      maximumRemovals: values.maxRemovalsPerPass,
      removalInterval: values.removalInterval,
      compat,
    },
    containers: {
      minimumAge: values.minimumContainerTTLDuration,
      maximumPerPodContainer: values.maximumDeadContainersPerContainer,
      maximumContainers: values.maximumDeadContainers,
      stopGraceMax:
        asKubelet && !isGiven(merged.maxStopGracePeriod)
          ? KUBELET_GRACE
          : values.maxStopGracePeriod,
      collectForeign: asKubelet || values.collectForeign,
      compat,
    },
    memory: {
      detectionPeriod: values.imageDetectionPeriod,
      imageGcPeriod: values.imageGCPeriod,
      bootGrace: asKubelet ? duration(0n) : values.bootGrace,
      deadPodTtl: values.deadPodTTL,
      compat,
    },
    pressure: {
      thresholds: thresholds.thresholds,
      transitionPeriod: values.evictionPressureTransitionPeriod,
    },
  };
}

/** The kubelet has no limit; this is longer than anybody intends. */
const KUBELET_GRACE = hours(24);

const isGiven = ({ source }: Sourced): boolean => source !== "default";

/** Settings that `--compat kubelet` implies appear with their effective values. */
function withImplied(merged: Merged, values: Values): Merged {
  if (values.compat !== "kubelet") return merged;
  const { source, from } = merged.compat;
  return {
    ...merged,
    spaceAccounting: { value: "reported", source, from },
    whenFutile: { value: "collect", source, from },
    bootGrace: { value: 0n, source, from },
    collectForeign: { value: true, source, from },
    ...(isGiven(merged.maxStopGracePeriod)
      ? {}
      : { maxStopGracePeriod: { value: KUBELET_GRACE, source, from } }),
  };
}

const periodsOf = (values: Values): Config["periods"] => ({
  "image-gc": toMs(values.imageGCPeriod),
  "image-detection": toMs(values.imageDetectionPeriod),
  "image-cache": toMs(values.imageCachePeriod),
  "container-gc": toMs(values.containerGCPeriod),
  pressure: toMs(values.pressurePeriod),
});

const pathsOf = (values: Values, merged: Merged): Paths => ({
  stateDir: values.stateDir,
  runDir: values.runDir,
  podLogsDir: values.podLogsDir,
  containerLogsDir: values.containerLogsDir,
  rootDir: values.rootDir,
  keepDir: values.keepDir,
  keepDirNamed: merged.keepDir.source !== "default",
});

const kubeletClientOf = (values: Values): KubeletClient => ({
  endpoint: values.kubeletEndpoint,
  caFile: values.kubeletCAFile,
  clientCertFile: values.kubeletClientCert,
  clientKeyFile: values.kubeletClientKey,
  tokenFile: values.kubeletTokenFile,
});
