/** Decides what an installation changes in a tree. */

import { assertNever } from "../model/assert.ts";
import { HostError } from "../model/errors.ts";
import { sha256OfText } from "../node/files.ts";
import type { Found } from "../node/rooted-tree.ts";
import { factOf, type Facts } from "./facts.ts";
import { type InstalledFile, installedFiles } from "./installed-files.ts";
import { type Init, type Manifest, manifestText } from "./manifest.ts";
import { installed, parentsOf, shellFilesOf, type ShellTexts } from "./paths.ts";
import { type Step, stoppedSteps, stopSteps } from "./step.ts";

export interface InstallRequest {
  readonly version: string;
  readonly init: Init;
  readonly executable: {
    /** Destination. */
    readonly path: string;
    /** Source, outside the tree. */
    readonly from: string;
    readonly sha256: string;
  };
  readonly shellTexts: ShellTexts;
  /** Keep the images present at the first start. */
  readonly baseline: boolean;
  /** The init system is running: it reloads units and restarts a running agent with the new executable. */
  readonly live: boolean;
  /** Another init system has the service of an earlier installation, and is running: it stops that one. */
  readonly stops: boolean;
  /** Also start the agent if it is not running. */
  readonly start: boolean;
}

/** Throws `HostError` if a foreign file is in the way; then nothing may be changed. */
export function installPlan(
  request: InstallRequest,
  before: Manifest | null,
  facts: Facts,
): readonly Step[] {
  const wanted = filesOf(request, before);
  const steps = [
    ...missingParents([installed.manifest, ...wanted.map(({ path }) => path)], facts),
    ...wanted.flatMap((it) => stepsFor(it, { request, before, facts })),
    ...leftovers(wanted, before, facts),
    ...formerDirectories(wanted, before)
      .filter((path) => factOf(facts, path).kind === "directory")
      .map((path): TreeStep => ({ kind: "remove-if-empty", path })),
  ];
  // Removes duplicates: directories that are also a parent of another.
  const changes = steps.filter(
    (step, index) =>
      steps.findIndex((it) => it.kind === step.kind && it.path === step.path) === index,
  );
  const after = manifestText(manifestAfter({ request, before, wanted, changes }));
  const manifest = factOf(facts, installed.manifest);
  const isRecorded = manifest.kind === "file" && manifest.sha256 === sha256OfText(after);
  return [
    ...(request.stops && before !== null ? stopSteps(before.init) : []),
    ...changes,
    ...(isRecorded
      ? []
      : [{ kind: "text", path: installed.manifest, text: after, mode: 0o600 } as const]),
    ...(request.stops && before !== null ? stoppedSteps(before.init) : []),
    ...(request.live ? commandsAfter(request, changes) : []),
  ];
}

/** Keeps the options of an earlier installation. */
export const filesOf = (
  request: InstallRequest,
  before: Manifest | null,
): readonly InstalledFile[] =>
  installedFiles({
    init: request.init,
    executable: request.executable.path,
    shellTexts: request.shellTexts,
    baseline: request.baseline || BASELINE_FILES.some((path) => before?.files[path] !== undefined),
  });

/** Each makes the first start keep the images present. */
export const BASELINE_FILES: readonly string[] = [
  installed.systemdBaseline,
  installed.openrcSettings,
];

type TreeStep = Exclude<Step, { kind: "command" }>;

interface Known {
  readonly request: InstallRequest;
  readonly before: Manifest | null;
  readonly facts: Facts;
}

function missingParents(paths: readonly string[], facts: Facts): readonly TreeStep[] {
  return paths
    .flatMap(parentsOf)
    .filter((path) => factOf(facts, path).kind === "absent")
    .map((path) => ({
      kind: "directory",
      path,
      mode: path === installed.stateDirectory ? 0o700 : 0o755,
    }));
}

function stepsFor(wanted: InstalledFile, known: Known): readonly TreeStep[] {
  const fact = factOf(known.facts, wanted.path);
  switch (wanted.kind) {
    case "directory":
      // The operator may have moved it by a link.
      if (fact.kind === "directory" || fact.kind === "link") return [];
      if (fact.kind === "absent") return [wanted];
      throw blockedBy(wanted.path, fact);
    case "text":
      if (wanted.theirs && fact.kind !== "absent") return [];
      return textSteps(wanted, fact, known);
    case "executable": {
      const { from, sha256, path } = known.request.executable;
      if (fact.kind === "file" && fact.sha256 === sha256 && fact.mode === EXECUTABLE) return [];
      if (fact.kind !== "file" && fact.kind !== "absent") throw blockedBy(path, fact);
      return [...saved(path, known, sha256), { kind: "executable", path, from, mode: EXECUTABLE }];
    }
    case "link":
      if (fact.kind === "link" && fact.target === wanted.target) return [];
      if (fact.kind !== "link" && fact.kind !== "absent") throw blockedBy(wanted.path, fact);
      return [wanted];
    default:
      return assertNever(wanted);
  }
}

const EXECUTABLE = 0o755;

function textSteps(
  wanted: Extract<InstalledFile, { kind: "text" }>,
  fact: Found,
  known: Known,
): readonly TreeStep[] {
  const { path, text, mode } = wanted;
  if (fact.kind !== "file" && fact.kind !== "absent") throw blockedBy(path, fact);
  const sha256 = sha256OfText(text);
  if (fact.kind === "file" && fact.sha256 === sha256 && fact.mode === mode) return [];
  return [...saved(path, known, sha256), { kind: "text", path, text, mode }];
}

