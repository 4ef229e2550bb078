/** The record of an installation, by which an upgrade knows its own files and an uninstall removes them all. */

import { isMap, parsedJson } from "../model/values.ts";
import { installed, parentsOf, shellFilesOf } from "./paths.ts";

export interface Manifest {
  readonly version: string;
  readonly init: Init;
  readonly executable: string;
  /** Directories that did not exist before. */
  readonly directories: readonly string[];
  readonly files: Readonly<Record<string, string>>;
  readonly links: readonly string[];
}

export type Init = "systemd" | "openrc" | "none";

export const inits: readonly Init[] = ["systemd", "openrc", "none"];

export const isInit = (text: unknown): text is Init => inits.some((init) => init === text);

export function manifestText(manifest: Manifest): string {
  return `${JSON.stringify({ apiVersion: "crigc/v1", kind: "Installation", ...manifest }, null, 2)}\n`;
}

/** `null` for an invalid manifest: then no file counts as installed. Ignores paths that install never creates. */
export function parseManifest(text: string): Manifest | null {
  const manifest = parsedJson(text);
  if (!isMap(manifest)) return null;
  const { version, init, executable, directories, files, links } = manifest;
  if (typeof version !== "string" || !isInit(init) || !isExecutable(executable)) return null;
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

const isExecutable = (value: unknown): value is string => isPath(value) && value.endsWith("/crigc");

const isPaths = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every(isPath);

/** Absolute and normalised, as install writes them. */
const isPath = (value: unknown): value is string =>
  typeof value === "string" && /^(\/[^/\0]+)+$/.test(value) && !/\/\.\.?(\/|$)/.test(value);
