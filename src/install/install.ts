/** `crigc install` and `crigc uninstall`: decide all changes of a tree first, then make them. */
import { HostError } from "../model/errors.ts";
import { isElf, loaderOf } from "../node/executable.ts";
import { sha256OfFile } from "../node/files.ts";
import { RootedTree } from "../node/rooted-tree.ts";
import { configTemplate } from "./config-template.ts";
import {
  BASELINE_FILES,
  DEFAULT_BIN_DIRECTORY,
  type Init,
  installed,
  type Manifest,
  manifestText,
  movablePaths,
  parentsOf,
  parseManifest,
  SERVICE_FILES,
  shellFilesOf,
  type ShellTexts,
} from "./layout.ts";
import { serviceCommands, serviceFiles } from "./service.ts";
import { apply, sha256Of, type Step, textFile, TreePlan, type Wanted } from "./tree-plan.ts";

export const OWN_EXECUTABLE = "/proc/self/exe";

export interface InstallOptions {
  readonly version: string;
  /** The tree; "/" is the running system. */
  readonly root: string;
  readonly from: string;
  /** Destination directory in the tree; `null`: that of an earlier installation, else the default. */
  readonly binDirectory: string | null;
  /** `null`: that of an earlier installation, else detected. */
  readonly init: Init | null;
  readonly shellTexts: ShellTexts;
  /** Keep the images present at the first start. */
  readonly baseline: boolean;
  /** Also start the agent, if the init system is running. */
  readonly start: boolean;
  readonly dryRun: boolean;
}

/** Returns the steps done, or to be done. Calls `done` after each. */
export async function install(
  options: InstallOptions,
  done: (step: Step) => void,
): Promise<readonly Step[]> {
  const { root, from } = options;
  const tree = new RootedTree(root);
  if (!(await tree.isThere()))
    throw refusal(
      `into ${root}`,
      "directory not found; set --root to the file tree of a node image",
    );
  const before = await manifestIn(tree);
  const isOverlay = root !== "/" && (await hasNoSystem(tree));
  // After an uninstall only the record is left.
  const kept = before !== null && (await exists(tree, before.executable)) ? before : null;
  const init = options.init ?? kept?.init ?? (isOverlay ? "systemd" : await initOf(tree));
  const path =
    options.binDirectory === null
      ? (kept?.executable ?? `${DEFAULT_BIN_DIRECTORY}/crigc`)
      : `${options.binDirectory}/crigc`;
  const what = `${from === OWN_EXECUTABLE ? "this executable" : from} into ${root}`;
  if (!isElf(from))
    throw refusal(
      what,
      "it is not a Linux executable; use an unpacked one, such as crigc-linux-x64",
    );
  // A glibc build would never start on Alpine, nor one for another processor.
  const loader = isOverlay ? null : loaderOf(from);
  if (loader !== null && !(await exists(tree, loader)))
    throw refusal(
      what,
      `it needs ${loader}, which is missing there; use the build for its processor and libc (musl on Alpine)`,
    );
  const sha256 = await sha256OfFile(from);
  const isLive = async (it: Init): Promise<boolean> => root === "/" && (await isRunning(it, tree));
  const request: InstallRequest = {
    version: options.version,
    init,
    executable: { path, from, sha256 },
    shellTexts: options.shellTexts,
    baseline: options.baseline || (await hasBaseline(tree, before)),
    live: await isLive(init),
    stops: before !== null && before.init !== init && (await isLive(before.init)),
    start: options.start,
  };
  const steps = await plannedInstall(tree, request, before);
  if (!options.dryRun) await apply(steps, tree, done);
  return steps;
}

const refusal = (what: string, why: string): HostError =>
  new HostError("refused", `cannot install ${what}: ${why}`);

/** An upgrade keeps the baseline of an earlier installation, unless the operator removed its file since. */
async function hasBaseline(tree: RootedTree, before: Manifest | null): Promise<boolean> {
  const recorded = BASELINE_FILES.filter((path) => before?.files[path] !== undefined);
  return (await Promise.all(recorded.map((path) => exists(tree, path)))).includes(true);
}

