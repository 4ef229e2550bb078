/** Doctor's checks of an observation: runtime, filesystems, pods, owners, keep rules, and usage that no image explains. */

import { faultsOf, runtimeOf } from "../../cri/runtimes.ts";
import type { Prepared } from "../../gc/prepare.ts";
import type { ImageLimits, Limits } from "../../model/limits.ts";
import type { WritableLayers } from "../../model/reports.ts";
import type { Filesystem, Image, KeepRules, RuntimeInfo, Snapshot } from "../../model/snapshot.ts";
import { ownership } from "../../policy/container/pods.ts";
import { breakdownOf } from "../../policy/disk.ts";
import { sandboxImageReason, sandboxNames } from "../../policy/image/protect.ts";
import { compileKeepRules, unmatchedKeepRules } from "../../policy/keep/keep.ts";
import { layersOf } from "../../policy/layers.ts";
import { breakdownWords, writtenBytes } from "../../report/disk-usage.ts";
import { failed, ok, type Verdict, type Verdicts, warning } from "../../report/doctor.ts";
import { andMore, present } from "../../report/terminal.ts";
import { humanBytes, plural, shortId, spaceWords } from "../../report/words.ts";

/** `written`: by containers, which some runtimes count among the images; `null`: unknown. */
export function nodeChecks(
  prepared: Prepared,
  limits: Limits,
  written: WritableLayers | null,
): Verdicts {
  const { snapshot } = prepared;
  return [
    ["runtime-version", runtimeCheck(snapshot.runtime)],
    ...snapshot.filesystems.map(
      (it) => [`filesystem-${it.roles.join("-")}`, filesystemCheck(it)] as const,
    ),
    ["pod-specs", specCheck(snapshot)],
    ["owners", ownerCheck(snapshot, limits)],
    ["sandbox-image", sandboxImageCheck(snapshot, limits.images)],
    ["image-names", nameCheck(snapshot)],
    ["unexplained-usage", usageCheck(prepared, written)],
  ];
}

export function runtimeCheck(runtime: Pick<RuntimeInfo, "name" | "version">): Verdict {
  const [fault] = faultsOf(runtime);
  if (fault !== undefined) return warning(fault.message, fault.advice);
  return ok(`no known faults in ${runtime.name} ${runtime.version}`);
}

function filesystemCheck(filesystem: Filesystem): Verdict {
  const { path, mountpoint, capacityBytes, unmeasured } = filesystem;
  const where = path === mountpoint ? path : `${path} (mounted at ${mountpoint})`;
  if (unmeasured !== undefined) return failed(`nothing is removed for it: ${unmeasured}`);
  if (capacityBytes === 0n)
    return failed(
      `${where} reports a capacity of 0 bytes, so nothing is removed for it`,
      "check what is mounted there",
    );
  return ok(`${where}: ${spaceWords(filesystem)}`);
}

/** `null`: without `--kubelet-endpoint`. */
function specCheck({ pods: { specs } }: Snapshot): Verdict | null {
  if (specs === undefined) return null;
  if (specs.error === null) return ok(`the kubelet lists ${plural(specs.pods.length, "pod")}`);
  return warning(
    `${specs.error}; images that only pods' specs name are not kept`,
    "check that the kubelet runs, and --kubelet-endpoint, --kubelet-ca-file and the credentials for it",
  );
}

function ownerCheck(snapshot: Snapshot, limits: Limits): Verdict {
  const owners = ownership(snapshot);
  const all = [
    ...snapshot.containers.map(owners.ofContainer),
    ...snapshot.sandboxes.map(owners.ofSandbox),
  ];
  const count = all.filter(({ foreign }) => foreign).length;
  if (count === 0) return ok("all containers and sandboxes were created by Kubernetes");
  const words = `${count} of ${all.length} containers and sandboxes not created by Kubernetes`;
  if (limits.containers.collectForeign) return ok(`${words}; they are also collected`);
  if (count < all.length) return ok(`${words}; they are left alone`);
  return warning(
    `everything on the node is foreign (${words}), so only images are collected`,
    "set --collect-foreign to collect dead ones",
  );
}

