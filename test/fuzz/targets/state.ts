// Nodes of any content; ledgers that somebody changed; and exact JSON.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import fc from "fast-check";

import { FieldError, record } from "../../../src/model/codec.ts";
import { StoreError } from "../../../src/model/errors.ts";
import { exactJson, parseExactJson } from "../../../src/model/exact-json.ts";
import { emptyLedger, ledgerCodec } from "../../../src/model/ledger.ts";
import { snapshotCodec } from "../../../src/model/snapshot.ts";
import { ledgerText, readLedger } from "../../../src/state/ledger-file.ts";
import { openNodeOf } from "../../cli/open-node.ts";
import { crigc } from "../../cli/world.ts";
import {
  aContainer,
  aLedger,
  anImage,
  aRecord,
  aSandbox,
  aSnapshot,
} from "../../support/build/values.ts";
import { jsonOf, signs, textOf } from "../inputs.ts";
import { holds, refusedOr, same, type Target, textTarget } from "../target.ts";

const nodes = [
  {
    snapshot: aSnapshot({
      images: [anImage("a"), anImage("b")],
      containers: [aContainer("c", { imageId: anImage("a").id })],
      sandboxes: [aSandbox("p")],
    }),
    ledger: aLedger({ images: new Map([[anImage("b").id, aRecord()]]) }),
  },
  { snapshot: aSnapshot(), ledger: emptyLedger },
];
const nodeCodec = record({ snapshot: snapshotCodec, ledger: ledgerCodec });
const written = nodes.map((node) => exactJson(nodeCodec.write(node)));
const ourFields = [...new Set(written.join("").match(/(?<=")\w+(?=":)/g))];

/** What a terminal would obey, beside line ends. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

const snapshot = textTarget(
  "snapshot",
  fc.oneof(
    {
      weight: 6,
      arbitrary: jsonOf(
        written.map((text) => JSON.parse(text) as unknown),
        ourFields,
      ),
    },
    {
      weight: 2,
      arbitrary: textOf({ words: [...ourFields, ...'{}[]:,"'.split("")], samples: written }),
    },
  ),
  async (text) => {
    const node = refusedOr(() => nodeCodec.read(parseExactJson(text)), FieldError, SyntaxError);
    if (node === null) return;
    const again = nodeCodec.read(parseExactJson(exactJson(nodeCodec.write(node))));
    same(again, node, "the node is read back");
    // Whatever a node says, there is a plan of it, and nothing in it is obeyed by a terminal.
    const open = { node: openNodeOf(node).node };
    for (const words of [
      ["plan", "--all-unused"],
      ["plan", "-o", "json"],
    ]) {
      const ran = await crigc(words, { open });
      holds(!ran.stderr.includes("internal error"), `crigc ${words.join(" ")}: ${ran.stderr}`);
      holds(
        !OBEYED.test(ran.stdout),
        `crigc ${words.join(" ")} prints ${JSON.stringify(ran.stdout)}`,
      );
    }
  },
);

const places = {
  directory: mkdtempSync(join(tmpdir(), "crigc-fuzz-")),
  runDirectory: tmpdir(),
  userId: process.getuid?.() ?? 0,
  machineId: "",
};
const documents = nodes.map(({ ledger }) =>
  JSON.parse(ledgerText({ ledger, closed: true, lastRecord: 1, machineId: "" })),
);

const ledger = textTarget("ledger", jsonOf(documents, ourFields), (text) => {
  writeFileSync(join(places.directory, "ledger.json"), text);
  const content = refusedOr(() => readLedger(places), StoreError);
  if (content === null) return;
  writeFileSync(join(places.directory, "ledger.json"), ledgerText(content));
  same(readLedger(places), content, "the ledger is read back");
});

const exact = textTarget(
  "exact-json",
  textOf({
    words: [...signs('{}[],:"0123456789.eE-'), '"a":', "9007199254740993", "-0", "1e3", "\\u202e"],
    samples: ['{"a":18446744073709551615,"b":[1,2.5,-9007199254740993]}', '{"__proto__":1}'],
  }),
  (text) => {
    const value = refusedOr(() => parseExactJson(text), SyntaxError);
    if (value === null) return;
    const printed = exactJson(value);
    holds(!OBEYED.test(printed), "a terminal would obey it");
    same(exactJson(parseExactJson(printed)), printed, "JSON is read back");
  },
);

export const stateTargets: readonly Target[] = [snapshot, ledger, exact];
