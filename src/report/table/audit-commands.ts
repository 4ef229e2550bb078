/** Commands that look closer at a finding of the audit, to be copied into a shell; one that removes is shown only where nothing keeps the thing. */

import { assertNever } from "../../model/assert.ts";
import type { Image, RuntimeInfo } from "../../model/snapshot.ts";
import type { AuditFinding } from "./audit-finding.ts";

export function auditCommands(finding: AuditFinding, runtime: RuntimeInfo): readonly string[] {
  const crictl = `crictl --runtime-endpoint ${quoted(runtime.endpoint)}`;
  const images = `crictl --image-endpoint ${quoted(runtime.imageEndpoint)}`;
  const remove = (image: Image): string => `${images} rmi ${quoted(image.id)}`;
  const inspect = (image: Image): string => `${images} inspecti ${quoted(image.id)}`;
  const ctr = ctrOf(runtime);
  switch (finding.kind) {
    case "nameless-image":
    case "made-up-name":
    case "untagged-image":
      return [inspect(finding.image), ...(finding.removable ? [remove(finding.image)] : [])];
    case "ghost-image":
      return [
        inspect(finding.image),
        ...ctr.map((it) => `${it} images ls | grep ${quoted(hexOf(finding.image))}`),
      ];
    case "unexplained-bytes":
      return [
        `du -xhd2 ${quoted(finding.filesystem)} | sort -h | tail -n 20`,
        `lsof +L1 ${quoted(finding.filesystem)}`,
        ...ctr.map((it) => `${it.replace(" --namespace k8s.io", "")} namespaces ls`),
      ];
    case "unexplained-store-bytes":
      return ctr.flatMap((it) => [
        `${it} snapshots usage`,
        `${it} leases ls`,
        `${it.replace(" --namespace k8s.io", "")} namespaces ls`,
      ]);
    case "foreign-container":
    case "orphan-container":
      return [`${crictl} inspect ${quoted(finding.container.id)}`];
    case "foreign-sandbox":
      return [`${crictl} inspectp ${quoted(finding.sandbox.id)}`];
    case "stray-log-entry":
      return [`ls -lad ${quoted(`${finding.directory}/${finding.entry}`)}`];
    case "unresolved-reference":
      return [`${images} inspecti ${quoted(finding.reference)}`];
    case "unread-logs":
      return [];
    case "unknown-use":
      return [`${crictl} ps --all`, `${images} images`];
    default:
      return assertNever(finding);
  }
}

/** containerd's own client; no other runtime has one that sees behind CRI. */
const ctrOf = (runtime: RuntimeInfo): readonly string[] =>
  runtime.name === "containerd"
    ? [`ctr --address ${quoted(runtime.endpoint.replace(/^unix:\/\//, ""))} --namespace k8s.io`]
    : [];

const hexOf = (image: Image): string => image.id.replace(/^sha256:/, "");

/** One word of a shell, whatever is in it, since names come from the runtime; behind `--` where it would be taken for a flag. */
function quoted(text: string): string {
  if (/^[\w./:@=+][\w./:@=+-]*$/.test(text)) return text;
  const word = `'${text.replaceAll("'", `'\\''`)}'`;
  return text.startsWith("-") ? `-- ${word}` : word;
}
