/** Where everything of an installed crigc lies. */

/** Where no other is named. */
export const DEFAULT_BIN_DIRECTORY = "/usr/local/bin";

export const installed = {
  configDirectory: "/etc/crigc",
  config: "/etc/crigc/crigc.yaml",
  dropIns: "/etc/crigc/conf.d",
  keepDirectory: "/etc/crigc/keep.d",
  stateDirectory: "/var/lib/crigc",
  /** What was installed, so that removing it leaves the machine as it was. */
  manifest: "/var/lib/crigc/install.json",
  runDirectory: "/run/crigc",
  systemdUnit: "/etc/systemd/system/crigc.service",
  /** Makes the first start keep the images that are there. */
  systemdBaseline: "/etc/systemd/system/crigc.service.d/10-baseline.conf",
  systemdLink: "/etc/systemd/system/multi-user.target.wants/crigc.service",
  openrcScript: "/etc/init.d/crigc",
  openrcSettings: "/etc/conf.d/crigc",
  openrcLink: "/etc/runlevels/default/crigc",
} as const;

/** `/a` and `/a/b` for `/a/b/c`. */
export function parentsOf(path: string): readonly string[] {
  const components = path.split("/").slice(1, -1);
  return components.map((_, index) => `/${components.slice(0, index + 1).join("/")}`);
}
