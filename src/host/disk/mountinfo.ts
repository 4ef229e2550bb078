// Reads /proc/self/mountinfo: where the mount with an ID is mounted, and its device.

export interface Mount {
  readonly id: number;
  /** `major:minor` of the filesystem: one for all subvolumes of a btrfs, unlike in stat. */
  readonly device: string;
  /** The directory of the filesystem that is mounted: not `/` for bind mounts and subvolumes. */
  readonly root: string;
  readonly mountpoint: string;
  readonly type: string;
  readonly source: string;
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
  const fields = line.split(" ");
  const [id, , device, root, mountpoint] = fields;
  // The number of tags before the dash varies; no field before it can be a lone dash, since spaces are escaped.
  const dash = fields.indexOf("-", 6);
  const [type, source] = dash < 0 ? [] : fields.slice(dash + 1);
  if (id === undefined || device === undefined || !/^\d+$/.test(id)) return null;
  if (root === undefined || mountpoint === undefined || !/^\d+:\d+$/.test(device)) return null;
  if (type === undefined || source === undefined) return null;
  return {
    id: Number(id),
    device,
    root: unescape(root),
    mountpoint: unescape(mountpoint),
    type: unescape(type),
    source: unescape(source),
  };
}

/** The kernel writes space, tab, newline, backslash and `#` as a backslash and three octal digits, byte by byte. */
function unescape(field: string): string {
  if (!field.includes("\\")) return field;
  return field.replace(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}
