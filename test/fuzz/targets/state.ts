// Nodes of any content; ledgers that somebody changed; and exact JSON.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { FieldError } from "../../../src/model/codec.ts";
import { exactJson } from "../../../src/model/exact-json.ts";
import { emptyLedger, ledgerCodec } from "../../../src/model/ledger.ts";
import { isMap, parsedJson } from "../../../src/model/values.ts";
import { ledgerText, readLedger } from "../../../src/state/files.ts";
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
const written = nodes.map(({ ledger: of }) => exactJson(ledgerCodec.write(of)));
const ourFields = [...new Set(written.join("").match(/(?<=")\w+(?=":)/g))];

/** What a terminal would obey, beside line ends. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const OBEYED = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

/** Words of closed sets. */
const CLOSED = ["kind", "state", "roles", "source"];

/** The value with other texts and amounts, where equal ones stay equal. */
function varied<Value>(value: Value, words: readonly string[]): Value {
  const others = new Map<unknown, unknown>();
  const vary = (held: unknown, name: string): unknown => {
    if (CLOSED.includes(name)) return held;
    if (Array.isArray(held)) return held.map((item) => vary(item, name));
    if (held instanceof Map)
      return new Map([...held].map(([key, item]) => [vary(key, name), vary(item, name)]));
    if (isMap(held))
      return Object.fromEntries(Object.entries(held).map(([key, item]) => [key, vary(item, key)]));
    if (typeof held !== "string" && typeof held !== "bigint") return held;
    const word = words[others.size % words.length] ?? "";
    const amount = BigInt.asUintN(63, BigInt(/\d+/.exec(word)?.[0] ?? "0"));
    if (!others.has(held)) others.set(held, typeof held === "bigint" ? amount : word);
    return others.get(held);
  };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each part keeps its type
  return vary(value, "") as Value;
}

const snapshot = textTarget(
  "snapshot",
  textOf({
    words: [...signs("/:@.-_ \n"), "r.example/app:1", "sha256:0123456789ab", "12", "4096"],
    samples: ["r.example/a:1 sha256:ab 1000000 pod"],
  }),
  async (text) => {
    // Whatever a node says, there is a plan of it, and nothing in it is obeyed by a terminal.
    const [node] = nodes;
    if (node === undefined) return;
    const open = {
      node: openNodeOf({ ...node, snapshot: varied(node.snapshot, text.split(" ")) }).node,
    };
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

const path = join(places.directory, "ledger.json");

const ledger = textTarget("ledger", jsonOf(documents, ourFields), (text) => {
  writeFileSync(path, text);
  const content = refusedOr(() => readLedger(path, places), SyntaxError, FieldError);
  if (content === null) return;
  writeFileSync(path, ledgerText(content));
  same(readLedger(path, places), content, "the ledger is read back");
});

const exact = textTarget(
  "exact-json",
  textOf({
    words: [...signs('{}[],:"0123456789.eE-'), '"a":', "9007199254740991", "-0", "1e3", "\\u202e"],
    samples: ['{"a":8446744073709551,"b":[1,2.5,-9007199254740991]}', '{"__proto__":1}'],
  }),
  (text) => {
    const value = parsedJson(text);
    if (value === null) return;
    const printed = exactJson(value);
    holds(!OBEYED.test(printed), "a terminal would obey it");
    same(exactJson(JSON.parse(printed)), printed, "JSON is read back");
  },
);

export const stateTargets: readonly Target[] = [snapshot, ledger, exact];