function sandboxImageCheck(snapshot: Snapshot, limits: ImageLimits): Verdict {
  const names = sandboxNames(snapshot, limits.infraImages);
  const kept = snapshot.images.filter(
    (image) => image.pinned || sandboxImageReason(names, image) !== null,
  );
  if (kept.length > 0) return ok(`${plural(kept.length, "image")} pinned or kept as sandbox image`);
  if (snapshot.sandboxes.length === 0) return ok("none, and no sandbox needs one yet");
  return warning(
    "no image is pinned or known as the sandbox image: it could be removed or is gone, and no pod starts without it",
    "set --pod-infra-container-image, or load the image again",
  );
}

function nameCheck({ images }: Snapshot): Verdict {
  // `<none>:<none>` is not a name.
  const isName = (text: string): boolean => text !== "" && !text.startsWith("<none>");
  const nameless = images.filter(
    ({ repoTags, repoDigests }) => ![...repoTags, ...repoDigests].some(isName),
  );
  if (nameless.length === 0) return ok("every image has a name");
  const shown = nameless.slice(0, NAMED_MAX).map(({ id }) => shortId(id));
  return warning(
    `${plural(nameless.length, "image")} known by ID only: ${andMore(shown, nameless.length)}`,
    "an interrupted pull or a moved tag left them; keep rules for them need the ID",
  );
}

const NAMED_MAX = 5;

/** A smaller share of a filesystem is not worth a search. */
const UNEXPLAINED_PERCENT = 10n;
/** Figures lag behind, and an empty store is not 0 bytes. */
const STORE_SLACK_BYTES = 256n << 20n;

function usageCheck({ snapshot, ledger }: Prepared, written: WritableLayers | null): Verdict {
  const { images, runtime } = snapshot;
  const layers = layersOf(images, ledger);
  const listed = layers.sizeOf(images);
  const explained =
    (listed * runtimeOf(runtime).sizePercentMax) / 100n +
    writtenBytes(written ?? new Map()) +
    STORE_SLACK_BYTES;
  const ofRuntime = snapshot.filesystems.filter(
    ({ roles }) => roles.includes("imagefs") || roles.includes("containerfs"),
  );
  const found = ofRuntime.flatMap((filesystem) => {
    const { path, capacityBytes, imageUsedBytes: used } = filesystem;
    const breakdown = breakdownOf(filesystem, { ...snapshot, layers });
    return present([
      breakdown.otherBytes * 100n > capacityBytes * UNEXPLAINED_PERCENT &&
        `${humanBytes(breakdown.otherBytes)} on ${path} belong to no image, container or pod log (${breakdownWords(breakdown)})`,
      used !== null &&
        written !== null &&
        used > explained &&
        `the image store on ${path} takes ${humanBytes(used)}, far more than its ${plural(images.length, "image")} (${humanBytes(listed)})`,
    ]);
  });
  if (found.length === 0) return ok("images, containers and pod logs explain the disk usage");
  return warning(found.join("; "), "crigc df lists the largest directories");
}

/** `images`: `null` if the node could not be read. */
export function keepCheck(keep: KeepRules, images: readonly Image[] | null): Verdict {
  const compiled = compileKeepRules(keep.rules);
  const problems = [...keep.problems, ...compiled.problems];
  const [first] = problems;
  if (first !== undefined)
    return failed(
      `invalid, so no image is removed: ${first.source}: ${first.message}`,
      "crigc keep list shows all errors",
    );
  const idle = images === null ? 0 : unmatchedKeepRules(compiled, images).length;
  const rules = plural(keep.rules.length, "valid rule");
  if (idle === 0) return ok(rules);
  return warning(
    `${rules}, of which ${idle} match nothing on this node`,
    "crigc keep list shows which: check their spelling, or load the missing images",
  );
}
