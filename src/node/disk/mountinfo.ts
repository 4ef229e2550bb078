// Reads /proc/self/mountinfo: where the mount with an ID is mounted, and its device.

export interface Mount {
  /** `major:minor` of the filesystem: one for all subvolumes of a btrfs, unlike in stat. */
  readonly device: string;
  readonly mountpoint: string;
}

/** The mount with this ID, or `null`. Parses only its own line: a node has a thousand others. */
export function findMount(mountinfo: string, id: number): Mount | null {
  const start = mountinfo.startsWith(`${id} `) ? 0 : mountinfo.indexOf(`\n${id} `) + 1;
  if (start === 0 && !mountinfo.startsWith(`${id} `)) return null;
  const end = mountinfo.indexOf("\n", start);
  return parseMount(mountinfo.slice(start, end < 0 ? undefined : end));
}

/** `ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAG…] - TYPE SOURCE SUPEROPTIONS`; `null` for any other text. */
export function parseMount(line: string): Mount | null {
  const [id = "", , device = "", , mountpoint, ...rest] = line.split(" ");
  // A lone dash ends the options and tags; no field can be one, since spaces are escaped.
  if (!/^\d+$/.test(id) || !/^\d+:\d+$/.test(device) || !rest.includes("-", 1)) return null;
  return mountpoint === undefined ? null : { device, mountpoint: unescape(mountpoint) };
}

/** The kernel writes space, tab, newline, backslash and `#` as a backslash and three octal digits, byte by byte. */
function unescape(field: string): string {
  if (!field.includes("\\")) return field;
  return field.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}
