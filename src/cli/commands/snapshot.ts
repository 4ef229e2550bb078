/** `crigc snapshot`: the node as one JSON document, for `plan --snapshot` and for bug reports. */

import type { Command } from "../command.ts";
import { exit } from "../exit.ts";
import { planNode } from "../read/node-plan.ts";

export const snapshot: Command = {
  name: "snapshot",
  summary: "the node as one JSON document, for plan --snapshot and bug reports",
  doc: "Names of images, containers and pods are in it, and what is remembered of them; no content of any container or log is. Changes nothing.",
  operands: [],
  options: [],
  json: false,
  readOnly: true,
  alwaysJson: true,
  run: async (context) => {
    const node = await planNode(context, {
      purpose: { kind: "periodic" },
      parts: { containers: "all", images: true },
      snapshotFile: null,
    });
    context.stdout(context.open.snapshotText({ snapshot: node.snapshot, ledger: node.ledger }));
    return exit.done;
  },
};
