/** Document `Audit` and what `crigc audit` prints: what looks leaked or inconsistent, and what can be done about it. */
import { assertNever } from "../model/assert.ts";
import type { DiskBreakdown } from "../model/plan.ts";
import type { Container, Image, RuntimeInfo, Sandbox } from "../model/snapshot.ts";
import { type Instant, toRfc3339 } from "../model/time.ts";
import { counted, humanBytes } from "./bytes.ts";
import { imageName, shortId } from "./image-names.ts";
import { document, type JsonObject, timeOf } from "./json.ts";
import { breakdownWords } from "./pass-words.ts";
import { containerName, sandboxName } from "./plan-containers-table.ts";
import { nodeLine, text } from "./plan-table.ts";
import {
  breakdownJson,
  containerJson,
  imageJson,
  runtimeJson,
  sandboxJson,
} from "./snapshot-json.ts";
import { wrapped } from "./table.ts";
import { clean, paint, type Screen } from "./terminal.ts";

export type AuditFinding =
  /** Neither tag nor digest names it. */
  | { readonly kind: "nameless-image"; readonly image: Image; readonly inUse: boolean }
  | {
      readonly kind: "ghost-image";
      readonly image: Image;
      readonly since: Instant;
      readonly attempts: number;
    }
  /** Bytes of a filesystem that no image, container or log explains. */
  | {
      readonly kind: "unexplained-bytes";
      readonly filesystem: string;
      readonly breakdown: DiskBreakdown;
    }
  | { readonly kind: "foreign-container"; readonly container: Container }
  | { readonly kind: "foreign-sandbox"; readonly sandbox: Sandbox }
  | { readonly kind: "stray-log-entry"; readonly entry: string }
  /** A reference that a container has and no image carries. */
  | { readonly kind: "unresolved-reference"; readonly reference: string; readonly message: string };

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
        "",
      ];
    }),
  ]);
}

function findingWords(finding: AuditFinding): string {
  switch (finding.kind) {
    case "nameless-image":
      return `image ${shortId(finding.image.id)} of ${humanBytes(finding.image.sizeBytes)} has neither tag nor digest${finding.inUse ? ", and is in use" : ""}`;
    case "ghost-image":
      return `image ${imageName(finding.image)} was removed ${counted(finding.attempts, "time")} with success since ${toRfc3339(finding.since)} and is still listed`;
    case "unexplained-bytes":
      return `${humanBytes(finding.breakdown.otherBytes)} on ${clean(finding.filesystem)} belong to no image, container or pod log (${breakdownWords(finding.breakdown)})`;
    case "foreign-container":
      return `container ${containerName(finding.container)} (${shortId(finding.container.id)}) was not made by Kubernetes`;
    case "foreign-sandbox":
      return `sandbox ${sandboxName(finding.sandbox)} (${shortId(finding.sandbox.id)}) was not made by Kubernetes`;
    case "stray-log-entry":
      return `${clean(finding.entry)} in the log directory is not the directory of a pod`;
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
    case "foreign-container":
    case "foreign-sandbox":
      return "crigc leaves it alone; remove it with the tool that made it, or set collectForeign";
    case "stray-log-entry":
      return "crigc leaves it alone; remove it by hand if nothing needs it";
    case "unresolved-reference":
      return "nothing, if the container is about to go; its image was removed by another program";
    default:
      return assertNever(kind);
  }
}

function findingData(finding: AuditFinding): JsonObject {
  switch (finding.kind) {
    case "nameless-image":
      return { image: imageJson(finding.image), inUse: finding.inUse };
    case "ghost-image":
      return {
        image: imageJson(finding.image),
        since: timeOf(finding.since),
        attempts: finding.attempts,
      };
    case "unexplained-bytes":
      return { filesystem: finding.filesystem, breakdown: breakdownJson(finding.breakdown) };
    case "foreign-container":
      return { container: containerJson(finding.container) };
    case "foreign-sandbox":
      return { sandbox: sandboxJson(finding.sandbox) };
    case "stray-log-entry":
      return { entry: finding.entry };
    case "unresolved-reference":
      return { reference: finding.reference, message: finding.message };
    default:
      return assertNever(finding);
  }
}
