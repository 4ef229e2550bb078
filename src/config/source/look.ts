/** One reading of the configuration files, to compare with another one and to load exactly as compared. */
import { messageOf } from "../../model/errors.ts";
import type { Config } from "../config.ts";
import {
  type ConfigInput,
  type ConfigReader,
  isDropIn,
  loadConfig,
  type Places,
  placesOf,
} from "../load.ts";

export interface Look {
  /** Equal for two readings if and only if they found the same names and texts. */
  readonly print: string;
  /** The text of a file; `null`: missing or unreadable. */
  readonly text: (path: string) => string | null;
  /** Throws `ConfigError`. */
  readonly load: (about?: Pick<ConfigInput, "running" | "connected" | "agent">) => Config;
}

type LookInput = Pick<ConfigInput, "flags" | "env" | "reader">;

/** Reads the files on each call. Flags and variables, which name the files, are read once. */
export function looking(input: LookInput): () => Look {
  let places: Places | null = null;
  return () => lookIn((places ??= placesOf(input)), input);
}

function lookIn({ file, directory }: Places, input: LookInput): Look {
  const names = tried(() => input.reader.names(directory.path));
  const paths = [
    file.path,
    ...(names.value ?? []).filter(isDropIn).map((name) => `${directory.path}/${name}`),
  ];
  const texts = new Map(paths.map((path) => [path, tried(() => input.reader.file(path))]));
  const kubelet = input.reader.kubelet?.() ?? null;
  const reader: ConfigReader = {
    kubelet: () => kubelet,
    names: () => valueOf(names),
    file: (path) => valueOf(texts.get(path) ?? tried(() => input.reader.file(path))),
  };
  return {
    print: JSON.stringify([kubelet, names, ...texts]),
    text: (path) => texts.get(path)?.value ?? null,
    load: (about) => loadConfig({ ...input, ...about, reader }),
  };
}

interface Tried<T> {
  readonly value: T | null;
  /** `null`: no error. */
  readonly fault: string | null;
}

function tried<T>(read: () => T | null): Tried<T> {
  try {
    return { value: read(), fault: null };
  } catch (thrown) {
    return { value: null, fault: messageOf(thrown) };
  }
}

function valueOf<T>({ value, fault }: Tried<T>): T | null {
  if (fault !== null) throw new Error(fault);
  return value;
}
