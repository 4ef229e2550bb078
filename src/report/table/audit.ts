/** Document `Audit` and what `crigc audit` prints: what looks leaked or inconsistent, and what can be done about it. */

import { assertNever } from "../../model/assert.ts";
import type { RuntimeInfo } from "../../model/snapshot.ts";
import { type Instant, toRfc3339 } from "../../model/time.ts";
import { counted, humanBytes } from "../bytes.ts";
import { logsErrorWords } from "../container-reasons.ts";
import { document, type JsonObject, timeOf } from "../document/json.ts";
import {
  breakdownJson,
  containerJson,
  imageJson,
  runtimeJson,
  sandboxJson,
} from "../document/snapshot.ts";
import { imageName, shortId } from "../names.ts";
import { breakdownWords } from "../pass-words.ts";
import { clean, paint, type Screen } from "../terminal.ts";
import { auditCommands } from "./audit-commands.ts";
import type { AuditFinding } from "./audit-finding.ts";
import { containerName, sandboxName } from "./plan-containers.ts";
import { nodeLine, text } from "./plan.ts";
import { wrapped } from "./table.ts";

export interface AuditReport {
  readonly runtime: RuntimeInfo;
  readonly observedAt: Instant;
  readonly findings: readonly AuditFinding[];
}

export const auditDocument = (report: AuditReport): JsonObject =>
  document("Audit", {
    observedAt: timeOf(report.observedAt),
    runtime: runtimeJson(report.runtime),
    findings: report.findings.map((finding) => ({
      code: finding.kind,
      text: findingWords(finding),
      advice: adviceWords(finding.kind),
      commands: auditCommands(finding, report.runtime),
      ...findingData(finding),
    })),
  });

export function auditTable(report: AuditReport, screen: Screen): string {
  const head = [nodeLine(report.runtime, report.observedAt, screen), ""];
  if (report.findings.length === 0) return text([...head, "Nothing looks leaked or inconsistent."]);
  const kinds = Array.from(new Set(report.findings.map((finding) => finding.kind)));
  return text([
    ...head,
    ...kinds.flatMap((kind) => {
      const findings = report.findings.filter((finding) => finding.kind === kind);
      return [
        paint(screen, "bold", `${counted(findings.length, "finding")}: ${kind}`),
        ...findings.flatMap((it) => wrapped(`${findingWords(it)}.`, screen, "  ")),
        ...wrapped(`What to do: ${adviceWords(kind)}.`, screen, "  ").map((line) =>
          paint(screen, "dim", line),
        ),
        ...exampleLines(findings[0], report.runtime),
        "",
      ];
    }),
  ]);
}

/** To look closer, for the first of a kind; never shortened, so that they can be copied. */
const exampleLines = (
  finding: AuditFinding | undefined,
  runtime: RuntimeInfo,
): readonly string[] =>
  finding === undefined ? [] : auditCommands(finding, runtime).map((it) => `    ${clean(it)}`);

function findingWords(finding: AuditFinding): string {
  switch (finding.kind) {
    case "nameless-image":
      return `image ${shortId(finding.image.id)} of ${humanBytes(finding.image.sizeBytes)} has neither tag nor digest${finding.inUse ? ", and is in use" : ""}`;
    case "ghost-image":
      return `image ${imageName(finding.image)} is still listed after ${counted(finding.attempts, "removal")} that the runtime called a success or did not answer in time, the first at ${toRfc3339(finding.since)}`;
    case "unexplained-bytes":
      return `${humanBytes(finding.breakdown.otherBytes)} on ${clean(finding.filesystem)} belong to no image, container or pod log (${breakdownWords(finding.breakdown)})`;
    case "untagged-image":
      return `image ${imageName(finding.image)} of ${humanBytes(finding.image.sizeBytes)} has no tag, and nothing uses it`;
    case "made-up-name":
      return `image ${shortId(finding.image.id)} of ${humanBytes(finding.image.sizeBytes)} has only a name that the runtime made up when it was imported (${clean(finding.image.repoDigests[0] ?? "")})${finding.inUse ? ", and is in use" : ""}`;
    case "unexplained-store-bytes":
      return `the runtime's image store on ${clean(finding.filesystem)} takes ${humanBytes(finding.usedBytes)}, which ${counted(finding.images, "image")} of ${humanBytes(finding.reportedBytes)} in all cannot explain`;
    case "orphan-container":
      return `container ${containerName(finding.container)} (${shortId(finding.container.id)}) is in a sandbox that is not listed (${shortId(finding.container.sandboxId)})`;
    case "unknown-use":
      return `what ${clean(finding.subject)} uses is not known, so no image is removed: ${clean(finding.message)}`;
    case "foreign-container":
      return `container ${containerName(finding.container)} (${shortId(finding.container.id)}) was not made by Kubernetes`;
    case "foreign-sandbox":
      return `sandbox ${sandboxName(finding.sandbox)} (${shortId(finding.sandbox.id)}) was not made by Kubernetes`;
    case "stray-log-entry":
      return `${clean(finding.entry)} in ${clean(finding.directory)} is not the directory of a pod`;
    case "unread-logs":
      return logsErrorWords(finding.message);
    case "unresolved-reference":
      return `no image carries ${clean(finding.reference)}, which a container names: ${clean(finding.message)}`;
    default:
      return assertNever(finding);
  }
}