async function manifestIn(tree: RootedTree): Promise<Manifest | null> {
  const text = await tree.readText(installed.manifest);
  return text === null ? null : parseManifest(text);
}

const exists = async (tree: RootedTree, path: string): Promise<boolean> =>
  (await tree.look(path)).kind !== "absent";

const SIGNS: readonly (readonly [Init, readonly string[]])[] = [
  ["systemd", ["/usr/lib/systemd/systemd", "/lib/systemd/systemd"]],
  ["openrc", ["/sbin/openrc-run", "/usr/sbin/openrc-run"]],
];

/** Throws if none is found. */
async function initOf(tree: RootedTree): Promise<Init> {
  for (const [init, paths] of SIGNS)
    for (const path of paths) if (await exists(tree, path)) return init;
  throw new HostError(
    "refused",
    "cannot install: neither systemd nor OpenRC found; set --init, or --init none to start crigc yourself",
  );
}

/** In every tree that could start a program; an overlay may bring a `/usr/lib` with units or settings. */
const SYSTEM_SIGNS: readonly string[] = [
  "/etc/os-release",
  "/usr/lib/os-release",
  "/lib",
  "/bin/sh",
  ...SIGNS.flatMap(([, paths]) => paths),
];

/** Whether the tree is an overlay, or packed into one later. */
const hasNoSystem = async (tree: RootedTree): Promise<boolean> =>
  !(await Promise.all(SYSTEM_SIGNS.map((path) => exists(tree, path)))).includes(true);

/** Made by the init system when it boots, so absent in a container or a tree that is being built. */
const RUNNING: Readonly<Record<Init, string>> = {
  systemd: "/run/systemd/system",
  openrc: "/run/openrc/softlevel",
  none: "/nonexistent",
};

const isRunning = (init: Init, tree: RootedTree): Promise<boolean> => exists(tree, RUNNING[init]);

export interface InstallRequest extends Pick<
  InstallOptions,
  "version" | "shellTexts" | "baseline" | "start"
> {
  readonly init: Init;
  readonly executable: {
    /** Destination. */
    readonly path: string;
    /** Source, outside the tree. */
    readonly from: string;
    readonly sha256: string;
  };
  /** The init system is running: it reloads units and restarts a running agent with the new executable. */
  readonly live: boolean;
  /** Another init system has the service of an earlier installation, and is running: it stops that one. */
  readonly stops: boolean;
}

/** Throws `HostError` if a foreign file is in the way; then nothing was changed. */
export async function plannedInstall(
  tree: RootedTree,
  request: InstallRequest,
  before: Manifest | null,
): Promise<readonly Step[]> {
  const plan = new TreePlan(tree, before);
  const wanted = wantedBy(request);
  const places = [...wanted.map(({ path }) => path), installed.manifest];
  for (const it of wanted) await plan.want(it);
  // What an earlier installation has elsewhere. Its service would not be recorded any more, so a changed one is moved away.
  const former = before === null ? [] : movablePaths(before);
  for (const path of former.filter((it) => !places.includes(it))) {
    const sum = before?.files[path];
    await plan.removeOwn(path);
    if (SERVICE_FILES.includes(path) && sum !== undefined) await plan.setAside(path);
  }
  const stay = new Set(places.flatMap(parentsOf));
  const left = new Set(former.flatMap(parentsOf).filter((path) => !stay.has(path)));
  await plan.removeEmpty((before?.directories ?? []).filter((path) => left.has(path)));

  const made = plan.steps.filter(({ kind }) => kind === "directory").map(({ path }) => path);
  const earlier = (before?.directories ?? []).filter((path) => !left.has(path));
  const record = manifestText({
    version: request.version,
    init: request.init,
    executable: request.executable.path,
    directories: [...new Set([...earlier, ...made])].toSorted(),
    files: Object.fromEntries(
      wanted.flatMap((it) =>
        it.kind === "text" || it.kind === "executable" ? [[it.path, sha256Of(it)]] : [],
      ),
    ),
    links: wanted.flatMap((it) => (it.kind === "link" ? [it.path] : [])),
  });
  await plan.want(textFile(installed.manifest, record, 0o600));
  const stopped = request.stops && before !== null ? before.init : "none";
  return [
    ...serviceCommands(stopped, "beforeRemoval"),
    ...plan.steps,
    ...serviceCommands(stopped, "afterRemoval"),
    ...(request.live && isServiceChanged(request, plan)
      ? serviceCommands(request.init, "afterChange")
      : []),
    ...(request.live && request.start ? serviceCommands(request.init, "start") : []),
  ];
}

