/** `crigc keep baseline` and `keep missing`: write the images of the node or of archives as a list; what it names and the node lacks. */

import { quoted } from "../../config/words.ts";
import {
  ConfigError,
  type ConfigIssue,
  configIssue,
  HostError,
  usageError,
} from "../../model/errors.ts";
import { imageId } from "../../model/ids.ts";
import { type BaselineGap, isMissing } from "../../model/reports.ts";
import type { Image, KeepRule, RuntimeInfo } from "../../model/snapshot.ts";
import { toRfc3339 } from "../../model/time.ts";
import { shellWord } from "../../model/values.ts";
import { baselineOf } from "../../policy/keep/baseline.ts";
import { parseKeepPattern } from "../../policy/keep/keep-pattern.ts";
import {
  compileKeepRules,
  keepFileHeader,
  keepLine,
  keepRuleMatches,
  parseKeepFile,
} from "../../policy/keep/keep.ts";
import { missingDocument, missingTable } from "../../report/keep.ts";
import { clean } from "../../report/terminal.ts";
import { counted } from "../../report/words.ts";
import {
  command,
  type CommandContext,
  has,
  type Invocation,
  LIST,
  operand,
  option,
} from "../command.ts";
import { exit } from "../exit.ts";
import { IMAGES_ONLY, planNode } from "../node-plan.ts";
import { ALL_OPTION, LIST_OPTIONS, print } from "../output.ts";

/** A damaged file may have had more patterns than are readable, so it is never replaced. Throws `ConfigError`. */
export function readableRules(
  text: string | null,
  path: string,
  advice: string,
): readonly KeepRule[] {
  const { rules, problems } = parseKeepFile(text ?? "", path);
  if (text === null || problems.length === 0) return rules;
  throw new ConfigError(
    problems.map(({ source, message }) => configIssue(source, "", `${message}; ${advice}`)),
  );
}

export const keepBaseline = command({
  name: "keep baseline",
  summary: "write today's images to baseline.list in the keep directory",
  doc: "Lists each image by ID and tags: if a tag moves, both images are kept. Adds to existing entries. Writes nothing if the runtime lists no image (exit 3 with --once). --from needs no runtime and reads archives of docker save or ctr images export (tar, gzip or zstd).",
  operands: [operand("[ARCHIVE…]", "more archives after --from ARCHIVE", { completes: "file" })],
  options: [
    option("from ARCHIVE", "images of this archive; repeatable", { completes: "file" }),
    option("once", "once per node, by a stamp in the state directory"),
    option("replace", "drop the existing entries of baseline.list"),
  ],
  changes: true,
  run: async (context) => {
    const { dryRun, open, config } = context;
    const archives = archivesOf(context, "keep baseline");
    const file = open.keepFile(config, "baseline.list");
    const once = has(context, "once");
    const stamp = once ? open.stamp(config) : null;
    if (stamp !== null) {
      context.say(`Baseline already written at ${stamp}; nothing to do.`);
      return exit.done;
    }
    const advice = "repair the file, or replace it with --replace";
    const before = (text: string | null): readonly KeepRule[] =>
      has(context, "replace") ? [] : readableRules(text, file.path, advice);
    // Check for a damaged list before any call to the runtime.
    before(file.read());
    const images =
      archives.length === 0 ? await listedImages(context) : await imagesIn(archives, context);
    if (images.length === 0) {
      context.note(`the runtime lists no image; ${file.path} is unchanged${once ? WAITS : ""}`);
      return once ? exit.runtime : exit.done;
    }
    const writtenAt = toRfc3339(open.now());
    const next = (text: string | null) => {
      const answer = baselineList(images, before(text), writtenAt);
      return { text: answer.text, answer };
    };
    const { patterns, unnamed } = dryRun ? next(file.read()).answer : file.change(next);
    for (const image of unnamed)
      context.note(
        `warning: image ${image.id} is not in the baseline: its ID is not a digest and it has no tag`,
      );
    // After the list: with a stamp but no list, the node would never get a baseline.
    if (once && !dryRun) open.setStamp(config, writtenAt);
    const [start, names] = dryRun ? ["Dry run: ", "would list"] : ["", "now lists"];
    const ids = new Set(images.filter((it) => !unnamed.includes(it)).map(({ id }) => id));
    const named = counted(ids.size, "image");
    context.say(`${start}${file.path} ${names} ${named} in ${counted(patterns, "pattern")}.`);
    return exit.done;
  },
});

