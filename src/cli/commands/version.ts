/** `crigc version`: print the version and the commit. */

import { legalFiles } from "../../install/legal.ts";
import { usageError } from "../../model/errors.ts";
import { document, printedJson } from "../../report/document.ts";
import { type Build, command, type Format, has, option } from "../command.ts";
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
    const { licenses, sbom } = legalFiles;
    const wantsLicences = has(invocation, "licenses");
    const wantsBill = has(invocation, "sbom");
    if (wantsLicences && wantsBill)
      throw usageError("crigc version", "", "--licenses contradicts --sbom; use one of them");
    if (wantsLicences && invocation.output === "json")
      throw usageError("-o", "json", "--licenses prints text only; leave -o out");
    const asked = wantsLicences ? licenses : wantsBill ? sbom : null;
    context.stdout((await asked?.text()) ?? versionAnswer(context.build, invocation.output));
    return exit.done;
  },
});

export function versionAnswer(build: Build, output: Format): string {
  const { version: number, commit } = build;
  if (output === "json")
    return printedJson(
      document("Version", { version: number, commit: commit === "" ? null : commit }),
    );
  return commit === "" ? `crigc ${number}\n` : `crigc ${number} (${commit})\n`;
}
