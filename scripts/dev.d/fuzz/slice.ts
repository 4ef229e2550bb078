// Tries one parser for a while: the corpus, then random inputs. Says nothing where all is well, else the input and why it failed.

import { pastFailures } from "../../../test/fuzz/corpus.ts";
import { checkInput, fuzz, type Fuzzed } from "../../../test/fuzz/target.ts";
import { targets } from "../../../test/fuzz/targets.ts";
import { noteWriter } from "./note.ts";

const [name = "", seed = "", ms = "", path = ""] = process.argv.slice(2);
const target = targets.find((each) => each.name === name);
if (target === undefined) throw new Error(`no parser is called ${name}`);
const onInput = noteWriter(path);

async function failureInCorpus(): Promise<Fuzzed["failure"]> {
  for (const { name: file, input } of pastFailures(name)) {
    onInput(input);
    try {
      if (target !== undefined) await checkInput(target, input);
    } catch (thrown) {
      return { input, message: `${file}, again: ${String(thrown)}` };
    }
  }
  return null;
}

const failure =
  (await failureInCorpus()) ??
  (await fuzz(target, { seed: Number(seed), inputsMax: 2 ** 30, ms: Number(ms), onInput })).failure;
if (failure !== null)
  console.log(`${Buffer.from(failure.input).toString("base64")}\n${failure.message}`);
process.exit(0);
