/** `crigc print …`: units, manifests and configuration as text, for images and automation. */

import prometheusRules from "../../agent/prometheus-rules.txt" with { type: "text" };
import type { Config } from "../../config/config.ts";
import { fieldNames, fieldOf } from "../../config/fields.ts";
import { configTemplate } from "../../install/config-template.ts";
import { DEFAULT_BIN_DIRECTORY } from "../../install/layout.ts";
import {
  type BinarySource,
  cloudConfig,
  daemonSet,
  DEFAULT_SOCKET,
  directoryOf,
  placesOf,
  type RuntimePlaces,
} from "../../install/manifests.ts";
import { givenSettings, openrcScript, systemdUnit } from "../../install/service.ts";
import {
  type Command,
  command,
  type CommandContext,
  has,
  type Invocation,
  option,
} from "../command.ts";
import { matching, optionError, valueOf } from "../values.ts";
import { rejectInvalidPatterns } from "./agent.ts";
import { PATH } from "./install.ts";

type Printer = Pick<Command, "name" | "summary" | "doc"> & {
  readonly options?: Command["options"];
  /** `given`: settings of the command line and of the files that it names. */
  readonly text: (given: Config, context: CommandContext) => string;
};

const printing = ({ text, ...words }: Printer): Command =>
  command({
    ...words,
    run: async (context) => {
      const given = context.given();
      rejectInvalidPatterns(given);
      for (const warning of given.warnings) context.note(`warning: ${warning}`);
      context.stdout(text(given, context));
    },
  });

const BIN_DIR = option("bin-dir DIR", `directory of the executable [${DEFAULT_BIN_DIRECTORY}]`, {
  completes: "directory",
});

const executableOf = (invocation: Invocation): string =>
  `${valueOf(invocation, "bin-dir", PATH) ?? DEFAULT_BIN_DIRECTORY}/crigc`;

const flagsOf = (given: Config): readonly string[] =>
  givenSettings(given).flatMap(({ flags }) => flags);

const unit = printing({
  name: "print systemd-unit",
  summary: "print the systemd unit that install writes",
  doc: "Other flags and configured settings become flags of the agent.",
  options: [BIN_DIR],
  text: (given, context) =>
    systemdUnit({
      executable: executableOf(context),
      flags: flagsOf(given),
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
      flags: flagsOf(given),
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
  const url = valueOf(invocation, "url", MIRROR);
  const sha256 = valueOf(invocation, "sha256", SHA256);
  const label = valueOf(invocation, "disk", LABEL);
  const path = valueOf(invocation, "path", PATH);
  if (url !== null || sha256 !== null) {
    if (label !== null) throw optionError("disk", label, "conflicts with --url; use one of them");
    if (path !== null) throw optionError("path", path, "has no effect with --url; leave it out");
    if (url === null)
      throw optionError("sha256", sha256 ?? "", "has no effect without --url; set both");
    if (sha256 === null) throw optionError("url", url, "needs --sha256, as in SHA256SUMS");
    return { kind: "mirror", url, sha256 };
  }
  if (label === null) return { kind: "image", path: path ?? "/opt/crigc/crigc" };
  return { kind: "disk", label, path: path ?? "/crigc" };
}

const MIRROR = {
  what: "URL",
  use: "http:// or https://",
  read: (text: string) => (URL.canParse(text) && /^https?:\/\/[!-~]+$/.test(text) ? text : null),
};
const SHA256 = matching("SHA-256 sum", "64 hex digits, as in SHA256SUMS", /^[0-9a-f]{64}$/);
const LABEL = matching("filesystem label", "letters, digits and . _ + @ -", /^[\w.+@-]{1,64}$/);

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
  text: (given, context) => {
    const endpoint = given.values.containerRuntimeEndpoint ?? DEFAULT_SOCKET;
    const socket = endpoint.replace(/^unix:\/\//, "");
    const manifest = daemonSet({
      image: imageOf(context),
      namespace: namespaceOf(context),
      socket,
      places: placesFor(socket, context),
      config: given,
    });
    noteUnmounted(manifest, given, context);
    return manifest;
  },
});

/** The image may have a file, such as a hook; a file or socket of the node needs a volume. */
function noteUnmounted(manifest: string, given: Config, context: CommandContext): void {
  const mounts = Array.from(manifest.matchAll(/mountPath: "?([^",}]+)/g), ([, path = ""]) => path);
  for (const name of fieldNames) {
    const { type, flag, outsideFiles } = fieldOf(name);
    const value = given.values[name];
    if (typeof value !== "string" || outsideFiles === true) continue;
    if (type.pathOf !== "file" && name !== "imageServiceEndpoint") continue;
    const path = value.replace(/^unix:\/\//, "");
    if (!mounts.some((mount) => path.startsWith(`${mount}/`)))
      context.note(`the manifest does not mount ${path} (--${flag}): add a volume for it`);
  }
}

/** The runtime's directories on the node, by its socket. */
function placesFor(socket: string, invocation: Invocation): RuntimePlaces {
  const store = valueOf(invocation, "image-store", PATH);
  const places =
    store === null
      ? placesOf(socket)
      : { socketDirectory: directoryOf(socket), imageStore: store, kubeletDirectory: null };
  if (places !== null) return places;
  throw optionError(
    "container-runtime-endpoint",
    socket,
    "is not the socket of a known runtime; set --image-store to the directory of its images",
  );
}

function imageOf(context: CommandContext): string {
  const image = valueOf(context, "image", DIGESTED);
  if (image !== null) return image;
  // The released image's name, which no registry serves.
  const released = `localhost/crigc:${context.build.version}`;
  context.note(
    `no --image given: the manifest names ${released}, which must be on every node; set --image to an image with its digest`,
  );
  return released;
}

const DIGESTED = matching(
  "image",
  "NAME@sha256:…, with its digest, so that every node runs the same image",
  /^[\w.:/-]+@sha256:[0-9a-f]{64}$/,
);

const namespaceOf = (invocation: Invocation): string =>
  valueOf(invocation, "namespace", NAME) ?? "kube-system";

const NAME = matching(
  "name",
  "lower-case letters, digits and -",
  /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
);

/** Where packages and images put the documentation. */
const RUNBOOKS = "/usr/share/doc/crigc/operations.md";

const rules = printing({
  name: "print prometheus-rules",
  summary: "print alerting and recording rules for Prometheus",
  doc: "The annotation runbook_url of each alert is --runbooks with the alert's section.",
  options: [option("runbooks URL", `page with the sections of the alerts [${RUNBOOKS}]`)],
  text: (_, context) => {
    const page = matching("page", "a URL or a path, without blanks", /^[\w.~:/?=&%+@-]+$/);
    const runbooks = valueOf(context, "runbooks", page) ?? RUNBOOKS;
    return prometheusRules.replaceAll("RUNBOOKS#", `${runbooks}#`);
  },
});

export const printCommands: readonly Command[] = [unit, script, cloud, cluster, rules, template];
