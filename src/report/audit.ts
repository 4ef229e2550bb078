/** Document `Audit` and the output of `crigc audit`. Each kind of finding is declared once: sentence, advice, commands. */

import type { AuditFinding } from "../model/reports.ts";
import type { Image, RuntimeInfo } from "../model/snapshot.ts";
import { toRfc3339 } from "../model/time.ts";
import { shellWord } from "../model/values.ts";
import { logsErrorWords } from "./container-reasons.ts";
import { breakdownWords } from "./disk.ts";
import {
  containerJson,
  dataJson,
  document,
  imageJson,
  runtimeJson,
  sandboxJson,
  type SeenNode,
} from "./document.ts";
import { Printer, shortened } from "./printer.ts";
import { clean, type Screen } from "./terminal.ts";
import {
  containerName,
  counted,
  humanBytes,
  imageName,
  kindTitle,
  sandboxName,
  shortId,
} from "./words.ts";

export type AuditDocument = ReturnType<typeof auditDocument>;

export const auditDocument = (
  findings: readonly AuditFinding[],
  { runtime, observedAt }: SeenNode,
) =>
  document("Audit", {
    observedAt: toRfc3339(observedAt),
    runtime: runtimeJson(runtime),
    findings: findings.map((finding) => ({
      code: finding.kind,
      text: entryOf(finding).text(finding),
      advice: entryOf(finding).advice,
      commands: auditCommands(finding, runtime),
      ...dataJson(finding),
      ...("image" in finding && { image: imageJson(finding.image) }),
      ...("container" in finding && { container: containerJson(finding.container) }),
      ...("sandbox" in finding && { sandbox: sandboxJson(finding.sandbox) }),
    })),
  });

export function auditTable(audit: AuditDocument, screen: Screen): string {
  const printer = new Printer(screen);
  printer.node(audit);
  printer.gap();
  if (audit.findings.length === 0) printer.line("No findings.");
  for (const [code, those] of Map.groupBy(audit.findings, (it) => it.code)) {
    const title = kindTitle(code);
    const { shown, hidden } = shortened(those, screen);
    printer.line(`${counted(those.length, "finding")}: ${title}`, "bold");
    for (const { text } of shown) printer.say(`${text}.`, undefined, "  ");
    printer.hidden(hidden, () => title);
    // Advice and commands of the first finding; commands are never truncated, so that they can be copied.
    for (const { advice, commands } of those.slice(0, 1)) {
      printer.say(`What to do: ${advice}.`, "dim", "  ");
      for (const line of commands) printer.line(`    ${clean(line)}`);
    }
    printer.gap();
  }
  return printer.text();
}

/** Commands to paste into a shell: to inspect, or to remove what nothing keeps. */
export const auditCommands = (finding: AuditFinding, runtime: RuntimeInfo): readonly string[] =>
  entryOf(finding).commands(finding, toolsOf(runtime));

type Tools = ReturnType<typeof toolsOf>;

interface Entry<Finding> {
  /** Without a full stop. */
  text(finding: Finding): string;
  readonly advice: string;
  commands(finding: Finding, tools: Tools): readonly string[];
}

const entryOf = ({ kind }: AuditFinding): Entry<AuditFinding> => FINDINGS[kind];

const FREE_TO_USE =
  "to let every pod use it without asking, stop the kubelet, delete the record and the intent of that image, and start the kubelet (deleting them under a running kubelet has no effect), or on a node that is offline for good set imagePullCredentialsVerificationPolicy: NeverVerify";
const COLLECTED = "GC treats it like any other image";

