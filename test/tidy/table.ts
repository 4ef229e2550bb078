// The import table of the architecture and the lists of what only some folders may use, as data.

export type FolderRule = {
  /** Folders of src, or files and folders of the top level, beside the folder itself. */
  readonly folders: readonly string[];
  /** Package names; a trailing star matches every name that starts so. */
  readonly packages: readonly string[];
  /** What exactly one file of the folder may use beside that: package names, or the global Bun. */
  readonly oneFile?: readonly string[];
};

/** Plain data that every folder may read, wherever it stands. */
export const SHARED_FILES: readonly string[] = ["src/cri/runtimes.ts"];

/** A change here comes with a decision record in docs/decisions. */
export const folderRules: Readonly<Record<string, FolderRule>> = {
  model: { folders: [], packages: ["valibot"] },
  policy: { folders: ["model"], packages: [] },
  config: { folders: ["model"], packages: ["valibot", "yaml", "Bun"], oneFile: ["node:fs"] },
  cri: {
    folders: ["model"],
    packages: ["@grpc/grpc-js", "@grpc/proto-loader", "node:buffer", "Bun"],
    // The macro that reads the proto.
    oneFile: ["node:fs", "node:path", "protobufjs"],
  },
  node: {
    folders: ["model"],
    packages: ["node:*", "valibot", "bun:ffi", "bun:jsc", "Bun"],
  },
  state: { folders: ["model", "node"], packages: ["node:*", "Bun"] },
  report: { folders: ["model"], packages: ["Bun", "yaml"] },
  engine: {
    folders: ["model", "policy", "config", "gc", "cri", "node", "report", "state"],
    packages: ["node:*", "valibot"],
  },
  gc: { folders: ["model", "policy", "report"], packages: ["valibot"] },
  cli: {
    folders: ["model", "config", "policy", "gc", "report", "node", "install", "agent", "engine"],
    packages: [],
  },
  install: {
    folders: ["model", "node", "deploy", "package.json"],
    packages: ["node:fs", "node:path", "Bun"],
  },
  agent: {
    folders: ["model", "policy", "config", "gc", "node", "report", "state", "engine"],
    packages: ["node:*", "valibot"],
  },
  main: { folders: ["*"], packages: [] },
};
