/** `crigc print …`: units, manifests and configuration as text, for images and automation. */

import prometheusRules from "../../agent/prometheus-rules.txt" with { type: "text" };
import type { Config } from "../../config/config.ts";
import { configTemplate } from "../../install/config-template.ts";
import { DEFAULT_BIN_DIRECTORY } from "../../install/layout.ts";
import {
  type BinarySource,
  cloudConfig,
  daemonSet,
  DEFAULT_SOCKET,
  directoryOf,
  placesOf,
  simulateJob,
} from "../../install/manifests.ts";
import { givenSettings, openrcScript, systemdUnit } from "../../install/service.ts";
import { clean } from "../../report/terminal.ts";
import {
  type Command,
  command,
  type CommandContext,
  has,
  type Invocation,
  option,
  textOf,
} from "../command.ts";
import { exit } from "../exit.ts";
import { bad, pathOf } from "./install.ts";
import { SCENARIO_OPTIONS, scenarioArguments } from "./simulate.ts";

type Printer = Pick<Command, "name" | "summary" | "doc"> & {
  readonly options?: Command["options"];
  /** `given`: settings of the command line and of the files that it names. */
  readonly text: (given: Config, context: CommandContext) => string;
};

const printing = ({ text, ...words }: Printer): Command =>
  command({
    ...words,
    readOnly: true,
    run: async (context) => {
      const given = context.given();
      for (const warning of given.warnings) context.stderr(`crigc: warning: ${clean(warning)}\n`);
      context.stdout(text(given, context));
      return exit.done;
    },
  });

const BIN_DIR = option("bin-dir DIR", `directory of the executable [${DEFAULT_BIN_DIRECTORY}]`, {
  completes: "directory",
});

const executableOf = (invocation: Invocation): string =>
  `${pathOf(invocation, "bin-dir") ?? DEFAULT_BIN_DIRECTORY}/crigc`;

const unit = printing({
  name: "print systemd-unit",
  summary: "print the systemd unit that install writes",
  doc: "Other flags and configured settings become flags of the agent.",
  options: [BIN_DIR],
  text: (given, context) =>
    systemdUnit({
      executable: executableOf(context),
      flags: givenSettings(given).flatMap(({ flags }) => flags),
      writable: movedDirectories(given),
    }),
});

const script = printing({
  name: "print openrc-script",
  summary: "print the OpenRC script that install writes",
  doc: "Other flags and configured settings become flags of the agent.",
  options: [BIN_DIR],
  text: (given, context) =>
    openrcScript({
      executable: executableOf(context),
      flags: givenSettings(given).flatMap(({ flags }) => flags),
    }),
});

/** Directories that the agent writes, beyond those that the unit always allows. */
const movedDirectories = ({ values }: Config): readonly string[] =>
  [values.stateDir, values.runDir, values.podLogsDir, values.containerLogsDir].filter(
    (path) => !/^\/(?:var\/log|var\/lib\/crigc|run\/crigc)(?:\/|$)/.test(path),
  );

const template = printing({
  name: "print config",
  summary: "print a configuration file with every setting and its default",
  doc: "All commented out.",
  text: () => configTemplate(),
});

const cloud = printing({
  name: "print cloud-config",
  summary: "print a cloud-config that installs the agent on the first boot",
  doc: "The executable comes from the machine's image (--path), from a mirror (--url with --sha256), or from an attached disk (--disk, and --path on it). Other flags, and settings from --config and --config-dir, become the machine's configuration.",
  options: [
    option(
      "path FILE",
      "path of the executable in the image [/opt/crigc/crigc] or on the disk [/crigc]",
    ),
    option("url URL", "URL to fetch the executable from; needs --sha256"),
    option("sha256 SUM", "SHA-256 sum of the executable, as in SHA256SUMS"),
    option("disk LABEL", "label of the filesystem with the executable"),
    option("baseline", "keep the images present at the first start"),
  ],
  text: (given, context) =>
    cloudConfig({
      source: sourceOf(context),
      settings: givenSettings(given),
      baseline: has(context, "baseline"),
    }),
});

function sourceOf(invocation: Invocation): BinarySource {
  const url = textOf(invocation, "url");
  const sha256 = textOf(invocation, "sha256");
  const label = textOf(invocation, "disk");
  const path = pathOf(invocation, "path");
  if (url !== null || sha256 !== null) {
    if (label !== null) throw bad("disk", label, "conflicts with --url; use one of them");
    if (path !== null) throw bad("path", path, "has no effect with --url; leave it out");
    if (url === null) throw bad("sha256", sha256 ?? "", "has no effect without --url; set both");
    if (sha256 === null) throw bad("url", url, "needs --sha256, as in SHA256SUMS");
    return mirrorOf(url, sha256);
  }
  if (label === null) return { kind: "image", path: path ?? "/opt/crigc/crigc" };
  if (!/^[\w.+@-]{1,64}$/.test(label))
    throw bad("disk", label, "is not a filesystem label: use letters, digits and . _ + @ -");
  return { kind: "disk", label, path: path ?? "/crigc" };
}

