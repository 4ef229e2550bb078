/** Flags for images that are never removed. */
import type { Field } from "../field.ts";
import { DECIDING, KEEPING } from "./commands.ts";

export const keepFields = {
  keep: {
    flag: "keep",
    type: { kind: "list" },
    placeholder: "GLOB",
    help: "images that are never removed; repeatable",
    doc: "`*` stays within a path component, `**` does not; a name without a tag matches every tag and digest; `sha256:…` matches an ID or digest by a prefix of at least 12 hex digits. Patterns of all sources add up: a flag never replaces those of a file.",
    commands: KEEPING,
  },
  keepDir: {
    flag: "keep-dir",
    type: { kind: "path", of: "directory" },
    default: "/etc/crigc/keep.d",
    help: "directory of keep lists, *.list",
    doc: "Read on every pass. If a directory named here does not exist, or a file in it cannot be read, crigc removes no image.",
    commands: KEEPING,
  },
  keepLoaded: {
    flag: "keep-loaded",
    type: { kind: "boolean" },
    default: "false",
    help: "keep images loaded from an archive",
    doc: "These have no repository digest, or only `import-YYYY-MM-DD` ones. A node that cannot pull never gets them back.",
    commands: DECIDING,
  },
  keepPerRepository: {
    flag: "keep-per-repository",
    type: { kind: "integer", minimum: 0, maximum: 2_147_483_647, optional: true },
    defaultWords: "off",
    help: "keep the N most recently used tags of each repository",
    doc: "Applies whatever the disk usage. All ties for Nth place are kept; 0 is off.",
    unit: "tags",
    commands: DECIDING,
  },
  podInfraContainerImage: {
    flag: "pod-infra-container-image",
    type: { kind: "list" },
    placeholder: "IMAGE",
    help: "sandbox image, always kept; repeatable",
    doc: "In addition to what the runtime names and pins, and to the usual names of pause images. Values of all sources add up. An invalid image name counts as an invalid keep rule: crigc removes no image.",
    commands: DECIDING,
  },
} as const satisfies Readonly<Record<string, Field>>;