function wantedBy({ init, executable, shellTexts, baseline }: InstallRequest): readonly Wanted[] {
  const places = shellFilesOf(executable.path);
  const directory = (path: string, mode = 0o755): Wanted => ({ kind: "directory", path, mode });
  return [
    directory(installed.stateDirectory, 0o700),
    { kind: "executable", ...executable, mode: 0o755 },
    directory(installed.configDirectory),
    textFile(installed.config, configTemplate()),
    directory(installed.dropIns),
    directory(installed.keepDirectory),
    textFile(places.man, shellTexts.man),
    textFile(places.bash, shellTexts.bash),
    textFile(places.zsh, shellTexts.zsh),
    textFile(places.fish, shellTexts.fish),
    ...serviceFiles(init, executable.path, baseline),
  ];
}

const isServiceChanged = ({ executable }: InstallRequest, { steps }: TreePlan): boolean => {
  const others = [
    installed.config,
    installed.manifest,
    ...Object.values(shellFilesOf(executable.path)),
  ];
  return steps.some(
    ({ kind, path }) => kind === "executable" || (kind === "text" && !others.includes(path)),
  );
};

export interface UninstallOptions {
  /** The tree; "/" is the running system. */
  readonly root: string;
  /** Also configuration and state. */
  readonly purge: boolean;
  readonly dryRun: boolean;
}

/** The steps done, or to be done; `null` if no installation is recorded in the tree. */
export async function uninstall(
  options: UninstallOptions,
  done: (step: Step) => void,
): Promise<readonly Step[] | null> {
  const tree = new RootedTree(options.root);
  const manifest = await manifestIn(tree);
  if (manifest === null) return null;
  const live = options.root === "/" && (await isRunning(manifest.init, tree));
  const steps = await plannedRemoval(tree, { purge: options.purge, live }, manifest);
  if (!options.dryRun) await apply(steps, tree, done);
  return steps;
}

/** What the manifest lists, with `purge` also configuration and state; without it, changed files are kept aside. */
export async function plannedRemoval(
  tree: RootedTree,
  { purge, live }: { readonly purge: boolean; readonly live: boolean },
  manifest: Manifest,
): Promise<readonly Step[]> {
  const plan = new TreePlan(tree, manifest);
  const { stateDirectory, configDirectory, runDirectory } = installed;
  for (const path of manifest.links) await plan.removeOwn(path);
  for (const path of Object.keys(manifest.files)) {
    if (path === installed.config || !(await plan.isKind(path, "file"))) continue;
    if (purge || !(await plan.setAside(path))) plan.steps.push({ kind: "remove", path });
  }
  // The state directory last: an interrupted removal resumes from the manifest in it.
  const purged = [configDirectory, ...(live ? [runDirectory] : []), stateDirectory];
  for (const path of purge ? purged : [])
    if (await plan.isKind(path, "directory")) plan.steps.push({ kind: "remove-tree", path });
  const isKept = (path: string): boolean =>
    [configDirectory, stateDirectory].some((it) => path === it || path.startsWith(`${it}/`));
  await plan.removeEmpty(
    manifest.directories.filter((path) => !isKept(path) && !(purge && path === runDirectory)),
  );
  const { init } = manifest;
  return [
    ...(live ? serviceCommands(init, "beforeRemoval") : []),
    ...plan.steps,
    ...(live ? serviceCommands(init, "afterRemoval") : []),
  ];
}
