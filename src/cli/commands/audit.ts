/** `crigc audit`: report what looks leaked or inconsistent on the node. */

import type { PastRemoval } from "../../model/audit.ts";
import { auditFindings } from "../../policy/audit.ts";
import { auditDocument, auditTable } from "../../report/audit.ts";
import { ALL_OPTION, command, type CommandContext } from "../command.ts";
import { exit } from "../exit.ts";
import { print } from "../listing.ts";
import { shownNode, SNAPSHOT, snapshotFileOf } from "../node-plan.ts";

/** More than the store keeps. */
const REMOVALS_MAX = 100_000;

export const audit = command({
  name: "audit",
  summary: "report what looks leaked or inconsistent",
  doc: "Finds images without a name, images that were removed but are still listed, repositories whose removals freed far less than their layers suggest, filesystem usage that no image explains, containers and sandboxes not created by Kubernetes, references to missing images, and stray entries in the pod log directory, and suggests commands for a closer look. CRI shows only one namespace of the runtime, so images of other clients appear as unexplained usage. Changes nothing; exits 0 even with findings.",
  options: [ALL_OPTION, SNAPSHOT],
  json: true,
  readOnly: true,
  run: async (context) => {
    const prepared = await shownNode(context);
    const { snapshot } = prepared;
    const report = {
      runtime: snapshot.runtime,
      observedAt: snapshot.observedAt,
      findings: auditFindings({
        ...prepared,
        removals: snapshotFileOf(context) === null ? pastRemovals(context) : [],
      }),
    };
    await print(context, {
      document: () => auditDocument(report),
      table: (screen) => auditTable(report, screen),
    });
    return exit.done;
  },
});

/** An unreadable history counts as empty; the reason is on stderr. */
function pastRemovals(context: CommandContext): readonly PastRemoval[] {
  using store = context.open.state(context.config);
  return store.removals({ kinds: ["image"], results: ["removed"], limit: REMOVALS_MAX });
}
