/** The files of an installed crigc, for an init system. */
import { configTemplate } from "./config-template.ts";
import type { Init } from "./manifest.ts";
import { openrcScript, openrcSettings } from "./openrc.ts";
import { installed, shellFilesOf, type ShellTexts } from "./paths.ts";
import type { Step } from "./step.ts";
import { baselineDropIn, systemdUnit } from "./unit.ts";

export type InstalledFile =
  | Extract<Step, { readonly kind: "directory" | "link" }>
  /** `theirs`: belongs to the operator; written only if missing. */
  | (Extract<Step, { readonly kind: "text" }> & { readonly theirs: boolean })
  | { readonly kind: "executable"; readonly path: string };

export function installedFiles(about: {
  readonly init: Init;
  readonly executable: string;
  readonly baseline: boolean;
  readonly shellTexts: ShellTexts;
}): readonly InstalledFile[] {
  const places = shellFilesOf(about.executable);
  return [
    { kind: "directory", path: installed.stateDirectory, mode: 0o700 },
    { kind: "executable", path: about.executable },
    { kind: "directory", path: installed.configDirectory, mode: 0o755 },
    { kind: "text", path: installed.config, text: configTemplate(), mode: 0o644, theirs: true },
    { kind: "directory", path: installed.dropIns, mode: 0o755 },
    { kind: "directory", path: installed.keepDirectory, mode: 0o755 },
    text(places.man, about.shellTexts.man, 0o644),
    text(places.bash, about.shellTexts.bash, 0o644),
    text(places.zsh, about.shellTexts.zsh, 0o644),
    text(places.fish, about.shellTexts.fish, 0o644),
    ...serviceFor(about),
  ];
}

const text = (path: string, content: string, mode: number): InstalledFile => ({
  kind: "text",
  path,
  text: content,
  mode,
  theirs: false,
});

function serviceFor({
  init,
  executable,
  baseline,
}: Parameters<typeof installedFiles>[0]): readonly InstalledFile[] {
  switch (init) {
    case "systemd":
      return [
        text(installed.systemdUnit, systemdUnit({ executable }), 0o644),
        ...(baseline
          ? [text(installed.systemdBaseline, baselineDropIn({ executable }), 0o644)]
          : []),
        { kind: "link", path: installed.systemdLink, target: installed.systemdUnit },
      ];
    case "openrc":
      return [
        text(installed.openrcScript, openrcScript({ executable }), 0o755),
        ...(baseline ? [text(installed.openrcSettings, openrcSettings, 0o644)] : []),
        { kind: "link", path: installed.openrcLink, target: installed.openrcScript },
      ];
    case "none":
      return [];
  }
}
