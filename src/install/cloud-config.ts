/** A cloud-config that installs the agent on a machine's first boot: from its image, a mirror or an attached disk. */
import { type GivenSetting, settingsDocument } from "./settings.ts";

export type BinarySource =
  /** Already in the machine's image. */
  | { readonly kind: "image"; readonly path: string }
  /** Fetched, and run only if its checksum matches. */
  | { readonly kind: "mirror"; readonly url: string; readonly sha256: string }
  /** On a disk, ISO or stick with this filesystem label. */
  | { readonly kind: "disk"; readonly label: string; readonly path: string };

export interface CloudConfigOptions {
  readonly source: BinarySource;
  readonly settings: readonly GivenSetting[];
  /** Keep the images present at the first start. */
  readonly baseline: boolean;
}

export function cloudConfig(options: CloudConfigOptions): string {
  return [
    "#cloud-config",
    `# Installs crigc ${SOURCE_WORDS[options.source.kind]} on the first boot and starts it.`,
    ...writeFiles(options.settings),
    "runcmd:",
    ...commandsOf(options),
    "",
  ].join("\n");
}

const SOURCE_WORDS = {
  image: "from the machine's own image",
  mirror: "from a mirror, after verifying its checksum,",
  disk: "from an attached disk",
} as const;

/** A drop-in, so that `install` still writes its commented configuration. */
function writeFiles(settings: readonly GivenSetting[]): readonly string[] {
  if (settings.length === 0) return [];
  return [
    "write_files:",
    "  - path: /etc/crigc/conf.d/50-cloud-config.yaml",
    "    owner: root:root",
    "    permissions: '0644'",
    "    content: |",
    ...indented(settingsDocument(settings), 6),
  ];
}

/** One script, so that the first failure stops it and cloud-init's log names it. */
function commandsOf({ source, baseline }: CloudConfigOptions): readonly string[] {
  const install = `install --start${baseline ? " --baseline" : ""}`;
  switch (source.kind) {
    case "image":
      return [
        `  - [${JSON.stringify(source.path)}, ${install
          .split(" ")
          .map((word) => JSON.stringify(word))
          .join(", ")}]`,
      ];
    case "mirror":
      return script([
        ...WORK_DIRECTORY,
        `url=${shellQuoted(source.url)}`,
        'if command -v curl >/dev/null; then curl -fsSL --retry 5 -o "$work/crigc" "$url"',
        'else wget -q -O "$work/crigc" "$url"; fi',
        `echo ${shellQuoted(`${source.sha256}  `)}"$work/crigc" | sha256sum -c -`,
        'chmod 755 "$work/crigc"',
        `"$work/crigc" ${install}`,
      ]);
    case "disk":
      return script([
        ...WORK_DIRECTORY,
        `mount -o ro ${shellQuoted(`/dev/disk/by-label/${source.label}`)} "$work/disk"`,
        `cp "$work"/disk/${shellQuoted(source.path.replace(/^\/+/, ""))} "$work/crigc"`,
        'umount "$work/disk"',
        'chmod 755 "$work/crigc"',
        `"$work/crigc" ${install}`,
      ]);
  }
}

/** Below /var/lib, because /tmp and /var/tmp are often mounted noexec. */
const WORK_DIRECTORY = [
  "work=$(mktemp -d /var/lib/crigc-install.XXXXXX)",
  `trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT`,
  'mkdir "$work/disk"',
] as const;

const script = (lines: readonly string[]): readonly string[] => [
  "  - - sh",
  "    - -ec",
  "    - |",
  ...lines.map((line) => `      ${line}`),
];

const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const indented = (text: string, columns: number): readonly string[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => `${" ".repeat(columns)}${line}`);