/**
 * A stamp now would never protect images that are loaded later; continuing without one would start an
 * agent, and make a baseline of whatever is pulled by its next start. So the service waits, as for the runtime.
 */
const WAITS =
  ", and the baseline waits for the first image; remove keep baseline --once from the service if the node has none";

/** `--from A --from B`, and `--from *.tar` as the shell expands it. */
export function archivesOf(invocation: Invocation, name: string): readonly string[] {
  const from = invocation.options.get("from") ?? [];
  const [first] = invocation.operands;
  if (first === undefined || from.length > 0) return [...from, ...invocation.operands];
  const message = `${quoted(first)} is unexpected; use --from ARCHIVE`;
  throw usageError(`crigc ${name}`, first, message);
}

async function listedImages(context: CommandContext): Promise<readonly BaselineImage[]> {
  using node = await context.open.node(context.config);
  const images = await node.engine.observe.runtime.listImages(context.signal);
  return images.map(({ id, repoTags, pinned }) => ({ id, names: repoTags, pinned }));
}

/** Every archive is read before anything is written. */
async function imagesIn(
  paths: readonly string[],
  { open }: CommandContext,
): Promise<readonly BaselineImage[]> {
  const images: BaselineImage[] = [];
  const issues: ConfigIssue[] = [];
  for (const path of paths) {
    try {
      images.push(...(await open.archivedImages(path)));
    } catch (thrown) {
      if (!(thrown instanceof HostError)) throw thrown;
      issues.push(configIssue("--from", path, thrown.message));
    }
  }
  if (issues.length > 0) throw new ConfigError(issues);
  return images;
}

/** An image of the node or of an archive. */
export interface BaselineImage {
  readonly id: string;
  readonly names: readonly string[];
  /** By the runtime; an archive does not say. */
  readonly pinned?: boolean;
  /** Of an archive for several platforms. */
  readonly platformOf?: string;
}

/** `before`: earlier rules, kept with their notes even if they match no image today. */
export function baselineList(
  images: readonly BaselineImage[],
  before: readonly KeepRule[],
  writtenAt: string,
) {
  // A name with a wildcard, which any archive may have, would keep other images too.
  const isPattern = (name: string): boolean =>
    !name.includes("*") && parseKeepPattern(name).kind === "valid";
  const groups = images.map((image) => [image.id, ...image.names].filter(isPattern));
  const today = new Set(groups.flat());
  const stay = before.filter(({ pattern }) => !today.has(pattern));
  const patterns = today.size + stay.length;
  const notes = new Map<string, Omit<KeepRule, "source">>(
    before.filter(({ lease }) => lease === undefined).map((rule) => [rule.pattern, rule]),
  );
  for (const { id, pinned, platformOf } of images)
    if (pinned === true || platformOf !== undefined)
      notes.set(id, {
        pattern: id,
        ...(pinned && { pinned }),
        ...(platformOf && { platformOf }),
      });
  const lines = [
    keepFileHeader(patterns),
    `# Written by crigc keep baseline at ${writtenAt}. crigc never removes these images. You can edit this file.`,
    ...Array.from(today, (pattern) => keepLine(notes.get(pattern) ?? { pattern })),
    ...(stay.length === 0 ? [] : ["# Earlier entries:", ...stay.map(keepLine)]),
  ];
  return {
    text: `${lines.join("\n")}\n`,
    patterns,
    /** Images that no pattern can match: their IDs are not digests, and they have no tags. */
    unnamed: images.filter((_, at) => groups[at]?.length === 0),
  };
}

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
    ...LIST_OPTIONS,
    ALL_OPTION,
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
    const isRke2 = context.open.machine(context.config).directory(RKE2).kind === "present";
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