function adviceWords(kind: AuditFinding["kind"]): string {
  switch (kind) {
    case "nameless-image":
      return "unused ones are collected like any other image; one that stays was left by an interrupted pull or by a tag that moved";
    case "ghost-image":
      return "look at the runtime's log for the image's ID; something may hold it that CRI does not show, and a restart of the runtime often lets it go";
    case "unexplained-bytes":
      return "look for other data on that filesystem: build caches, images of other namespaces of the runtime, volumes, files that are deleted and still open";
    case "untagged-image":
      return "nothing, where pods name images by digest; else it is what a tag that moved has left behind, and is collected like any other image";
    case "made-up-name":
      return "no pod can name it so: import the archive again without --digests, or with the name that pods use";
    case "unexplained-store-bytes":
      return "snapshots or blobs without an image are left over, by interrupted pulls or in another namespace of the runtime; a restart of the runtime collects what is unreferenced; never prune content by hand, it breaks later pulls";
    case "orphan-container":
      return "it goes like any dead container once its pod is gone; one that runs was left behind by the runtime";
    case "unknown-use":
      return "look at what the runtime says; a restart of the runtime often helps";
    case "foreign-container":
    case "foreign-sandbox":
      return "crigc leaves it alone; remove it with the tool that made it, or set collectForeign";
    case "stray-log-entry":
      return "crigc leaves it alone; remove it by hand if nothing needs it";
    case "unread-logs":
      return "see what lies in the place of the directory that is named; logs are collected again once it can be read";
    case "unresolved-reference":
      return "nothing, if the container is about to go; its image was removed by another program";
    default:
      return assertNever(kind);
  }
}

function findingData(finding: AuditFinding): JsonObject {
  switch (finding.kind) {
    case "nameless-image":
      return {
        image: imageJson(finding.image),
        inUse: finding.inUse,
        removable: finding.removable,
      };
    case "ghost-image":
      return {
        image: imageJson(finding.image),
        since: timeOf(finding.since),
        attempts: finding.attempts,
      };
    case "unexplained-bytes":
      return { filesystem: finding.filesystem, breakdown: breakdownJson(finding.breakdown) };
    case "untagged-image":
      return { image: imageJson(finding.image), removable: finding.removable };
    case "made-up-name":
      return {
        image: imageJson(finding.image),
        inUse: finding.inUse,
        removable: finding.removable,
      };
    case "unexplained-store-bytes":
      return {
        filesystem: finding.filesystem,
        usedBytes: finding.usedBytes,
        reportedBytes: finding.reportedBytes,
        images: finding.images,
      };
    case "orphan-container":
      return { container: containerJson(finding.container) };
    case "unknown-use":
      return { subject: finding.subject, message: finding.message };
    case "foreign-container":
      return { container: containerJson(finding.container) };
    case "foreign-sandbox":
      return { sandbox: sandboxJson(finding.sandbox) };
    case "stray-log-entry":
      return { directory: finding.directory, entry: finding.entry };
    case "unread-logs":
      return { message: finding.message };
    case "unresolved-reference":
      return { reference: finding.reference, message: finding.message };
    default:
      return assertNever(finding);
  }
}
