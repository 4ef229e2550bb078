/** Where an installation puts its files, and the record by which an upgrade and an uninstall know them. */
import * as v from "valibot";

import { homepage } from "../../package.json" with { type: "json" };
import { parsedJson } from "../model/values.ts";

export { homepage };

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

export const inits = ["systemd", "openrc", "none"] as const;

export type Init = (typeof inits)[number];

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

/** Absolute and normalised, as install writes them. */
const Path = v.pipe(
  v.string(),
  v.regex(/^(\/[^/\0]+)+$/),
  v.check((path) => !/\/\.\.?(\/|$)/.test(path)),
);

const Recorded = v.object({
  version: v.string(),
  init: v.picklist(inits),
  executable: v.pipe(Path, v.endsWith("/crigc")),
  directories: v.array(Path),
  files: v.record(v.string(), v.string()),
  links: v.array(Path),
});

/** `null` for an invalid manifest: then no file counts as installed. Ignores paths that install never creates. */
export function parseManifest(text: string): Manifest | null {
  const parsed = v.safeParse(Recorded, parsedJson(text));
  if (!parsed.success) return null;
  const { executable, directories, files, links } = parsed.output;
  const ours: ReadonlySet<string> = new Set([
    executable,
    ...Object.values(shellFilesOf(executable)),
    ...Object.values(installed),
  ]);
  const parents = new Set([...ours].flatMap((path) => [...parentsOf(path), path]));
  return {
    ...parsed.output,
    directories: directories.filter((path) => parents.has(path)),
    files: Object.fromEntries(Object.entries(files).filter(([path]) => ours.has(path))),
    links: links.filter((path) => ours.has(path)),
  };
}
