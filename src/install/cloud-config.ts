/** A cloud-config that installs the agent on a machine's first boot: from its image, a mirror or an attached disk. */
import { filled, type GivenSetting, settingsDocument, shellQuoted } from "./service.ts";
import template from "./templates/cloud-config.txt" with { type: "text" };

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

const SOURCE_WORDS = {
  image: "from the machine's own image",
  mirror: "from a mirror, after verifying its checksum,",
  disk: "from an attached disk",
} as const;

/**
 * Settings become a drop-in, so that `install` still writes its commented configuration. A script works below /var/lib,
 * because /tmp and /var/tmp are often mounted noexec; its first failure stops it, and cloud-init's log names it.
 */
export function cloudConfig({ source, settings, baseline }: CloudConfigOptions): string {
  const install = ["install", "--start", ...(baseline ? ["--baseline"] : [])];
  const path = source.kind === "mirror" ? "" : source.path;
  const { url, sha256 } = source.kind === "mirror" ? source : { url: "", sha256: "" };
  const label = source.kind === "disk" ? source.label : "";
  const lines = settings.length === 0 ? [] : settingsDocument(settings).trimEnd().split("\n");
  return filled(template, {
    how: SOURCE_WORDS[source.kind],
    settings: settings.length > 0,
    document: lines.map((line) => `      ${line}\n`).join(""),
    image: source.kind === "image",
    mirror: source.kind === "mirror",
    disk: source.kind === "disk",
    script: source.kind !== "image",
    arguments: [path, ...install].map((word) => JSON.stringify(word)).join(", "),
    install: install.join(" "),
    url: shellQuoted(url),
    sum: shellQuoted(`${sha256}  `),
    device: shellQuoted(`/dev/disk/by-label/${label}`),
    path: shellQuoted(path.replace(/^\/+/, "")),
  });
}
