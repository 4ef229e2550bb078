/** `crigc plan`: show what `gc` would remove now, what it would keep, and why; and `crigc snapshot`, to plan from elsewhere. */

import { parseDuration } from "../../config/units.ts";
import { quoted } from "../../config/words.ts";
import { usageError } from "../../model/errors.ts";
import type { ImageRecord } from "../../model/ledger.ts";
import type { Duration, Instant } from "../../model/time.ts";
import { compared } from "../../model/values.ts";
import { imageName, wholeImageName } from "../../report/names.ts";
import { planTable } from "../../report/plan-table.ts";
import { type ImageOrder, placed, planDocument } from "../../report/plan.ts";
import { ALL_OPTION, command, type Invocation, option, textOf } from "../command.ts";
import { exit, planExit } from "../exit.ts";
import { LIST_OPTIONS, print, sortOption } from "../listing.ts";
import { planNode, shownNode, SNAPSHOT } from "../node-plan.ts";
import { forced, selectedBy, SELECTION_OPTIONS } from "../selection.ts";

export const plan = command({
  name: "plan",
  summary: "show what gc would remove now, what it would keep, and why",
  doc: "Lists the candidates in the order of removal, the target and the estimated stop. gc removes a prefix of that order (its length depends on measurement) and nothing outside it. Changes nothing. With --snapshot it plans from a recorded node, offline. With -q and -o name it prints only the candidates.",
  options: [
    ...SELECTION_OPTIONS,
    ...LIST_OPTIONS,
    sortOption(["order", "size", "name", "unused"]),
    ALL_OPTION,
    option("assume-seen DURATION", "plan as if every image had been first seen this much earlier"),
    SNAPSHOT,
  ],
  json: true,
  list: true,
  readOnly: true,
  run: async (context) => {
    const prepared = await planNode(context, {
      ...selectedBy(context),
      config: forced(context.config, context),
      assumeSeen: assumedSpan(context),
    });
    const { snapshot } = prepared;
    const sorted = ORDERS[textOf(context, "sort") ?? "order"];
    const report = {
      plan: prepared.plan,
      runtime: snapshot.runtime,
      observedAt: snapshot.observedAt,
      ...(sorted && { sorted }),
    };
    const { images } = prepared.plan;
    const candidates = images === null ? [] : placed(images, sorted);
    await print(context, {
      document: () => planDocument(report),
      table: (screen) => planTable(report, screen),
      rows: candidates.map(({ candidate: { image } }) => ({
        id: image.id,
        name: wholeImageName(image),
      })),
    });
    return planExit(prepared.plan) ?? exit.done;
  },
});

const ORDERS: Readonly<Record<string, ImageOrder | undefined>> = {
  size: (one, other) => compared(other.image.sizeBytes, one.image.sizeBytes),
  name: (one, other) => compared(imageName(one.image), imageName(other.image)),
  unused: (one, other) => compared(unusedSince(one.record), unusedSince(other.record)),
};

/** By last used and first seen, as in the order of removal. */
const unusedSince = ({ firstSeenAt, lastUsedAt }: ImageRecord): Instant =>
  lastUsedAt !== null && lastUsedAt > firstSeenAt ? lastUsedAt : firstSeenAt;

function assumedSpan(invocation: Invocation): Duration | null {
  const text = textOf(invocation, "assume-seen");
  const span = text === null ? null : parseDuration(text);
  if (text === null || (span !== null && span >= 0n)) return span;
  const message = `invalid duration ${quoted(text)}: use 90s, 15m, 24h or 7d`;
  throw usageError("--assume-seen", text, message);
}

export const snapshot = command({
  name: "snapshot",
  summary: "write the node as one JSON document, for plan and bug reports",
  doc: "Contains the names of images, containers and pods, and their ledger records; no content of containers or logs. Changes nothing.",
  readOnly: true,
  alwaysJson: true,
  run: async (context) => {
    const { snapshot: seen, ledger } = await shownNode(context, { allLayers: true });
    context.stdout(context.open.snapshotText({ snapshot: seen, ledger }));
    return exit.done;
  },
});