const FINDINGS: {
  readonly [Kind in AuditFinding["kind"]]: Entry<Extract<AuditFinding, { kind: Kind }>>;
} = {
  "nameless-image": {
    text: ({ image, inUse }) =>
      `image ${shortId(image.id)} (${humanBytes(image.sizeBytes)}) has neither tag nor digest${inUse ? " and is in use" : ""}`,
    advice: `an interrupted pull or a moved tag left it behind; ${COLLECTED}`,
    commands: (finding, tools) => tools.forImage(finding),
  },
  "ghost-image": {
    text: ({ image, attempts, since }) =>
      `image ${imageName(image)} is still listed after ${counted(attempts, "removal")} since ${toRfc3339(since)}`,
    advice:
      "search the runtime's log for the image ID; something that CRI does not show may hold the image, and restarting the runtime often frees it",
    commands: ({ image }, tools) => [
      tools.inspectImage(image.id),
      ...tools.ctr.map(
        (it) => `${it} images ls | grep ${shellWord(image.id.replace(/^sha256:/, ""))}`,
      ),
    ],
  },
  "unexplained-bytes": {
    text: ({ filesystem, breakdown }) =>
      `${humanBytes(breakdown.otherBytes)} on ${clean(filesystem)} belong to no image, container or pod log (${breakdownWords(breakdown)})`,
    advice:
      "search that filesystem for other data: build caches, images in other namespaces of the runtime, volumes, deleted files that are still open",
    commands: ({ filesystem }, tools) => [
      // The store is in a subdirectory, where the other data are not.
      `du -xhd2 "$(findmnt -no TARGET -T ${shellWord(filesystem)})" | sort -h | tail -n 20`,
      `lsof +aL1 "$(findmnt -no TARGET -T ${shellWord(filesystem)})"`,
      ...tools.namespaces,
    ],
  },
  "untagged-image": {
    text: ({ image }) =>
      `image ${imageName(image)} (${humanBytes(image.sizeBytes)}) has no tag and is unused`,
    advice: `nothing, if pods name images by digest; otherwise a moved tag left it behind, and ${COLLECTED}`,
    commands: (finding, tools) => tools.forImage(finding),
  },
  "made-up-name": {
    text: ({ image, inUse }) =>
      `image ${shortId(image.id)} (${humanBytes(image.sizeBytes)}) has only the name that the runtime made up on import (${clean(image.repoDigests[0] ?? "")})${inUse ? " and is in use" : ""}`,
    advice:
      "no pod can refer to it: import the archive again without --digests, or with the name that pods use",
    commands: (finding, tools) => tools.forImage(finding),
  },
  "content-kept": {
    text: ({ repository, removals, expectedAtLeastBytes, measuredBytes, lastAt }) =>
      `${counted(removals, "removal")} of images of ${clean(repository)} freed ${humanBytes(measuredBytes)} instead of at least ${humanBytes(expectedAtLeastBytes)}, last at ${toRfc3339(lastAt)}`,
    advice:
      "either another name, namespace or lease of containerd holds their content, or the disk was full during the removal and CRI-O dropped the images but not their layers, or another program wrote to the disk at that time",
    commands: (_finding, tools) => [
      ...tools.namespaces,
      ...tools.ctr.map((it) => `${it} leases ls`),
    ],
  },
  "unexplained-store-bytes": {
    text: ({ filesystem, usedBytes, reportedBytes, images }) =>
      `the runtime's image store on ${clean(filesystem)} uses ${humanBytes(usedBytes)}, more than ${counted(images, "image")} (${humanBytes(reportedBytes)}) can explain`,
    advice:
      "snapshots or blobs without an image remain, from interrupted pulls or in another namespace of the runtime; restart the runtime to collect them; never prune content by hand, it breaks later pulls",
    commands: (_finding, tools) => [
      ...tools.ctr.flatMap((it) => [`${it} snapshots usage`, `${it} leases ls`]),
      ...tools.namespaces,
    ],
  },
  "orphan-container": {
    text: ({ container }) =>
      `container ${containerName(container)} (${shortId(container.id)}) belongs to a sandbox that is not listed (${shortId(container.sandboxId)})`,
    advice:
      "GC removes it like any dead container once its pod is deleted; if it is running, the runtime left it behind",
    commands: ({ container }, tools) => [tools.inspect(container.id)],
  },
  "unknown-use": {
    text: ({ subject, message }) =>
      `cannot tell what ${clean(subject)} uses, so no image is removed: ${clean(message)}`,
    advice: "check what the runtime reports; restarting the runtime often helps",
    commands: (_finding, tools) => [`${tools.crictl} ps --all`, `${tools.images} images`],
  },
  "foreign-container": {
    text: ({ container }) =>
      `container ${containerName(container)} (${shortId(container.id)}) was not created by Kubernetes`,
    advice: "crigc keeps it; remove it with the tool that created it, or set collectForeign",
    commands: ({ container }, tools) => [tools.inspect(container.id)],
  },
  "foreign-sandbox": {
    text: ({ sandbox }) =>
      `sandbox ${sandboxName(sandbox)} (${shortId(sandbox.id)}) was not created by Kubernetes`,
    advice: "crigc keeps it; remove it with the tool that created it, or set collectForeign",
    commands: ({ sandbox }, tools) => [`${tools.crictl} inspectp ${shellWord(sandbox.id)}`],
  },
  "stray-log-entry": {
    text: ({ directory, entry }) =>
      `${clean(entry)} in ${clean(directory)} is not a pod log directory`,
    advice: "crigc keeps it; delete it by hand if nothing needs it",
    commands: ({ directory, entry }) => [`ls -lad ${shellWord(`${directory}/${entry}`)}`],
  },
  "unread-logs": {
    text: ({ message }) => logsErrorWords(message),
    advice: "check what is at the path of that directory; log GC resumes once it can be read",
    commands: () => [],
  },
  "stale-pull-record": {
    text: ({ imageRef, names, path }) =>
      imageRef === null
        ? `the kubelet has a pull record ${clean(path)} of an image that is not on this node`
        : `the kubelet has a record of pulling ${clean(imageRef)}${names.length === 0 ? "" : ` (${names.map(clean).join(", ")})`}, which is not on this node`,
    advice: `if that image is loaded again, the kubelet asks the registry unless a pod has the recorded credentials; ${FREE_TO_USE}`,
    commands: ({ path }) => [`cat ${shellWord(path)}`],
  },
  "stale-pull-intent": {
    text: ({ name }) =>
      `the kubelet began to pull ${clean(name)} more than an hour ago, and no image on this node has that name`,
    advice: `if an image is loaded under that name, a kubelet that restarts counts it as pulled, by no credentials; ${FREE_TO_USE}`,
    commands: ({ directory }) => [`ls -l ${shellWord(directory)}`],
  },
  "pull-needs-credentials": {
    text: ({ image, because }) =>
      `the kubelet will ask the registry for ${imageName(image)} although it is here: its pull record demands credentials, and ${because === "baseline" ? "the baseline names it" : "it was not pulled, or came from an archive"}`,
    advice: `offline, a pod without these credentials stays in ImagePullBackOff; ${FREE_TO_USE}`,
    commands: ({ path }) => [`cat ${shellWord(path)}`],
  },
  "broken-pull-record": {
    text: ({ image, path }) =>
      `the kubelet will ask the registry for ${imageName(image)} each time although it is here: its pull record ${clean(path)} is not valid`,
    advice: `a power cut leaves records of 0 bytes; ${FREE_TO_USE}`,
    commands: ({ path }) => [`ls -l ${shellWord(path)}`],
  },
  "unresolved-reference": {
    text: ({ reference, message }) =>
      `no image has the name ${clean(reference)}, which a container refers to: ${clean(message)}`,
    advice: "nothing, if the container is about to be removed; another program removed its image",
    commands: ({ reference }, tools) => [tools.inspectImage(reference)],
  },
};

function toolsOf(runtime: RuntimeInfo) {
  const crictl = `crictl --runtime-endpoint ${shellWord(runtime.endpoint)}`;
  const images = `crictl --image-endpoint ${shellWord(runtime.imageEndpoint)}`;
  const inspectImage = (name: string): string => `${images} inspecti ${shellWord(name)}`;
  // containerd's own client; other runtimes have none that sees behind CRI.
  const ctr =
    runtime.name === "containerd"
      ? [`ctr --address ${shellWord(runtime.endpoint.replace(/^unix:\/\//, ""))}`]
      : [];
  return {
    crictl,
    images,
    ctr: ctr.map((it) => `${it} --namespace k8s.io`),
    namespaces: ctr.map((it) => `${it} namespaces ls`),
    inspect: (id: string) => `${crictl} inspect ${shellWord(id)}`,
    inspectImage,
    /** Inspects the image, and removes it if no use, pin or rule keeps it. */
    forImage: ({ image, removable }: { readonly image: Image; readonly removable: boolean }) => [
      inspectImage(image.id),
      ...(removable ? [`${images} rmi ${shellWord(image.id)}`] : []),
    ],
  };
}
