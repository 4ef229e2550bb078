/** `crigc images`: every image with its size, when it was first seen and last used, what uses it and what keeps it. */

import { printedJson } from "../../report/document/json.ts";
import { entriesOf, imageListDocument, imageListTable } from "../../report/table/images.ts";
import { ALL_OPTION, type Command, screenFor, textOf } from "../command.ts";
import { exit } from "../exit.ts";
import { shownNode, SNAPSHOT } from "../read/node-plan.ts";

export const images: Command = {
  name: "images",
  summary: "images with size, first seen, last used, in use by, kept by",
  doc: "Looks at the node itself, and takes what is remembered from the ledger, with --compat kubelet too, where plans forget it. Changes nothing.",
  operands: [],
  options: [ALL_OPTION, SNAPSHOT],
  json: true,
  readOnly: true,
  run: async (context, invocation) => {
    const { plan, snapshot } = await shownNode(context, {
      purpose: { kind: "periodic" },
      parts: { containers: "none", images: true },
      snapshotFile: textOf(invocation, "snapshot"),
    });
    const entries = plan.images === null ? [] : entriesOf(plan.images);
    const report = { observedAt: snapshot.observedAt, entries };
    context.stdout(
      invocation.output === "json"
        ? printedJson(imageListDocument(report))
        : imageListTable(report, screenFor(context, invocation)),
    );
    return exit.done;
  },
};
