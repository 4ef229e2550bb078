/** Doctor's check of the agent: is it running and healthy? */

import { isMap, parsedJson } from "../../model/values.ts";
import { failed, ok, type Verdict, warning } from "./check.ts";

/** `status`: the agent's document, or the reason for its absence. */
export function agentCheck(
  status:
    | { readonly kind: "answered"; readonly text: string }
    | { readonly kind: "none"; readonly why: string },
  version: string,
): Verdict {
  if (status.kind === "none")
    return warning(`${status.why}; without an agent, only crigc gc removes anything`, null);
  const document = parsedJson(status.text);
  if (!isMap(document) || document["kind"] !== "Status")
    return failed("another program answers at the control socket", null);
  const textOf = (field: string): string | null => {
    const value = document[field];
    return typeof value === "string" ? value : null;
  };
  const problems = PROBLEMS.flatMap(([field, words]) => {
    const said = textOf(field);
    return said === null ? [] : [`${words}: ${said}`];
  });
  const who = `process ${String(document["pid"])}, version ${textOf("version") ?? "unknown"}`;
  if (problems.length > 0)
    return failed(
      `running (${who}), with errors: ${problems.join("; ")}`,
      "crigc status shows details",
    );
  const changed = textOf("configurationError");
  if (changed !== null)
    return warning(
      `running (${who}); its configuration files differ from what is in force: ${changed}`,
      null,
    );
  if (textOf("version") !== version)
    return warning(
      `running (${who}); this crigc is version ${version}`,
      "restart the agent after an upgrade",
    );
  return ok(`running (${who})${document["dryRun"] === true ? ", as a dry run" : ""}`);
}

const PROBLEMS: readonly (readonly [field: string, words: string])[] = [
  ["runtimeError", "the runtime does not answer"],
  ["ledgerError", "the ledger is not saved"],
];