/** Moves away a file that is neither what an installation wrote nor what it will write. */
export function saved(
  path: string,
  { before, facts }: Pick<Known, "before" | "facts">,
  wantedSha256: string | null,
): readonly TreeStep[] {
  const fact = factOf(facts, path);
  if (fact.kind !== "file") return [];
  if (fact.sha256 === wantedSha256 || fact.sha256 === before?.files[path]) return [];
  const usual = backupPathOf(path);
  // An earlier copy is never overwritten by another one.
  const to =
    factOf(facts, usual).kind === "absent" ? usual : `${usual}-${fact.sha256.slice(0, 12)}`;
  return [{ kind: "move", path, to }];
}

/** Backups are in the state directory, so that they are not services; named with the directory if ambiguous. */
export function backupPathOf(path: string): string {
  const name = path.split("/").slice(path.endsWith("/crigc") ? -2 : -1);
  return `${installed.stateDirectory}/replaced-${name.join("-")}`;
}

function blockedBy(path: string, fact: Found): HostError {
  if (fact.kind === "link" && fact.target === "/dev/null")
    return new HostError(
      "refused",
      `cannot install ${path}: the service is masked; unmask it first`,
    );
  const what = {
    link: "a symbolic link",
    directory: "a directory",
    file: "a file",
    other: "a special file",
    absent: "nothing",
  }[fact.kind];
  return new HostError(
    "refused",
    `cannot install ${path}: ${what}${fact.kind === "link" ? ` to ${fact.target}` : ""} exists that crigc install did not create; move it away first`,
  );
}

/**
 * What an earlier installation has elsewhere, unless changed since: its executable with manual page and completions,
 * and the service of another init system. That service would not be recorded any more, so a changed one is moved away.
 */
function leftovers(
  wanted: readonly InstalledFile[],
  before: Manifest | null,
  facts: Facts,
): readonly TreeStep[] {
  if (before === null) return [];
  return placesOf(before)
    .filter((path) => wanted.every((it) => it.path !== path))
    .flatMap((path): readonly TreeStep[] => {
      const fact = factOf(facts, path);
      if (fact.kind === "link" && before.links.includes(path)) return [{ kind: "remove", path }];
      if (fact.kind !== "file") return [];
      if (fact.sha256 === before.files[path]) return [{ kind: "remove", path }];
      const isService = SERVICE_FILES.includes(path) && before.files[path] !== undefined;
      return isService ? saved(path, { before, facts }, null) : [];
    });
}

/** Made for an earlier installation elsewhere, deepest first. */
function formerDirectories(
  wanted: readonly InstalledFile[],
  before: Manifest | null,
): readonly string[] {
  if (before === null) return [];
  const stay = new Set([installed.manifest, ...wanted.map(({ path }) => path)].flatMap(parentsOf));
  const former = new Set(placesOf(before).flatMap(parentsOf));
  return before.directories
    .filter((path) => former.has(path) && !stay.has(path))
    .toSorted((one, other) => other.length - one.length);
}

/** The paths that move with the executable's directory, and those of every init system. */
export const placesOf = ({ executable }: Manifest): readonly string[] => [
  executable,
  ...Object.values(shellFilesOf(executable)),
  ...SERVICE_FILES,
];

const SERVICE_FILES: readonly string[] = [
  installed.systemdUnit,
  installed.systemdBaseline,
  installed.systemdLink,
  installed.openrcScript,
  installed.openrcSettings,
  installed.openrcLink,
];

function manifestAfter(about: {
  readonly request: InstallRequest;
  readonly before: Manifest | null;
  readonly wanted: readonly InstalledFile[];
  readonly changes: readonly TreeStep[];
}): Manifest {
  const { request, before, wanted, changes } = about;
  const former = formerDirectories(wanted, before);
  const earlier = (before?.directories ?? []).filter((path) => !former.includes(path));
  const made = changes.flatMap((step) => (step.kind === "directory" ? [step.path] : []));
  const sums = wanted.flatMap((it): readonly (readonly [string, string])[] => {
    if (it.kind === "executable") return [[it.path, request.executable.sha256]];
    return it.kind === "text" ? [[it.path, sha256OfText(it.text)]] : [];
  });
  return {
    version: request.version,
    init: request.init,
    executable: request.executable.path,
    directories: [...new Set([...earlier, ...made])].toSorted(),
    files: Object.fromEntries(sums),
    links: wanted.flatMap((it) => (it.kind === "link" ? [it.path] : [])),
  };
}

/** Without waiting: the agent is started once ready, which may take until the runtime answers. */
function commandsAfter(request: InstallRequest, changes: readonly TreeStep[]): readonly Step[] {
  const { init, start } = request;
  const silent = [installed.config, ...Object.values(shellFilesOf(request.executable.path))];
  const changed = changes.some(
    (step) => step.kind === "executable" || (step.kind === "text" && !silent.includes(step.path)),
  );
  const systemctl = (verb: string) => ["systemctl", verb, "--no-block", "crigc.service"];
  const commands = {
    systemd: [
      ...(changed ? [["systemctl", "daemon-reload"], systemctl("try-restart")] : []),
      ...(start ? [systemctl("start")] : []),
    ],
    openrc: [
      ...(changed ? [["rc-service", "--ifstarted", "crigc", "restart"]] : []),
      ...(start ? [["rc-service", "crigc", "start"]] : []),
    ],
    none: [],
  }[init];
  return commands.map((words) => ({ kind: "command", words }));
}
