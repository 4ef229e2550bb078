// Loaded before the tests by scripts/coverage: rules are loaded with counters on every branch, and the counts are written at the end.

import { afterAll } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

import { plugin } from "bun";

/** Of what is used here; it has no declarations. */
type Package = {
  createInstrumenter(options: object): { instrumentSync(text: string, path: string): string };
};
const require = createRequire(import.meta.url);
const istanbul = require("istanbul-lib-instrument") as Package;

const instrumenter = istanbul.createInstrumenter({
  esModules: true,
  compact: false,
  parserPlugins: ["typescript", "importMeta"],
});

plugin({
  name: "coverage",
  setup(build) {
    build.onLoad({ filter: /\/src\/policy\/.*\.ts$/ }, ({ path }) => ({
      contents: instrumenter.instrumentSync(readFileSync(path, "utf8"), path),
      loader: "ts",
    }));
  },
});

afterAll(() => {
  const counts = (globalThis as { __coverage__?: unknown }).__coverage__ ?? {};
  writeFileSync(process.env["CRIGC_COVERAGE"] ?? "", JSON.stringify(counts));
});
