/** The paths of an installed crigc. */

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

/** Readers of the manual page and the completions. */
export type ShellFile = "man" | "bash" | "zsh" | "fish";
export type ShellTexts = Readonly<Record<ShellFile, string>>;

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
