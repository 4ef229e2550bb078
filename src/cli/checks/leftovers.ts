/** Doctor's checks for leftovers: images without a name, images that outlive their removal, usage that no image explains. */

import { runtimeOf } from "../../cri/runtimes.ts";
import type { Prepared } from "../../gc/prepare.ts";
import type { Removal } from "../../model/history.ts";
import type { WritableLayers } from "../../model/reports.ts";
import type { Filesystem, Image } from "../../model/snapshot.ts";
import { breakdownOf } from "../../policy/disk.ts";
import { layersOf } from "../../policy/origins.ts";
import { breakdownWords } from "../../report/disk.ts";
import { ok, type Verdict, type Verdicts, warning } from "../../report/doctor.ts";
import { clean } from "../../report/terminal.ts";
import { counted, humanBytes, imageName, shortId } from "../../report/words.ts";

/** `removals`: of images, newest first. */
export function leftoverChecks(
  prepared: Prepared,
  removals: readonly Removal[],
  layers: WritableLayers | null,
): Verdicts {
  const { images } = prepared.snapshot;
  return [
    ["image-names", nameCheck(images)],
    ["removed-images", removedCheck(images, removals)],
    ["unexplained-usage", usageCheck(prepared, layers)],
  ];
}

function nameCheck(images: readonly Image[]): Verdict {
  const nameless = images.filter(
    ({ repoTags, repoDigests }) => ![...repoTags, ...repoDigests].some(isName),
  );
  if (nameless.length === 0) return ok("every image has a name");
  return warning(
    `${counted(nameless.length, "image")} known by ID only: ${listOf(nameless.map(({ id }) => shortId(id)))}`,
    "an interrupted pull or a moved tag left them; keep rules for them need the ID",
  );
}

/** `<none>:<none>` is not a name. */
const isName = (text: string): boolean => text !== "" && !text.startsWith("<none>");

/** Still listed, and the last removal found it listed after the runtime's answer. */
function removedCheck(images: readonly Image[], removals: readonly Removal[]): Verdict {
  const newest = new Map(removals.toReversed().map((it) => [it.subject, it.result]));
  const listed = images.filter(({ id }) => newest.get(id) === "ghost");
  if (listed.length === 0) return ok("no removed image is still listed");
  return warning(
    `${counted(listed.length, "image")} still listed after removal: ${listOf(listed.map(imageName))}`,
    "search the runtime's log for the ID; something outside CRI may hold the image, and restarting the runtime often frees it",
  );
}

const NAMED_MAX = 5;

const listOf = (names: readonly string[]): string =>
  names.length <= NAMED_MAX
    ? names.join(", ")
    : `${names.slice(0, NAMED_MAX).join(", ")} and ${names.length - NAMED_MAX} more`;

/** A smaller share of a filesystem is not worth a search. */
const UNEXPLAINED_PERCENT = 10n;
/** Figures lag behind, and an empty store is not 0 bytes. */
const STORE_SLACK_BYTES = 256n << 20n;

/** `written`: by containers, which some runtimes count among the images; `null`: unknown, so the store may be any size. */
function usageCheck({ snapshot, ledger }: Prepared, written: WritableLayers | null): Verdict {
  const writtenBytes = [...(written?.values() ?? [])].reduce((sum, { bytes }) => sum + bytes, 0n);
  const { images, filesystems, runtime } = snapshot;
  const { sizePercentMax } = runtimeOf(runtime);
  const layers = layersOf(images, ledger);
  const facts = { ...snapshot, layers };
  const listed = layers.sizeOf(images);
  const found = filesystems.filter(isOfRuntime).flatMap((filesystem): readonly string[] => {
    const { path, capacityBytes, imageUsedBytes: used } = filesystem;
    const breakdown = breakdownOf(filesystem, facts);
    const isLarge = breakdown.otherBytes * 100n > capacityBytes * UNEXPLAINED_PERCENT;
    const isStoreLarge =
      used !== null &&
      written !== null &&
      used > (listed * sizePercentMax) / 100n + writtenBytes + STORE_SLACK_BYTES;
    return [
      ...(isLarge
        ? [
            `${humanBytes(breakdown.otherBytes)} on ${clean(path)} belong to no image, container or pod log (${breakdownWords(breakdown)})`,
          ]
        : []),
      ...(isStoreLarge
        ? [
            `the image store on ${clean(path)} takes ${humanBytes(used)}, far more than its ${counted(images.length, "image")} (${humanBytes(listed)})`,
          ]
        : []),
    ];
  });
  if (found.length === 0) return ok("images, containers and pod logs explain the disk usage");
  return warning(found.join("; "), "crigc df lists the largest directories");
}

const isOfRuntime = ({ roles }: Filesystem): boolean =>
  roles.includes("imagefs") || roles.includes("containerfs");
