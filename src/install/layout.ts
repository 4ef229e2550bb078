/** Where an installation puts its files, and the record by which an upgrade and an uninstall know them. */
import { isMap, parsedJson } from "../model/values.ts";

export const DEFAULT_BIN_DIRECTORY = "/usr/local/bin";

export const installed = {
  configDirectory: "/etc/crigc",
  config: "/etc/crigc/crigc.yaml",
  dropIns: "/etc/crigc/conf.d",
  keepDirectory: "/etc/crigc/keep.d",
  stateDirectory: "/var/lib/crigc",
  /** Record of what was installed, so that uninstalling restores the machine. */
  manifest: "/var/lib/crigc/install.json",
  runDirectory: "/run/crigc",
  systemdUnit: "/etc/systemd/system/crigc.service",
  /** The first start keeps the images present. */
  systemdBaseline: "/etc/systemd/system/crigc.service.d/10-baseline.conf",
  systemdLink: "/etc/systemd/system/multi-user.target.wants/crigc.service",
  openrcScript: "/etc/init.d/crigc",
  openrcSettings: "/etc/conf.d/crigc",
  openrcLink: "/etc/runlevels/default/crigc",
} as const;

/** Each makes the first start keep the images present. */
export const BASELINE_FILES: readonly string[] = [
  installed.systemdBaseline,
  installed.openrcSettings,
];

export const SERVICE_FILES: readonly string[] = [
  installed.systemdUnit,
  installed.systemdLink,
  installed.openrcScript,
  installed.openrcLink,
  ...BASELINE_FILES,
];

/** Readers of the manual page and the completions. */
export type ShellTexts = Readonly<Record<"man" | "bash" | "zsh" | "fish", string>>;

/**
 * Below the prefix of the executable's directory, where man, bash and zsh look. fish reads `/usr/share` and `/etc` only,
 * and `/usr` may be read-only.
 */
export function shellFilesOf(executable: string): ShellTexts {
  const directory = executable.slice(0, executable.lastIndexOf("/"));
  const prefix = directory.replace(/\/s?bin$/, "");
  const share = `${prefix === "" ? "/usr" : prefix}/share`;
  return {
    man: `${share}/man/man8/crigc.8`,
    bash: `${share}/bash-completion/completions/crigc`,
    zsh: `${share}/zsh/site-functions/_crigc`,
    fish: "/etc/fish/completions/crigc.fish",
  };
}

/** `/a` and `/a/b` for `/a/b/c`. */
export function parentsOf(path: string): readonly string[] {
  const components = path.split("/").slice(1, -1);
  return components.map((_, index) => `/${components.slice(0, index + 1).join("/")}`);
}

export type Init = "systemd" | "openrc" | "none";

export const inits: readonly Init[] = ["systemd", "openrc", "none"];

export const isInit = (text: unknown): text is Init => inits.some((init) => init === text);

export interface Manifest {
  readonly version: string;
  readonly init: Init;
  readonly executable: string;
  /** Directories that did not exist before. */
  readonly directories: readonly string[];
  /** SHA-256 sums. */
  readonly files: Readonly<Record<string, string>>;
  readonly links: readonly string[];
}

/** The paths of an installation that depend on its options: those of the executable, and of every init system. */
export const movablePaths = ({ executable }: Manifest): readonly string[] => [
  executable,
  ...Object.values(shellFilesOf(executable)),
  ...SERVICE_FILES,
];

export const manifestText = (manifest: Manifest): string =>
  `${JSON.stringify({ apiVersion: "crigc/v1", kind: "Installation", ...manifest }, null, 2)}\n`;

/** `null` for an invalid manifest: then no file counts as installed. Ignores paths that install never creates. */
export function parseManifest(text: string): Manifest | null {
  const manifest = parsedJson(text);
  if (!isMap(manifest)) return null;
  const { version, init, executable, directories, files, links } = manifest;
  if (typeof version !== "string" || !isInit(init)) return null;
  if (!isPath(executable) || !executable.endsWith("/crigc")) return null;
  if (!isPaths(directories) || !isPaths(links) || !isMap(files)) return null;
  const ours: ReadonlySet<string> = new Set([
    executable,
    ...Object.values(shellFilesOf(executable)),
    ...Object.values(installed),
  ]);
  const parents = new Set([...ours].flatMap((path) => [...parentsOf(path), path]));
  const sums = Object.entries(files).filter(
    (entry): entry is [string, string] => ours.has(entry[0]) && typeof entry[1] === "string",
  );
  return {
    version,
    init,
    executable,
    directories: directories.filter((path) => parents.has(path)),
    files: Object.fromEntries(sums),
    links: links.filter((path) => ours.has(path)),
  };
}

const isPaths = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(isPath);

/** Absolute and normalised, as install writes them. */
const isPath = (value: unknown): value is string =>
  typeof value === "string" && /^(\/[^/\0]+)+$/.test(value) && !/\/\.\.?(\/|$)/.test(value);
