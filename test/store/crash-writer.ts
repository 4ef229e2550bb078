// Writes ledgers and removals without end, and says each turn once it is on disk. Argument: the state directory.

import { duration, plus } from "../../src/model/time.ts";
import { ledgerOf, now, write } from "./fixture.ts";
import { idOf, imageItem, images, pass } from "./history-fixture.ts";

const { store, notices } = await write(process.argv[2] ?? "");
for (let turn = 1; notices.length === 0; turn += 1) {
  const id = idOf(`pass-${turn}`);
  store.saveLedger(ledgerOf(200 + (turn % 50), turn));
  const startedAt = plus(now, duration(BigInt(turn)));
  const item = imageItem(turn, { startedAt });
  store.passStarted({ id, kind: "image-gc", purpose: { kind: "periodic" }, startedAt });
  store.imageDone(id, item);
  if (await store.flush()) process.stdout.write(`${turn}\n`);
  if (turn % 20 !== 0) continue;
  store.passEnded(pass(id, { startedAt, images: images([item]) }), null);
  // A slot in which the store may fold and prune.
  await Bun.sleep(1);
}
console.error(notices);
process.exit(1);
