/** The configuration in the units of the model, with the source of each value. */
import { ConfigError, type ConfigIssue, configIssue } from "../model/errors.ts";
import type { Limits } from "../model/limits.ts";
import type { LoopName } from "../model/pass.ts";
import type { KubeletOptions } from "../model/ports.ts";
import { toMs } from "../model/time.ts";
import { thresholdsOf, whyIgnored, withoutGrace } from "./eviction.ts";
import {
  dashed,
  type FieldName,
  fieldNames,
  fieldOf,
  isFieldName,
  namedInFull,
  type Values,
} from "./fields.ts";
import { type FlagText, type Settings, shown, type Source } from "./settings.ts";

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
  const settings = withThese(given, impliedBy(given));
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

/** Replaces values and their sources. */
const withThese = (
  { values, sources }: Settings,
  these: readonly { readonly name: FieldName; readonly value: unknown; readonly source: Source }[],
): Settings => ({
  values: { ...values, ...Object.fromEntries(these.map(({ name, value }) => [name, value])) },
  sources: { ...sources, ...Object.fromEntries(these.map(({ name, source }) => [name, source])) },
});

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

/** Flags of a command that differ from those of the agent that runs it. */
export const processIssues = (
  agent: Written,
  command: Written,
  flags: readonly FlagText[],
): readonly ConfigIssue[] =>
  flags.flatMap(({ name, written, text }) => {
    const theirs = shown(agent.settings, name);
    if (fieldOf(name).ofProcess !== true || shown(command.settings, name) === theirs) return [];
    const message = `the running agent has ${theirs}; leave the flag out, or restart the agent with it`;
    return [configIssue(written, text, message)];
  });

/** Reached before a kubelet's defaults, so that crigc frees space before the kubelet collects images or evicts pods. */
const BESIDE = {
  imageGCHighThresholdPercent: 75,
  imageGCLowThresholdPercent: 70,
  evictionHard: {
    "nodefs.available": "15%",
    "nodefs.inodesFree": "10%",
    "imagefs.available": "20%",
    "imagefs.inodesFree": "10%",
  },
} as const satisfies Partial<Values>;

/** With the default thresholds beside a kubelet. */
function besideKubelet(settings: Settings): Settings {
  const isOwn = (name: FieldName): boolean =>
    fieldOf(name).implies?.[shown(settings, name)] !== undefined;
  if (fieldNames.some(isOwn)) return settings;
  const source: Source = { kind: "kubelet", from: ["beside a kubelet"] };
  const unset = Object.entries(BESIDE).flatMap(([name, value]) =>
    isFieldName(name) && settings.sources[name].kind === "default" ? [{ name, value, source }] : [],
  );
  return withThese(settings, unset);
}

/** Values that contradict each other; each issue names both values and their sources. */
function contradictions(settings: Settings): readonly ConfigIssue[] {
  const { values } = settings;
  const { imageMaximumGCAge: maximum, imageMinimumGCAge: minimum } = values;
  const [low, high] = ["imageGCLowThresholdPercent", "imageGCHighThresholdPercent"] as const;
  const [cert, key] = ["kubeletClientCert", "kubeletClientKey"] as const;
  const companions = [[cert, key] as const, [key, cert] as const];
  return [
    ...(values[low] < values[high] ? [] : [orderIssue(settings, [low, "be below", high])]),
    ...(maximum === 0n || maximum > minimum
      ? []
      : [orderIssue(settings, ["imageMaximumGCAge", "be 0s or above", "imageMinimumGCAge"])]),
    ...companions
      .filter(([name, other]) => values[name] !== null && values[other] === null)
      .map(([name, other]) =>
        issueOf(settings, name, `has no effect without ${namedInFull(other)}; set both`),
      ),
    ...withoutGrace(values).map((signal) => ({
      source: placeOf(settings, "evictionSoft"),
      text: signal,
      message: `the soft threshold ${signal} has no grace period; set one with ${namedInFull("evictionSoftGracePeriod")}`,
    })),
    ...impliedBy(settings)
      .filter(({ name, value }) => !isDefault(settings, name) && values[name] !== value)
      .map(({ by, name }) => {
        const other = `${nameOf(settings, by)} ${shown(settings, by)}${fromOf(settings, by)}`;
        return issueOf(settings, name, `contradicts ${other}; leave one of them out`);
      }),
  ];
}

/** Values that other fields imply (`--compat`), with the source of the implying field. */
const impliedBy = (settings: Settings) =>
  fieldNames.flatMap((by) =>
    Object.entries(fieldOf(by).implies?.[shown(settings, by)] ?? {}).flatMap(([name, value]) =>
      isFieldName(name) ? [{ by, name, value, source: settings.sources[by] }] : [],
    ),
  );

/** Signals that crigc ignores. */
const warningsOf = (settings: Settings): readonly string[] =>
  (["evictionHard", "evictionSoft"] as const).flatMap((name) =>
    Object.keys(settings.values[name]).flatMap((signal) => {
      const why = whyIgnored(signal);
      return why === null ? [] : [`${placeOf(settings, name)}: ${signal} ${why}`];
    }),
  );

function orderIssue(
  settings: Settings,
  [name, must, other]: readonly [FieldName, must: string, FieldName],
): ConfigIssue {
  const than = shown(settings, other);
  // Blames the value that was set; a default is not to blame.
  if (!isDefault(settings, name) || isDefault(settings, other)) {
    const bound = `${nameOf(settings, other)}, which is ${than}${fromOf(settings, other)}`;
    return issueOf(settings, name, `must ${must} ${bound}`);
  }
  const message = `${name} is ${shown(settings, name)} by default and must ${must} ${than}; set it too`;
  return configIssue(placeOf(settings, other), than, message);
}

function issueOf(settings: Settings, name: FieldName, message: string): ConfigIssue {
  const text = shown(settings, name);
  return { source: placeOf(settings, name), text, message: `${name} is ${text} and ${message}` };
}

/** As the operator wrote it, or may write it. */
const nameOf = ({ sources }: Settings, name: FieldName): string =>
  ["flag", "default"].includes(sources[name].kind) ? dashed(fieldOf(name).flag) : name;

/** Where the value is from, unless its name says it. */
function fromOf(settings: Settings, name: FieldName): string {
  if (settings.sources[name].kind === "flag") return "";
  return isDefault(settings, name) ? " by default" : ` (${placeOf(settings, name)})`;
}

const isDefault = ({ sources }: Settings, name: FieldName): boolean =>
  ["default", "kubelet"].includes(sources[name].kind);

const placeOf = ({ sources }: Settings, name: FieldName): string =>
  sources[name].from.at(-1) ?? "default";