function mirrorOf(url: string, sha256: string): BinarySource {
  if (!URL.canParse(url) || !/^https?:\/\/[!-~]+$/.test(url))
    throw bad("url", url, "is not a URL: use http:// or https://");
  if (!/^[0-9a-f]{64}$/.test(sha256))
    throw bad("sha256", sha256, "is not a SHA-256 sum: use 64 hex digits, as in SHA256SUMS");
  return { kind: "mirror", url, sha256 };
}

const IMAGE = option(
  "image REF",
  "image that contains crigc, with its digest [localhost/crigc:VERSION]",
);
const NAMESPACE = option("namespace NAME", "namespace [kube-system]");

const cluster = printing({
  name: "print daemonset",
  summary: "print a DaemonSet that runs the agent on every node of a cluster",
  doc: "Other flags, and settings from --config and --config-dir, become environment variables of the agent. The socket of --container-runtime-endpoint (default: containerd's) determines which directories of the node are mounted.",
  options: [
    IMAGE,
    NAMESPACE,
    option("image-store DIR", "image store of the runtime, if its socket is unknown"),
  ],
  text: (given, context) => daemonSet(daemonSetOptions(given, context)),
});

const job = printing({
  name: "print simulate-job",
  summary: "print a Kubernetes Job that replays the traces of a fleet",
  doc: "Each pod of the indexed Job replays its share of the traces in a volume and logs one JSON document; crigc simulate --result adds them up. Other flags and configured settings are those of each replay.",
  options: [
    IMAGE,
    NAMESPACE,
    option("claim NAME", "claim of the volume with the traces [crigc-traces]"),
    option("shares N", "number of pods [8]"),
    ...SCENARIO_OPTIONS,
  ],
  text: (given, context) => {
    const claim = textOf(context, "claim") ?? "crigc-traces";
    if (!isLabel(claim)) throw bad("claim", claim, "is not the name of a claim");
    const shares = textOf(context, "shares") ?? "8";
    if (!/^[1-9]\d{0,4}$/.test(shares)) throw bad("shares", shares, "is not a number from 1");
    return simulateJob({
      image: imageOf(context),
      namespace: namespaceOf(context),
      claim,
      shares: Number(shares),
      arguments: [
        ...scenarioArguments(context),
        ...givenSettings(given).flatMap(({ flags }) => flags),
      ],
    });
  },
});

function daemonSetOptions(given: Config, context: CommandContext) {
  const { values, sources } = given;
  const socket = (values.containerRuntimeEndpoint ?? DEFAULT_SOCKET).replace(/^unix:\/\//, "");
  const store = pathOf(context, "image-store");
  const places =
    store === null
      ? placesOf(socket)
      : { socketDirectory: directoryOf(socket), imageStore: store, kubeletDirectory: null };
  if (places === null)
    throw bad(
      "container-runtime-endpoint",
      socket,
      "is not the socket of a known runtime; set --image-store to the directory of its images",
    );
  const rootDir = values.rootDir ?? places.kubeletDirectory;
  const moved = {
    ...given,
    values: { ...values, rootDir },
    sources: { ...sources, rootDir: { kind: "flag", from: [] } },
  } as const;
  return {
    image: imageOf(context),
    namespace: namespaceOf(context),
    socket,
    places,
    config: moved,
    settings: givenSettings(rootDir === null ? given : moved).filter(
      ({ name }) => name !== "containerRuntimeEndpoint",
    ),
  };
}

function imageOf(context: CommandContext): string {
  const { build, stderr } = context;
  const image = textOf(context, "image");
  if (image === null) {
    // The released image's name, which no registry serves.
    const released = `localhost/crigc:${build.version}`;
    stderr(
      `crigc: no --image given: the manifest names ${released}, which must be on every node; set --image to an image with its digest\n`,
    );
    return released;
  }
  if (/^[\w.:/-]+@sha256:[0-9a-f]{64}$/.test(image)) return image;
  throw bad(
    "image",
    image,
    "has no digest; use NAME@sha256:…, so that every node runs the same image",
  );
}

function namespaceOf(invocation: Invocation): string {
  const name = textOf(invocation, "namespace") ?? "kube-system";
  if (isLabel(name)) return name;
  throw bad("namespace", name, "is not a namespace: use lower-case letters, digits and -");
}

const isLabel = (name: string): boolean => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name);

/** Where packages and images put the documentation. */
const RUNBOOKS = "/usr/share/doc/crigc/operations.md";

const rules = printing({
  name: "print prometheus-rules",
  summary: "print alerting and recording rules for Prometheus",
  doc: "The annotation runbook_url of each alert is --runbooks with the alert's section.",
  options: [option("runbooks URL", `page with the sections of the alerts [${RUNBOOKS}]`)],
  text: (_, context) => {
    const runbooks = textOf(context, "runbooks") ?? RUNBOOKS;
    if (!/^[\w.~:/?=&%+@-]+$/.test(runbooks))
      throw bad("runbooks", runbooks, "is neither a URL nor a path without blanks");
    return prometheusRules.replaceAll("RUNBOOKS#", `${runbooks}#`);
  },
});

export const printCommands: readonly Command[] = [
  unit,
  script,
  cloud,
  cluster,
  job,
  rules,
  template,
];
