/** `crigc version`: print the version and the commit. */

import { readEmbedded } from "../../host/files/embedded.ts";
import { legalPaths } from "../../install/legal.ts";
import { document, printedJson } from "../../report/document/json.ts";
import { type Build, command, type Format, has, type Invocation, option } from "../command.ts";
import { exit } from "../exit.ts";

export const version = command({
  name: "version",
  summary: "print the version and the commit it was built from",
  doc: "Needs no configuration and no runtime.",
  options: [
    option("licenses", "third-party components with their licences"),
    option("sbom", "software bill of materials, as CycloneDX JSON"),
  ],
  json: true,
  readOnly: true,
  ofItself: true,
  run: async (context, invocation) => {
    const path = legalPathOf(invocation);
    context.stdout(
      path === null ? versionAnswer(context.build, invocation.output) : readEmbedded(path),
    );
    return exit.done;
  },
});

function legalPathOf(invocation: Invocation): string | null {
  if (has(invocation, "licenses")) return legalPaths.licenses;
  return has(invocation, "sbom") ? legalPaths.sbom : null;
}

export function versionAnswer(build: Build, output: Format): string {
  const { version: number, commit } = build;
  if (output === "json")
    return printedJson(
      document("Version", { version: number, commit: commit === "" ? null : commit }),
    );
  return commit === "" ? `crigc ${number}\n` : `crigc ${number} (${commit})\n`;
}
