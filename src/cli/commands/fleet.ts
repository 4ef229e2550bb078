/** `crigc fleet`: read the snapshots of many nodes, offline, one at a time. */

import { quoted } from "../../config/words.ts";
import { usageError } from "../../model/errors.ts";
import { isBootId } from "../../model/ids.ts";
import type { FleetFigures, FleetImage, FleetNode } from "../../model/reports.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { compared } from "../../model/values.ts";
import { distinctImages } from "../../policy/image/image-index.ts";
import { wholeDigest } from "../../policy/image/reference.ts";
import { usageOf } from "../../policy/image/usage.ts";
import { parseKeepPattern } from "../../policy/keep/keep-pattern.ts";
import { keepFileHeader } from "../../policy/keep/keep.ts";
import { fleetDocument, fleetTable } from "../../report/fleet.ts";
import { command, type CommandContext, LIST, operand, option, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { ALL_OPTION, LIST_OPTIONS, print } from "../output.ts";
import { filesAt, numberUpTo, valueOf, type ValueType } from "../values.ts";

export const fleet = command({
  name: "fleet",
  summary: "compare the snapshots of many nodes",
  doc: "Reads files that crigc snapshot wrote, and directories of them (.json, .json.gz), without a runtime. Lists the nodes with their disks and images that came back, and every image (by its ID) with the number of nodes that have it and use it. A node is named as in its snapshot, else by the file. -q and -o name print IDs or names as a keep list. Exits 2 if a snapshot cannot be read, a directory has none or a node occurs twice, and 8 if NODE is not among them.",
  operands: [
    operand("SNAPSHOT…", "a snapshot, or a directory of snapshots", { completes: "file" }),
  ],
  options: [
    option("only-on NODE", "only images that no node but this one has"),
    option("copies N", "only images that at most N nodes have"),
    ...LIST_OPTIONS,
    ALL_OPTION,
  ],
  formats: LIST,
  run: async (context) => {
    const [only, copies] = [textOf(context, "only-on"), valueOf(context, "copies", COPIES)];
    const { nodes, all } = await readFleet(context);
    if (only !== null && !nodes.some(({ name }) => name === only)) {
      context.note(`no snapshot of a node ${only}`);
      return exit.unknown;
    }
    const images = all
      .images()
      .filter((it) => copies === null || it.nodes <= copies)
      .filter((it) => only === null || it.onlyOn === only);
    const report = { nodes, images, isSelected: only !== null || copies !== null };
    const header = keepFileHeader(images.length);
    await print(context, {
      document: fleetDocument(report),
      table: fleetTable,
      rows: (list) => [
        { id: header, name: header },
        ...Array.from(list.images, ({ id, pattern }) => ({ id, name: pattern })),
      ],
    });
    return exit.done;
  },
});

const COPIES: ValueType<number> = { ...numberUpTo(9_999_999), use: "1 or more" };

const SNAPSHOTS = /\.json(?:\.gz)?$/;

/**
 * A node that occurs twice would count as two copies, and its only copies as safe. Clones share names, and one node may
 * have several, but not the ID of its boot.
 */
async function readFleet(context: CommandContext) {
  const { open, operands } = context;
  const all = new Fleet();
  const nodes: Omit<FleetNode, "onlyCopies" | "onlyCopiesBytes">[] = [];
  const seen = new Map<string, string>();
  const filesOf = (given: string): readonly string[] => {
    const files = filesAt(context, { source: "SNAPSHOT", path: given, wanted: SNAPSHOTS });
    const message = `no snapshots in ${quoted(given)}: they are named *.json or *.json.gz`;
    // Without them, an empty list of only copies would be a valid keep file.
    if (files.length === 0) throw usageError("SNAPSHOT", given, message);
    return files;
  };
  for (const path of operands.flatMap(filesOf)) {
    const { snapshot, host } = await open.recorded(path, "SNAPSHOT");
    const name = host?.name ?? nameOf(path);
    const { bootId } = snapshot.clocks;
    for (const mark of isBootId(bootId) ? [name, `boot ${bootId}`] : [name]) {
      const other = seen.get(mark);
      const message = `${quoted(path)} and ${quoted(other ?? "")} are snapshots of one node (${name}); give the newer one only`;
      if (other !== undefined) throw usageError("SNAPSHOT", path, message);
      seen.set(mark, path);
    }
    const { returnedImages = null, returnedBytes = null } = host ?? {};
    nodes.push({ ...all.add(name, snapshot), returnedImages, returnedBytes });
  }
  const onlyCopies = Map.groupBy(all.images(), ({ onlyOn }) => onlyOn);
  return {
    all,
    nodes: nodes.map((node) => {
      const own = onlyCopies.get(node.name) ?? [];
      const onlyCopiesBytes = own.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
      return { ...node, onlyCopies: own.length, onlyCopiesBytes };
    }),
  };
}

const nameOf = (path: string): string => path.replace(/^.*\//, "").replace(SNAPSHOTS, "");

export class Fleet {
  readonly #images = new Map<string, FleetImage>();

  /** The node's own figures; its images count from now on. Each node must be added once. */
  add(name: string, snapshot: Snapshot): FleetFigures {
    const images = distinctImages(snapshot.images, "any");
    const { users } = usageOf(snapshot);
    for (const { id, repoTags, repoDigests, sizeBytes } of images) {
      const key = wholeDigest(id) ?? id;
      const before = this.#images.get(key);
      const names = [...repoTags, ...repoDigests];
      const first = before?.name ?? names.find(isPattern) ?? key;
      const isEverywhere =
        names.includes(first) && (before === undefined || before.pattern === first);
      this.#images.set(key, {
        id: key,
        name: first,
        pattern: isEverywhere || !isPattern(key) ? first : key,
        sizeBytes:
          before === undefined || before.sizeBytes < sizeBytes ? sizeBytes : before.sizeBytes,
        nodes: (before?.nodes ?? 0) + 1,
        usedOn: (before?.usedOn ?? 0) + Number(users.has(id)),
        onlyOn: before === undefined ? name : null,
      });
    }
    const disk = snapshot.filesystems.find(({ roles }) => roles.includes("imagefs"));
    return {
      name,
      observedAt: snapshot.observedAt,
      images: images.length,
      imagesBytes: images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n),
      unusedImages: images.filter(({ id }) => !users.has(id)).length,
      capacityBytes: disk?.capacityBytes ?? null,
      availableBytes: disk?.availableBytes ?? null,
    };
  }

  /** The images on the fewest nodes first, of these the largest. */
  images(): readonly FleetImage[] {
    return [...this.#images.values()].toSorted(
      (one, other) =>
        one.nodes - other.nodes ||
        compared(other.sizeBytes, one.sizeBytes) ||
        compared(one.id, other.id),
    );
  }
}

const isPattern = (name: string): boolean => parseKeepPattern(name).kind === "valid";
