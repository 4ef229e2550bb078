// What the running system is told of an installation: a plan, made without touching anything.

import { describe, expect, test } from "bun:test";

import { installedFiles } from "../../src/install/installed-files.ts";
import type { Manifest } from "../../src/install/manifest.ts";
import { installPlan, type InstallRequest } from "../../src/install/plan.ts";
import type { Step } from "../../src/install/step.ts";
import { removalPlan } from "../../src/install/uninstall.ts";
import { sha256OfText } from "../../src/node/files.ts";
import type { Found } from "../../src/node/rooted-tree.ts";

const request: InstallRequest = {
  version: "1.0.0",
  init: "systemd",
  executable: { path: "/usr/local/bin/crigc", from: "/proc/self/exe", sha256: "a".repeat(64) },
  shellTexts: { man: "page", bash: "bash", zsh: "zsh", fish: "fish" },
  baseline: false,
  live: true,
  stops: false,
  start: false,
};

const commandsIn = (steps: readonly Step[]): readonly string[] =>
  steps.flatMap((step) => (step.kind === "command" ? [step.words.join(" ")] : []));

const planned = (
  changes: Partial<InstallRequest>,
  before: Manifest | null = null,
  facts: ReadonlyMap<string, Found> = new Map(),
): readonly Step[] => installPlan({ ...request, ...changes }, before, facts);

/** The manifest and the tree that the first installation leaves. */
function afterFirst(): { readonly before: Manifest; readonly facts: ReadonlyMap<string, Found> } {
  const facts = new Map<string, Found>();
  const files: Record<string, string> = {};
  for (const step of planned({})) {
    if (step.kind === "directory") facts.set(step.path, { kind: "directory" });
    if (step.kind === "link") facts.set(step.path, { kind: "link", target: step.target });
    if (step.kind === "executable")
      facts.set(step.path, { kind: "file", sha256: request.executable.sha256, mode: step.mode });
    if (step.kind === "text") {
      facts.set(step.path, { kind: "file", sha256: sha256OfText(step.text), mode: step.mode });
      files[step.path] = sha256OfText(step.text);
    }
  }
  const links = [...facts].flatMap(([path, fact]) => (fact.kind === "link" ? [path] : []));
  const directories = [...facts].flatMap(([path, fact]) =>
    fact.kind === "directory" ? [path] : [],
  );
  const executable = request.executable.path;
  files[executable] = request.executable.sha256;
  return {
    before: { version: "1.0.0", init: "systemd", executable, directories, files, links },
    facts,
  };
}

describe("the running system", () => {
  test("reloads units after a first installation, and starts nothing", () => {
    expect(commandsIn(planned({}))).toEqual([
      "systemctl daemon-reload",
      "systemctl try-restart --no-block crigc.service",
    ]);
  });

  test("starts the agent with --start", () => {
    expect(commandsIn(planned({ start: true })).at(-1)).toBe(
      "systemctl start --no-block crigc.service",
    );
    expect(commandsIn(planned({ start: true, init: "openrc" })).at(-1)).toBe(
      "rc-service crigc start",
    );
  });

  test("is left alone if nothing changed", () => {
    const { before, facts } = afterFirst();
    expect(commandsIn(planned({}, before, facts))).toEqual([]);
  });

  test("restarts a running agent when its executable has changed", () => {
    const { before, facts } = afterFirst();
    const executable = { ...request.executable, sha256: "b".repeat(64) };
    expect(commandsIn(planned({ executable }, before, facts))).toContain(
      "systemctl try-restart --no-block crigc.service",
    );
  });

  test("is not reloaded for a new manual page", () => {
    const { before, facts } = afterFirst();
    const shellTexts = { ...request.shellTexts, man: "another page" };
    const steps = planned({ shellTexts }, before, facts);
    expect(steps.map((step) => "path" in step && step.path)).toEqual([
      "/usr/local/share/man/man8/crigc.8",
      "/var/lib/crigc/install.json",
    ]);
  });

  test("is not touched if the tree is another one", () => {
    expect(commandsIn(planned({ live: false, start: true }))).toEqual([]);
  });

  test("stops the agent before anything is removed, and reloads units afterwards", () => {
    const { before, facts } = afterFirst();
    const steps = removalPlan({ purge: true, live: true }, before, facts);
    expect(steps[0]).toEqual({ kind: "command", words: ["systemctl", "stop", "crigc.service"] });
    expect(steps.at(-1)).toEqual({ kind: "command", words: ["systemctl", "daemon-reload"] });
  });
});

test("the running system stops the service of an earlier installation before it is removed", () => {
  const { before, facts } = afterFirst();
  const steps = planned({ init: "none", live: false, stops: true }, before, facts);
  expect(steps[0]).toEqual({ kind: "command", words: ["systemctl", "stop", "crigc.service"] });
  expect(steps.at(-1)).toEqual({ kind: "command", words: ["systemctl", "daemon-reload"] });
});

describe("the plan", () => {
  test("has no service without an init system", () => {
    const { shellTexts } = request;
    const wanted = installedFiles({
      init: "none",
      executable: "/bin/crigc",
      baseline: true,
      shellTexts,
    });
    expect(wanted.map(({ path }) => path)).toEqual([
      "/var/lib/crigc",
      "/bin/crigc",
      "/etc/crigc",
      "/etc/crigc/crigc.yaml",
      "/etc/crigc/conf.d",
      "/etc/crigc/keep.d",
      "/usr/share/man/man8/crigc.8",
      "/usr/share/bash-completion/completions/crigc",
      "/usr/share/zsh/site-functions/_crigc",
      "/etc/fish/completions/crigc.fish",
    ]);
  });
});
