/** The configuration in the units of the model, with the source of each value. */
import { ConfigError, type ConfigIssue } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";
import type { LoopName } from "../model/pass.ts";
import type { KubeletClient } from "../model/ports.ts";
import { duration, hours, toMs } from "../model/time.ts";
import { thresholdsOf } from "./eviction.ts";
import { type FieldName, fieldNames, namedInFull, type Values } from "./fields.ts";
import { aboveKubelet, type KubeletOnNode } from "./kubelet.ts";
import { type Settings, shown } from "./settings.ts";
import { contradictions, warningsOf } from "./validate.ts";

export interface Config extends Settings {
  readonly limits: Limits;
  /** Pauses of the agent's loops, in milliseconds. */
  readonly periods: Readonly<Record<LoopName, number>>;
  readonly kubelet: KubeletClient;
  /** Every file read, in merge order. */
  readonly files: readonly string[];
  /** After a reload: fields whose new value waits for a restart. */
  readonly waiting: readonly FieldName[];
  readonly warnings: readonly string[];
}

/** What operators wrote in files, variables and flags: valid by itself, before anything of the node is merged in. */
export interface Written extends Pick<Config, "files" | "waiting" | "warnings"> {
  readonly settings: Settings;
  /** Whether it has the values of a running agent, which has looked at the node itself. */
  readonly isOfAgent: boolean;
}

/** Merges what operators wrote with what is found on the node; `kubelet`: `null` if there is none. */
export function configOf(written: Written, kubelet: KubeletOnNode | null): Config {
  const settings = withImplied(aboveKubelet(written.settings, written.isOfAgent ? null : kubelet));
  const { values } = settings;
  return {
    ...settings,
    limits: limitsOf(values),
    periods: {
      "image-gc": toMs(values.imageGCPeriod),
      "image-detection": toMs(values.imageDetectionPeriod),
      "image-cache": toMs(values.imageCachePeriod),
      "container-gc": toMs(values.containerGCPeriod),
      pressure: toMs(values.pressurePeriod),
    },
    kubelet: {
      endpoint: values.kubeletEndpoint,
      caFile: values.kubeletCAFile,
      clientCertFile: values.kubeletClientCert,
      clientKeyFile: values.kubeletClientKey,
      tokenFile: values.kubeletTokenFile,
    },
    files: written.files,
    waiting: written.waiting,
    warnings: [...written.warnings, ...warningsOf(settings)],
  };
}

/** What `--compat kubelet` implies, of the grace period only the default. */
export const KUBELET_IMPLIES = {
  spaceAccounting: "reported",
  whenFutile: "collect",
  bootGrace: duration(0n),
  collectForeign: true,
  // The kubelet has no limit; this is longer than anybody intends.
  maxStopGracePeriod: hours(24),
} as const;

/** With the settings that `--compat kubelet` implies, which appear with its source. */
function withImplied({ values, sources }: Settings): Settings {
  if (values.compat !== "kubelet") return { values, sources };
  const { maxStopGracePeriod, ...always } = KUBELET_IMPLIES;
  const implied =
    sources.maxStopGracePeriod.kind === "default" ? { ...always, maxStopGracePeriod } : always;
  const names = Object.keys(implied).map((name) => [name, sources.compat]);
  return {
    values: { ...values, ...implied },
    sources: { ...sources, ...Object.fromEntries(names) },
  };
}

function limitsOf(values: Values): Limits {
  const { compat } = values;
  return {
    images: {
      highPercent: values.imageGCHighThresholdPercent,
      lowPercent: values.imageGCLowThresholdPercent,
      minimumAge: values.imageMinimumGCAge,
      maximumAge: values.imageMaximumGCAge,
      inodeHighPercent: values.imageGCInodeHighThresholdPercent,
      inodeLowPercent: values.imageGCInodeLowThresholdPercent,
      storeBudgetBytes: values.imageStoreBudget,
      maxImages: values.maxImages,
      keepLoaded: values.keepLoaded,
      keepPreloaded: values.keepPreloaded,
      keepPerRepository: values.keepPerRepository ?? 0,
      order: values.imageOrder,
      infraImages: values.podInfraContainerImage,
      whenFutile: values.whenFutile,
      accounting: values.spaceAccounting,
      maxRemovalsPerPass: values.maxRemovalsPerPass,
      removalInterval: values.removalInterval,
      compat,
    },
    containers: {
      minimumAge: values.minimumContainerTTLDuration,
      maximumPerPodContainer: values.maximumDeadContainersPerContainer,
      maximumContainers: values.maximumDeadContainers,
      stopGraceMax: values.maxStopGracePeriod,
      collectForeign: values.collectForeign,
      compat,
    },
    memory: {
      detectionPeriod: values.imageDetectionPeriod,
      imageGcPeriod: values.imageGCPeriod,
      bootGrace: values.bootGrace,
      deadPodTtl: values.deadPodTTL,
      compat,
    },
    pressure: {
      thresholds: thresholdsOf(values),
      transitionPeriod: values.evictionPressureTransitionPeriod,
    },
  };
}

const BOUND_BY_CONNECTION: readonly FieldName[] = [
  "containerRuntimeEndpoint",
  "imageServiceEndpoint",
  "runtimeRequestTimeout",
];

/** Bound at the start: directories, addresses and modes. */
const BOUND_BY_START: readonly FieldName[] = [
  "podLogsDir",
  "containerLogsDir",
  "rootDir",
  "stateDir",
  "runDir",
  "metricsBindAddress",
  "compat",
  "dryRun",
];

/** `next` for a process that runs with `inForce`; throws `ConfigError` if it contradicts a bound value. */
export function boundTo(inForce: Written, next: Written, isConnected: boolean): Written {
  const bound = [...(isConnected ? BOUND_BY_CONNECTION : []), ...BOUND_BY_START];
  const waiting = differences(inForce, next).filter((name) => bound.includes(name));
  const withBound = <All extends object>(old: All, fresh: All): All => ({
    ...fresh,
    ...Object.fromEntries(
      Object.entries(old).filter(([name]) => waiting.some((it) => it === name)),
    ),
  });
  const { values, sources } = inForce.settings;
  const settings = {
    values: withBound(values, next.settings.values),
    sources: withBound(sources, next.settings.sources),
  };
  const why = `${waiting.map(namedInFull).join(", ")} would take effect only after a restart: restart the agent`;
  throwIfAny(contradictions(settings).map((it) => ({ ...it, message: `${it.message}; ${why}` })));
  return { ...next, settings, waiting };
}

/** Fields with different values. */
export const differences = (one: Written, other: Written): readonly FieldName[] =>
  fieldNames.filter((name) => shown(one.settings, name) !== shown(other.settings, name));

export function throwIfAny(issues: readonly ConfigIssue[]): void {
  if (issues.length > 0) throw new ConfigError(issues);
}
