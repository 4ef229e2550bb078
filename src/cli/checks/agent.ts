/** Whether an agent runs, and whether it is well. */

import { isMap } from "../../config/document.ts";
import type { DoctorCheck } from "../../report/table/doctor.ts";
import { failed, ok, warning } from "./check.ts";

const NAME = "agent";

/** `status`: the document that the agent gave, or why there is none. */
export function agentCheck(
  status:
    | { readonly kind: "answered"; readonly text: string }
    | { readonly kind: "none"; readonly why: string },
  version: string,
): DoctorCheck {
  if (status.kind === "none")
    return warning(NAME, `nothing is collected but by crigc gc: ${status.why}`, null);
  const document = parsed(status.text);
  if (document === null)
    return failed(NAME, "what answers at the control socket is no crigc", null);
  const textOf = (field: string): string | null => {
    const value = document[field];
    return typeof value === "string" ? value : null;
  };
  const troubles = TROUBLES.flatMap(([field, words]) => {
    const said = textOf(field);
    return said === null ? [] : [`${words}: ${said}`];
  });
  const who = `process ${String(document["pid"])}, version ${textOf("version") ?? "unknown"}`;
  if (troubles.length > 0)
    return failed(
      NAME,
      `it runs (${who}), and is not well: ${troubles.join("; ")}`,
      "crigc status says more",
    );
  if (textOf("version") !== version)
    return warning(
      NAME,
      `it runs (${who}), and this is version ${version}`,
      "restart the agent after an upgrade",
    );
  return ok(NAME, `it runs (${who})${document["dryRun"] === true ? ", as a dry run" : ""}`);
}

const TROUBLES: readonly (readonly [field: string, words: string])[] = [
  ["runtimeError", "the runtime does not answer it"],
  ["configurationError", "a changed configuration was refused"],
  ["ledgerError", "its memory is not kept on disk"],
];

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isMap(value) && value["kind"] === "Status" ? value : null;
  } catch {
    return null;
  }
}
