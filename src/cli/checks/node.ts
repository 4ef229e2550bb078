/** Doctor's checks of an observation: lists, filesystems, blocks, owners of containers, pod source. */

import { faultsOf } from "../../cri/runtimes.ts";
import type { Prepared } from "../../gc/prepare.ts";
import type { ImageLimits, Limits } from "../../model/limits.ts";
import type { ImagePlan, PodSourceState } from "../../model/plan.ts";
import type { ImageBlock } from "../../model/reason.ts";
import type {
  Filesystem,
  Image,
  KeepRules,
  PodReading,
  RuntimeInfo,
  Snapshot,
} from "../../model/snapshot.ts";
import { duration } from "../../model/time.ts";
import { ownership } from "../../policy/container/ownership.ts";
import { sandboxImageReason, sandboxNames } from "../../policy/image/protect.ts";
import { compileKeepRules, unmatchedKeepRules } from "../../policy/keep/keep.ts";
import {
  judgePressure,
  metTargets,
  type MetThreshold,
  noPressure,
} from "../../policy/pressure/thresholds.ts";
import { logsErrorWords, podSourceWords } from "../../report/container-reasons.ts";
import { failed, ok, type Verdict, type Verdicts, warning } from "../../report/doctor.ts";
import { imageBlock } from "../../report/image-reasons.ts";
import { present } from "../../report/terminal.ts";
import { counted, spaceWords, usedPercent } from "../../report/words.ts";

export function nodeChecks(prepared: Prepared, limits: Limits): Verdicts {
  const { snapshot, plan } = prepared;
  return [
    ["runtime-version", runtimeCheck(snapshot.runtime)],
    ["lists", listCheck(snapshot)],
    ...snapshot.filesystems.map(
      (it) =>
        [`filesystem-${it.roles.join("-")}`, filesystemCheck(it, { limits, snapshot })] as const,
    ),
    ...(plan.images === null ? [] : blockChecks(plan.images)),
    ["pod-source", plan.containers && podSourceCheck(plan.containers.podSource)],
    ["pod-specs", specCheck(snapshot.pods)],
    ["owners", ownerCheck(snapshot, limits)],
    ["sandbox-image", sandboxImageCheck(snapshot, limits.images)],
    ["pod-logs", logCheck(snapshot)],
  ];
}

const listCheck = ({ images, containers, sandboxes }: Snapshot): Verdict =>
  ok(
    `the runtime lists ${counted(images.length, "image")}, ${counted(containers.length, "container")} and ${counted(sandboxes.length, "sandbox", "sandboxes")}`,
  );

function filesystemCheck(
  filesystem: Filesystem,
  { limits, snapshot }: { readonly limits: Limits; readonly snapshot: Snapshot },
): Verdict {
  const { roles, path, mountpoint, capacityBytes, availableBytes } = filesystem;
  const where = path === mountpoint ? path : `${path} (mounted at ${mountpoint})`;
  const { unmeasured } = filesystem;
  if (unmeasured !== undefined) return failed(`nothing is removed for it: ${unmeasured}`);
  if (capacityBytes === 0n)
    return failed(
      `${where} reports a capacity of 0 bytes, so its usage is unknown and nothing is removed for it`,
      "check what is mounted there",
    );
  const used = usedPercent(capacityBytes, availableBytes);
  const figures = `${where}: ${spaceWords(filesystem)}`;
  const { pressure, images } = limits;
  const isHigh = roles.includes("imagefs") && used >= images.highPercent;
  const verdict = judgePressure({
    filesystems: snapshot.filesystems,
    limits: pressure,
    state: noPressure,
    uptime: duration(0n),
  });
  const met = metOn(filesystem, verdict.met);
  const over = present([
    isHigh && `at or over the high threshold of ${images.highPercent}%`,
    met.length > 0 && `past the eviction threshold of ${met.join(", ")}`,
  ]);
  if (over.length === 0) return ok(figures);
  // Soft thresholds too, of which a single check knows no grace period.
  const targets = metTargets({ filesystems: snapshot.filesystems, limits: pressure });
  const hasTarget = targets.some((it) => "device" in it && it.device === filesystem.device);
  return warning(
    `${figures}, ${over.join(" and ")}`,
    isHigh || hasTarget
      ? "crigc plan shows what would be removed; crigc gc removes it now"
      : "no image is on it: free other data there",
  );
}

/** Each signal with the usage from which it is met. Derived ones repeat one of the same device. */
function metOn({ device }: Filesystem, all: readonly MetThreshold[]): readonly string[] {
  const here = all
    .filter(({ filesystem }) => filesystem.device === device)
    .map(({ threshold: { signal }, filesystem: { capacityBytes, inodes }, limit }) => {
      const [role = "", what] = signal.split(".");
      const capacity = what === "inodesFree" ? inodes : capacityBytes;
      const percent = Math.round(100 - (100 * Number(limit)) / Number(capacity));
      return { role, what, text: `${signal} (${percent}%)` };
    });
  const repeats = (one: (typeof here)[number]): boolean =>
    one.role === "containerfs" && here.some((it) => it.what === one.what && it.role !== one.role);
  return here.filter((one) => !repeats(one)).map(({ text }) => text);
}

/** Also of a disk that no image is removed for, although some are removed for something else. */
function blockChecks({ blocks, notes }: ImagePlan): Verdicts {
  const all = [
    ...blocks,
    ...notes.flatMap((note) => (note.kind === "out-of-reach" ? [note.block] : [])),
  ];
  return all.length === 0
    ? [["blocks", ok("nothing blocks removal")]]
    : all.map((block) => [`block-${block.kind}`, blockCheck(block)]);
}

