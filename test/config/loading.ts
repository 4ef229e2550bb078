// Loads a configuration from texts: files by path, flags as they would be written, variables.

import type { Config } from "../../src/config/config.ts";
import { fieldByFlag } from "../../src/config/fields.ts";
import { type ConfigReader, loadConfig } from "../../src/config/load.ts";
import type { Environment, FlagText } from "../../src/config/settings.ts";
import { ConfigError, type ConfigIssue } from "../../src/model/errors.ts";

export interface Sources {
  /** By path. */
  readonly files?: Readonly<Record<string, string>>;
  /** `["image-gc-high-threshold", "90"]`. */
  readonly flags?: readonly (readonly [string, string])[];
  readonly env?: Environment;
}

/** The file and the directory that count without being named. */
export const FILE = "/etc/crigc/crigc.yaml";
export const DROP_INS = "/etc/crigc/conf.d";

export function load({ files = {}, flags = [], env = {} }: Sources): Config {
  return loadConfig({ flags: flags.map(flagText), env, reader: readerOf(files) });
}

/** What is wrong; empty: nothing. */
export function issuesOf(sources: Sources): readonly ConfigIssue[] {
  try {
    load(sources);
    return [];
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.issues;
    throw thrown;
  }
}

/** `SOURCE: MESSAGE`, as they are printed. */
export const faultsOf = (sources: Sources): readonly string[] =>
  issuesOf(sources).map(({ source, message }) => `${source}: ${message}`);

export const ours = (body: string): string =>
  `apiVersion: crigc/v1\nkind: CrigcConfiguration\n${body}`;

export const kubelets = (body: string): string =>
  `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${body}`;

function flagText([flag, text]: readonly [string, string]): FlagText {
  const name = fieldByFlag.get(flag);
  if (name === undefined) throw new Error(`the test names no flag: ${flag}`);
  return { name, written: `--${flag}`, text };
}

export function readerOf(files: Readonly<Record<string, string>>): ConfigReader {
  return {
    file: (path) => files[path] ?? null,
    names: (directory) => {
      const inside = Object.keys(files).filter((path) => path.startsWith(`${directory}/`));
      return inside.length === 0 ? null : inside.map((path) => path.slice(directory.length + 1));
    },
  };
}
