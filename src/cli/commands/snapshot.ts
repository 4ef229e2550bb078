/** `crigc snapshot`: the node as one JSON document, for `plan --snapshot` and for bug reports. */

import { command } from "../command.ts";
import { exit } from "../exit.ts";
import { shownNode } from "../node-plan.ts";

export const snapshot = command({
  name: "snapshot",
  summary: "write the node as one JSON document, for plan and bug reports",
  doc: "Contains the names of images, containers and pods, and their ledger records; no content of containers or logs. Changes nothing.",
  readOnly: true,
  alwaysJson: true,
  run: async (context, invocation) => {
    const node = await shownNode(context, invocation, { allLayers: true });
    context.stdout(context.open.snapshotText({ snapshot: node.snapshot, ledger: node.ledger }));
    return exit.done;
  },
});
