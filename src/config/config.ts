/** The configuration in the units of the model, with the source of each value. */
import { ConfigError, type ConfigIssue, configIssue } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";
import type { LoopName } from "../model/pass.ts";
import type { KubeletOptions } from "../model/ports.ts";
import { toMs } from "../model/time.ts";
import { thresholdsOf } from "./eviction.ts";
import { type FieldName, type Values } from "./fields.ts";
import { besideKubelet } from "./kubelet.ts";
import { type FlagText, type Settings, shown } from "./settings.ts";
import { contradictions, impliedBy, warningsOf } from "./validate.ts";

export interface Config extends Settings {
  readonly limits: Limits;
  /** Pauses of the agent's loops, in milliseconds. */
  readonly periods: Readonly<Record<LoopName, number>>;
  /** `null`: no `--kubelet-endpoint`. */
  readonly kubelet: KubeletOptions | null;
  /** Every file read, in merge order. */
  readonly files: readonly string[];
  readonly warnings: readonly string[];
}

/** A pass waits no longer for additional uses. */
const KUBELET_TIMEOUT_MS = 10_000;

/** What operators wrote in files, variables and flags: valid by itself, before anything of the node is merged in. */
export interface Written extends Pick<Config, "files" | "warnings"> {
  readonly settings: Settings;
}

/** `isBeside`: whether a kubelet with this root directory is on the node. Throws `ConfigError`. */
export function configOf(written: Written, isBeside: (rootDir: string | null) => boolean): Config {
  const { rootDir } = written.settings.values;
  const given = isBeside(rootDir) ? besideKubelet(written.settings) : written.settings;
  throwIfAny(contradictions(given));
  const settings = withImplied(given);
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
    kubelet:
      values.kubeletEndpoint === null
        ? null
        : {
            endpoint: values.kubeletEndpoint,
            caFile: values.kubeletCAFile,
            clientCertFile: values.kubeletClientCert,
            clientKeyFile: values.kubeletClientKey,
            tokenFile: values.kubeletTokenFile,
            timeoutMs: Math.min(toMs(values.runtimeRequestTimeout), KUBELET_TIMEOUT_MS),
          },
    files: written.files,
    warnings: [...written.warnings, ...warningsOf(settings)],
  };
}

/** With what some settings imply, which appears with the source of these. */
function withImplied(settings: Settings): Settings {
  const { values, sources } = settings;
  const implied = impliedBy(settings);
  return {
    values: { ...values, ...Object.fromEntries(implied.map(({ name, value }) => [name, value])) },
    sources: {
      ...sources,
      ...Object.fromEntries(implied.map(({ name, by }) => [name, sources[by]])),
    },
  };
}

function limitsOf(values: Values): Limits {
  return {
    images: {
      highPercent: values.imageGCHighThresholdPercent,
      lowPercent: values.imageGCLowThresholdPercent,
      minimumAge: values.imageMinimumGCAge,
      maximumAge: values.imageMaximumGCAge,
      storeBudgetBytes: values.imageStoreBudget,
      keepLoaded: values.keepLoaded,
      keepPerRepository: values.keepPerRepository ?? 0,
      infraImages: values.podInfraContainerImage,
    },
    containers: {
      minimumAge: values.minimumContainerTTLDuration,
      maximumPerPodContainer: values.maximumDeadContainersPerContainer,
      maximumContainers: values.maximumDeadContainers,
      collectForeign: values.collectForeign,
    },
    ledger: {
      imageGcPeriod: values.imageGCPeriod,
      bootGrace: values.bootGrace,
      deadPodTtl: values.deadPodTTL,
    },
    pressure: {
      thresholds: thresholdsOf(values),
      transitionPeriod: values.evictionPressureTransitionPeriod,
    },
  };
}

export function throwIfAny(issues: readonly ConfigIssue[]): void {
  if (issues.length > 0) throw new ConfigError(issues);
}

/** About the process, so that a command which an agent runs cannot change them. */
const OF_PROCESS: readonly FieldName[] = [
  "config",
  "configDir",
  "imageServiceEndpoint",
  "stateDir",
  "keepDir",
  "podLogsDir",
  "containerLogsDir",
  "rootDir",
  "podSource",
  "kubeletEndpoint",
  "kubeletCAFile",
  "kubeletClientCert",
  "kubeletClientKey",
  "kubeletTokenFile",
  "metricsBindAddress",
  "imageGCPeriod",
  "imageDetectionPeriod",
  "imageCachePeriod",
  "containerGCPeriod",
  "pressurePeriod",
];

/** Flags of a command that differ from those of the agent that runs it. */
export const processIssues = (
  agent: Written,
  command: Written,
  flags: readonly FlagText[],
): readonly ConfigIssue[] =>
  flags.flatMap(({ name, written, text }) => {
    const theirs = shown(agent.settings, name);
    if (!OF_PROCESS.includes(name) || shown(command.settings, name) === theirs) return [];
    const message = `the running agent has ${theirs}; leave the flag out, or restart the agent with it`;
    return [configIssue(written, text, message)];
  });
