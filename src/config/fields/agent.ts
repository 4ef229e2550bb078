/** Flags for directories, periods, and the outputs of the agent. */
import {
  CONFIGURED,
  DECIDING,
  type FieldEntry,
  PODS,
  REMOVING,
  REPLAYED,
  RUNTIME,
  WITH_STATE,
} from "../field.ts";
import {
  address,
  boolean,
  choice,
  duration,
  integer,
  optional,
  path,
  relativePath,
} from "../types.ts";

const PERIOD = duration("10ms");

export const directoryFields = {
  podLogsDir: {
    type: path("directory"),
    default: "/var/log/pods",
    help: "directory of pod logs",
    doc: "crigc touches only entries named `NAMESPACE_NAME_UID`.",
    commands: PODS,
    kubelet: true,
  },
  containerLogsDir: {
    type: path("directory"),
    default: "/var/log/containers",
    help: "directory of links to container logs",
    doc: "crigc removes dangling links of containers that the runtime reports as removed or exited.",
    commands: PODS,
  },
  rootDir: {
    type: optional(path("directory")),
    defaultWords: "the kubelet's own, /var/lib/kubelet if it exists, else /",
    help: "root directory of the kubelet; its filesystem is nodefs",
    doc: "Has the directory `pods`. The kubelet's own comes from its command line, unit or files.",
    commands: RUNTIME,
  },
  stateDir: {
    type: path("directory"),
    default: "/var/lib/crigc",
    help: "directory of ledger, history and hold",
    doc: "At most about 100 MB. Each runtime of a node needs its own; otherwise images stay too young.",
    commands: WITH_STATE,
  },
  runDir: {
    type: path("directory"),
    default: "/run/crigc",
    help: "directory of the agent's control socket",
    doc: "Also holds the hold if the state directory cannot be written.",
    commands: [...DECIDING, "status", "hold", "release", "doctor"],
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const paceFields = {
  imageGCPeriod: {
    type: PERIOD,
    default: "5m",
    help: "time between image GC passes",
    doc: "The kubelet's is fixed at 5m.",
    commands: REPLAYED,
  },
  imageDetectionPeriod: {
    type: PERIOD,
    default: "5m",
    help: "time between checks of which images are in use",
    doc: "A gap between observations counts as unused time for at most twice this.",
  },
  imageCachePeriod: {
    type: PERIOD,
    default: "30s",
    help: "time between image lists for status and metrics",
    doc: "Never used for a decision.",
    commands: ["run"],
  },
  containerGCPeriod: {
    type: PERIOD,
    default: "1m",
    help: "time between container GC passes",
    doc: "Containers, sandboxes and logs.",
    commands: ["run"],
  },
  pressurePeriod: {
    type: PERIOD,
    default: "10s",
    help: "longest time between checks of disk pressure",
    doc: "Near a threshold, down to 500 ms.",
    commands: REPLAYED,
  },
  bootGrace: {
    type: duration("0s"),
    default: "5m",
    help: "grace period after a boot, without removals",
    doc: "Also after all containers vanished at once. Counts observed time. 0s: none.",
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const agentFields = {
  metricsBindAddress: {
    type: optional(address),
    defaultWords: "off",
    help: "address of /metrics, /healthz, /readyz, such as 127.0.0.1:9419",
    doc: "The control socket always serves them.",
    commands: ["run"],
  },
  eventHook: {
    type: optional(path("file")),
    help: "executable that receives warning events as JSON on stdin",
    doc: "At most two at a time, for 10 s each.",
    commands: REMOVING,
  },
  compat: {
    type: choice("none", "kubelet"),
    default: "none",
    help: "make the kubelet's decisions",
    doc: "`kubelet` implies `--space-accounting reported`, `--when-futile collect`, `--boot-grace 0s` and `--collect-foreign`; contradicting flags are rejected.",
  },
  dryRun: {
    type: boolean,
    default: "false",
    help: "report what would be done and change nothing",
    doc: "In a configuration file it applies to `run` and `gc` only.",
    commands: REMOVING,
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const outputFields = {
  config: {
    type: optional(relativePath("file")),
    defaultWords: "/etc/crigc/crigc.yaml if it exists",
    help: "configuration file, YAML or JSON",
    doc: "A `CrigcConfiguration` or `KubeletConfiguration`. A named file must exist.",
    commands: CONFIGURED,
    outsideFiles: true,
  },
  configDir: {
    type: optional(relativePath("directory")),
    defaultWords: "/etc/crigc/conf.d if it exists",
    help: "directory of drop-ins: *.yaml, *.yml, *.json, *.conf",
    doc: "Merged over the file in the order of their names.",
    commands: CONFIGURED,
    outsideFiles: true,
  },
  "logging.format": {
    type: choice("text", "json"),
    default: "text",
    help: "format of the log",
    doc: "`json` has the ID and timed steps of each pass.",
    commands: REMOVING,
  },
  "logging.verbosity": {
    flag: "v",
    type: integer(0, 5),
    default: "2",
    placeholder: "LEVEL",
    help: "verbosity of the log, 0 to 5",
    doc: "0 logs only warnings and errors, 5 explains every image.",
    commands: REMOVING,
  },
} satisfies Readonly<Record<string, FieldEntry>>;
