// The import table of the architecture and the lists of what only some folders may use, as data.

export type FolderRule = {
  /** Folders of src, or files and folders of the top level, beside the folder itself. */
  readonly folders: readonly string[];
  /** Package names; a trailing star matches every name that starts so. */
  readonly packages: readonly string[];
  /** What exactly one file of the folder may use beside that: package names, or the global Bun. */
  readonly oneFile?: readonly string[];
};

/** A change here comes with a decision record in docs/decisions. */
export const folderRules: Readonly<Record<string, FolderRule>> = {
  model: { folders: [], packages: [] },
  policy: { folders: ["model"], packages: [] },
  config: { folders: ["model"], packages: ["valibot", "yaml", "Bun"], oneFile: ["node:fs"] },
  cri: {
    folders: ["model"],
    packages: ["@grpc/grpc-js", "@grpc/proto-loader", "Bun"],
  },
  node: { folders: ["model"], packages: ["node:*", "valibot", "bun:ffi", "bun:jsc", "Bun"] },
  store: { folders: ["model"], packages: ["bun:sqlite", "Bun"] },
  report: { folders: ["model"], packages: ["Bun"] },
  gc: { folders: ["model", "policy", "report"], packages: [] },
  cli: {
    folders: ["model", "config", "policy", "gc", "report", "store", "node", "install", "agent"],
    packages: ["node:util", "valibot"],
  },
  install: { folders: ["model", "config", "node"], packages: ["Bun", "valibot"] },
  agent: { folders: ["*"], packages: ["node:*", "Bun"] },
  main: { folders: ["*"], packages: [] },
};

export type GlobalRule = {
  readonly name: string;
  /** Matched against code whose comments and strings are blanked. */
  readonly pattern: RegExp;
  /** Paths, or folders that end in a slash, that are examined; all of src if absent. */
  readonly examined?: readonly string[];
  readonly allowed: readonly string[];
  readonly instead: string;
};

export const globalRules: readonly GlobalRule[] = [
  {
    name: "process",
    pattern: /(?<![.\w$])process\s*(?:\?\.|[.[])/,
    allowed: ["src/main.ts"],
    instead: "take it as a parameter or a port that main.ts fills",
  },
  {
    name: "the environment",
    pattern: /\bBun\.(?:env|argv)\b|\bimport\.meta\.env\b/,
    allowed: ["src/main.ts"],
    instead: "take it as a parameter that main.ts fills",
  },
  {
    name: "console",
    pattern: /(?<![.\w$])console\s*(?:\?\.|[.[])/,
    allowed: ["src/main.ts", "src/agent/log.ts"],
    instead: "return text, or use the log of agent/",
  },
  {
    name: "the clock",
    pattern: /(?<![.\w$])(?:Date|Temporal|performance)\b/,
    examined: ["src/policy/"],
    allowed: [],
    instead: "take now as an input",
  },
  {
    name: "randomness",
    pattern: /\bMath\.random\b|(?<![.\w$])crypto\b/,
    examined: ["src/policy/"],
    allowed: [],
    instead: "take it as an input",
  },
];

export const linesMax = 300;