function blockCheck(block: ImageBlock): Verdict | null {
  const [verdict, advice] = BLOCKS[block.kind];
  return verdict?.(imageBlock.text(block), advice) ?? null;
}

const CHECK_KUBELET =
  "check that the kubelet runs, and --kubelet-endpoint, --kubelet-ca-file and the credentials for it";

const CHECK_RUNTIME = "check the runtime; nothing is removed until this is known";

const BLOCKS: Readonly<Record<ImageBlock["kind"], readonly [typeof ok | null, advice?: string]>> = {
  // The keep rules have a check of their own.
  "keep-rules-invalid": [null],
  "on-hold": [warning],
  futile: [warning],
  "nothing-freed": [
    warning,
    "crigc df shows what fills the disk; check what else uses the runtime, and its log",
  ],
  "no-room": [warning],
  "boot-grace": [ok],
  "pod-starting": [ok],
  "usage-unknown": [failed, CHECK_RUNTIME],
  "invalid-capacity": [failed, CHECK_RUNTIME],
};

function podSourceCheck(state: PodSourceState): Verdict {
  const words = podSourceWords(state);
  if (state.kind === "ready") return ok(`${state.source} detects deleted pods`);
  if (state.kind === "none") return warning(`${words}; dead containers go by their limits only`);
  return failed(
    `${words}; no container, sandbox or log is removed`,
    "check that --pod-source and --root-dir match this node's kubelet",
  );
}

/** `null`: without `--kubelet-endpoint`. */
function specCheck({ specs }: PodReading): Verdict | null {
  if (specs === undefined) return null;
  if (specs.error === null) return ok(`the kubelet lists ${counted(specs.pods.length, "pod")}`);
  return warning(`${specs.error}; images that only pods' specs name are not kept`, CHECK_KUBELET);
}

function ownerCheck(snapshot: Snapshot, limits: Limits): Verdict {
  const owners = ownership(snapshot);
  const containers = snapshot.containers.filter((it) => owners.ofContainer(it).foreign).length;
  const sandboxes = snapshot.sandboxes.filter((it) => owners.ofSandbox(it).foreign).length;
  const all = snapshot.containers.length + snapshot.sandboxes.length;
  const foreign = containers + sandboxes;
  const words = `${counted(containers, "container")} and ${counted(sandboxes, "sandbox", "sandboxes")}`;
  if (foreign === 0) return ok("all containers and sandboxes were created by Kubernetes");
  if (limits.containers.collectForeign)
    return ok(`${words} not created by Kubernetes; they are also collected`);
  if (foreign < all) return ok(`${words} not created by Kubernetes; they are left alone`);
  return warning(
    `everything on the node is foreign: none of its ${words} was created by Kubernetes, so only images are collected`,
    "set --collect-foreign to collect dead ones",
  );
}

function sandboxImageCheck(snapshot: Snapshot, limits: ImageLimits): Verdict {
  const names = sandboxNames(snapshot, limits.infraImages);
  const kept = snapshot.images.filter((image) => sandboxImageReason(names, image) !== null);
  const pinned = snapshot.images.filter((image) => image.pinned).length;
  if (kept.length > 0) return ok(`${counted(kept.length, "image")} kept as sandbox image`);
  if (pinned > 0) return ok(`none known by name; the runtime pins ${counted(pinned, "image")}`);
  if (snapshot.sandboxes.length === 0) return ok("none, and no sandbox needs one yet");
  const named = names.find(({ by }) => by !== "pattern");
  if (named !== undefined)
    return warning(
      `the sandbox image ${named.text} is not on this node, and no pod starts without it`,
      "load it again, as the runtime expects it",
    );
  return warning(
    "the sandbox image is unknown and the runtime pins no image: it could be removed, and no pod starts without it",
    "set --pod-infra-container-image, or add a keep rule",
  );
}

function logCheck({ logs }: Snapshot): Verdict {
  if (logs === null) return ok("no pod log directory, so nothing to clean");
  if (logs.kind === "failed") return failed(logsErrorWords(logs.message), "check that path");
  const strays =
    logs.strays.length === 0
      ? ""
      : `; ${counted(logs.strays.length, "other entry", "other entries")} left alone`;
  return ok(
    `${logs.podLogsDirectory} has the logs of ${counted(logs.podLogs.length, "pod")}${strays}`,
  );
}

export function runtimeCheck(runtime: Pick<RuntimeInfo, "name" | "version">): Verdict {
  const [fault] = faultsOf(runtime);
  if (fault !== undefined) return warning(fault.message, fault.advice);
  return ok(`no known faults in ${runtime.name} ${runtime.version}`);
}

/** `images`: `null` if the node could not be read. */
export function keepCheck(keep: KeepRules, images: readonly Image[] | null): Verdict {
  const compiled = compileKeepRules(keep.rules);
  const problems = [...keep.problems, ...compiled.problems];
  const [first] = problems;
  if (first !== undefined) {
    const more = problems.length === 1 ? "" : `, and ${problems.length - 1} more`;
    return failed(
      `invalid, so no image is removed: ${first.source}: ${first.message}${more}`,
      "crigc keep list shows all errors",
    );
  }
  if (keep.rules.length === 0) return ok("none");
  const idle = images === null ? [] : unmatchedKeepRules(compiled, images);
  const rules = counted(keep.rules.length, "valid rule");
  if (idle.length === 0) return ok(rules);
  return warning(
    `${rules}, ${idle.length} of which ${idle.length === 1 ? "matches" : "match"} nothing on this node`,
    "crigc keep list shows which: check their spelling, or load the missing images",
  );
}
