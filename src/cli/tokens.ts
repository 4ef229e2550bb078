/** Splits a command line into words and options, with the value of each option. */
import { parseArgs } from "node:util";

import { dashed } from "../config/field.ts";
import { fieldByFlag, fieldOf } from "../config/fields.ts";
import type { CommandOption } from "./command.ts";

export interface OptionToken {
  readonly kind: "option";
  /** Without dashes. */
  readonly name: string;
  /** As given: `--max-images`, `-v`. */
  readonly written: string;
  /** `null`: not given. */
  readonly text: string | null;
  /** Given as a separate word, not after an equals sign. */
  readonly apart: boolean;
}

export type Token = OptionToken | { readonly kind: "word"; readonly text: string };

type Shape = { type: "string" | "boolean"; short?: string };

/** Options of every command, besides the flags. */
const COMMON: Readonly<Record<string, Shape>> = {
  output: { type: "string", short: "o" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean" },
};
const SHORT: ReadonlySet<string> = new Set(["o", "h", "v"]);

export function tokensOf(
  argv: readonly string[],
  options: readonly CommandOption[],
): readonly Token[] {
  const { tokens } = parseArgs({
    args: [...argv],
    options: shapes(options),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const known = optionNames(options);
  const wrong = new Set<number>();
  const letters = new Set([...SHORT, ...options.map(({ name }) => name)]);
  return tokens.flatMap((token): readonly Token[] => {
    if (token.kind === "option-terminator" || wrong.has(token.index)) return [];
    if (token.kind === "positional") return [{ kind: "word", text: token.value }];
    const { name, rawName, value } = token;
    const written = (argv[token.index] ?? rawName).replace(/=.*$/s, "");
    if (isMisspelt(written, { known, letters })) {
      wrong.add(token.index);
      return [{ kind: "option", name: "", written, text: null, apart: false }];
    }
    // `-v=5` means what `--v=5` means.
    const text = rawName.startsWith("--") ? value : value?.replace(/^=/, "");
    const apart = token.inlineValue !== true;
    return [{ kind: "option", name, written: rawName, text: text ?? null, apart }];
  });
}

/** `-config` would be read as letters: `-c`, then `-o` with a value. */
function isMisspelt(
  written: string,
  { known, letters }: { readonly known: readonly string[]; readonly letters: ReadonlySet<string> },
): boolean {
  if (written.startsWith("--")) return false;
  return !letters.has(written.charAt(1)) || known.includes(`-${written}`);
}

function shapes(options: readonly CommandOption[]): Record<string, Shape> {
  const flags = [...fieldByFlag].map(([flag, name]): readonly [string, Shape] => {
    const type = fieldOf(name).type.kind === "boolean" ? "boolean" : "string";
    return [flag, flag.length === 1 ? { type, short: flag } : { type }];
  });
  const own = options.map(({ name, placeholder }): readonly [string, Shape] => {
    const type = placeholder === null ? "boolean" : "string";
    return [name, name.length === 1 ? { type, short: name } : { type }];
  });
  return { ...Object.fromEntries(flags), ...Object.fromEntries(own), ...COMMON };
}

/** Every option by its dashed name, for suggestions. */
export const optionNames = (options: readonly CommandOption[]): readonly string[] => [
  ...[...fieldByFlag.keys(), ...Object.keys(COMMON)].map(dashed),
  ...options.map(({ name }) => dashed(name)),
];
