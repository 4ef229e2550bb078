/** `crigc images`: list images with size, first seen, last used, users and keep reasons. */

import { compared } from "../../model/values.ts";
import { selectedImages } from "../../policy/selection.ts";
import {
  entriesOf,
  imageListDocument,
  type ImageListEntry,
  imageListTable,
} from "../../report/images.ts";
import { imageName, wholeImageName } from "../../report/names.ts";
import { ALL_OPTION, command, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { LIST_OPTIONS, print, sortOption } from "../listing.ts";
import { IMAGES_ONLY, shownNode, SNAPSHOT } from "../node-plan.ts";
import { criteriaOf, FILTER } from "../selection.ts";

export const images = command({
  name: "images",
  summary: "list images with size, first seen, last used, in use by, kept by",
  doc: "First seen and last used come from the ledger, even with --compat kubelet, whose plans ignore it. Changes nothing.",
  options: [
    ...LIST_OPTIONS,
    sortOption(["size", "name", "first-seen", "last-used"]),
    FILTER,
    ALL_OPTION,
    SNAPSHOT,
  ],
  json: true,
  list: true,
  readOnly: true,
  run: async (context) => {
    const { plan, snapshot, ledger } = await shownNode(context, { parts: IMAGES_ONLY });
    const selection = criteriaOf(context.options.get("filter") ?? []);
    const all = plan.images === null ? [] : entriesOf(plan.images);
    const ranked = all.flatMap(({ image, record }) => (record === null ? [] : [{ image, record }]));
    const selected = selectedImages(ranked, selection, { snapshot, watched: ledger.watched });
    const compare = ORDERS[textOf(context, "sort") ?? "size"];
    const chosen = selection.length === 0 ? all : all.filter(({ image }) => selected.has(image.id));
    const entries = compare === undefined ? chosen : chosen.toSorted(compare);
    const report = { observedAt: snapshot.observedAt, entries };
    await print(context, {
      document: () => imageListDocument(report),
      table: (screen) => imageListTable(report, screen),
      rows: entries.map(({ image }) => ({ id: image.id, name: wholeImageName(image) })),
    });
    return exit.done;
  },
});

/** Largest first is the given order; never used comes before used long ago. */
const ORDERS: Readonly<
  Record<string, ((one: ImageListEntry, other: ImageListEntry) => number) | undefined>
> = {
  name: (one, other) => compared(imageName(one.image), imageName(other.image)),
  "first-seen": (one, other) => compared(firstSeen(one), firstSeen(other)),
  "last-used": (one, other) => compared(lastUse(one), lastUse(other)),
};

const firstSeen = ({ record }: ImageListEntry): bigint => record?.firstSeenAt ?? NEVER;

const lastUse = ({ reason, record }: ImageListEntry): bigint =>
  reason?.kind === "in-use" ? NOW : (record?.lastUsedAt ?? NEVER);

const NEVER = -(2n ** 63n);
const NOW = 2n ** 63n;
