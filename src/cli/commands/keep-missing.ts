/** `crigc keep missing`: what a baseline names and the node lacks, where it is, and how to bring it back. */

import { type BaselineGap, isMissing } from "../../model/audit.ts";
import { HostError } from "../../model/errors.ts";
import { imageId } from "../../model/ids.ts";
import type { Image, RuntimeInfo } from "../../model/snapshot.ts";
import { shellWord } from "../../model/values.ts";
import { baselineOf } from "../../policy/keep/baseline.ts";
import { compileKeepRules, keepRuleMatches } from "../../policy/keep/keep.ts";
import { missingDocument, missingTable } from "../../report/keep.ts";
import { clean } from "../../report/terminal.ts";
import { command, type CommandContext, LIST, operand, option } from "../command.ts";
import { exit } from "../exit.ts";
import { IMAGES_ONLY, planNode, SNAPSHOT, snapshotFileOf } from "../node-plan.ts";
import { LIST_OPTIONS, print } from "../output.ts";
import { archivesOf } from "./keep-baseline.ts";

const RKE2 = "/var/lib/rancher/rke2/bin";

export const keepMissing = command({
  name: "keep missing",
  summary: "list the images that a baseline names and this node lacks",
  doc: "Reads the lists of the keep directory whose names end in baseline.list. Also lists images that lost a name or their pin, and a missing sandbox image, without which no pod starts. Names the command that imports each image into the runtime in use and, with --from, its archive. Exits 0 if everything is there, 8 if not, and 2 if the keep rules are invalid.",
  operands: [
    operand("[ARCHIVE…]", "more archives or directories after --from", { completes: "file" }),
  ],
  options: [
    option("from ARCHIVE", "search this archive, or those of this directory; repeatable", {
      completes: "file",
    }),
    SNAPSHOT,
    ...LIST_OPTIONS,
  ],
  formats: LIST,
  run: async (context) => {
    const paths = archivesOf(context, "keep missing");
    const { snapshot } = await planNode(context, { parts: IMAGES_ONLY });
    const { runtime, keep } = snapshot;
    const baseline = baselineOf(snapshot, context.config.limits.images.infraImages);
    if (baseline === null) {
      for (const { source, message } of keep.problems) context.note(`${source}: ${message}`);
      return exit.usage;
    }
    const archivesFor = await archiveSearch(baseline.gaps.some(isMissing) ? paths : [], context);
    const isHere = snapshotFileOf(context) === null;
    const isRke2 =
      isHere && context.open.machine(context.config).directory(RKE2).kind === "present";
    const tool = runtimeTool(runtime, isRke2);
    const images = baseline.gaps.map((gap) => {
      const archives = isMissing(gap) ? archivesFor(gap) : [];
      return { gap, archives, command: tool(gap, archives[0]) };
    });
    const report = { runtime, baseline, images };
    await print(context, {
      document: missingDocument(report),
      table: missingTable,
      rows: (it) => it.images.map(({ name, patterns }) => ({ id: patterns[0] ?? name, name })),
    });
    return baseline.gaps.length === 0 ? exit.done : exit.unknown;
  },
});

const ARCHIVE = /\.(?:tar|tgz|tzst|tar\.(?:gz|zst))$/;

/** Finds the archives of an image, those with its ID first. Reports archives that it cannot read. */
async function archiveSearch(
  paths: readonly string[],
  { open, note }: CommandContext,
): Promise<(gap: BaselineGap) => readonly string[]> {
  const found = new Map<Image, string>();
  const reading = async <T>(read: () => T | Promise<T>, none: T): Promise<T> => {
    try {
      return await read();
    } catch (thrown) {
      if (!(thrown instanceof HostError)) throw thrown;
      note(`warning: ${thrown.message}`);
      return none;
    }
  };
  for (const path of paths)
    for (const file of await reading(() => open.filesIn(path, ARCHIVE), []))
      for (const { id, names } of await reading(() => open.archivedImages(file), [])) {
        const rest = { repoDigests: [], sizeBytes: 0n, pinned: false };
        found.set({ id: imageId(id), repoTags: names, ...rest }, file);
      }
  const images = [...found.keys()];
  return ({ patterns, source }) => {
    const rules = patterns.map((pattern) => ({ pattern, source }));
    const matches = keepRuleMatches(compileKeepRules(rules), images);
    const files = [...matches.values()].flat().map((image) => found.get(image) ?? "");
    return [...new Set(files)];
  };
}

/** Never taken for an option, nor for the file that a name without its control characters would be. */
const fileWord = (path = ""): string =>
  path === "" || clean(path) !== path
    ? "ARCHIVE"
    : shellWord(path.startsWith("-") ? `./${path}` : path);

/** The command for an image, by the runtime's own tool; `null`: none does it. */
function runtimeTool({ name, endpoint }: RuntimeInfo, isRke2: boolean) {
  const imports = (tool: string) => (gap: BaselineGap, archive?: string) =>
    isMissing(gap) ? `${tool} ${fileWord(archive)}` : null;
  if (name === "cri-o") return imports("podman load -i");
  if (name === "docker") return imports("docker load -i");
  const ctr = ctrFor(endpoint.replace(/^unix:\/\//, ""), isRke2);
  return (gap: BaselineGap, archive?: string) =>
    imports(`${ctr} images import`)(gap, archive) ??
    `${ctr} images label ${shellWord(gap.name)} io.cri-containerd.pinned=pinned`;
}

function ctrFor(socket: string, isRke2: boolean): string {
  if (socket.includes("/microk8s/")) return "microk8s ctr";
  if (socket.startsWith("/run/k0s/")) return "k0s ctr -n k8s.io";
  if (socket.startsWith("/run/k3s/"))
    return isRke2 ? `${RKE2}/ctr -a ${socket} -n k8s.io` : "k3s ctr";
  const isDefault = socket === "/run/containerd/containerd.sock";
  return isDefault ? "ctr -n k8s.io" : `ctr -a ${shellWord(socket)} -n k8s.io`;
}
