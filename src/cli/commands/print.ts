/** `crigc print NAME`: a file of `deploy/`, as it is. */

import { deployFiles } from "../../install/deploy.ts";
import { command, operand } from "../command.ts";

const FILES: ReadonlyMap<string, string> = new Map(Object.entries(deployFiles));

export const print = command({
  name: "print",
  summary: "print a unit, manifest, alerting rules or configuration",
  doc: "The files that install writes, and those for other machines, complete and commented: save one and change it.",
  operands: [operand("NAME", "file to print", { choices: [...FILES.keys()] })],
  ofItself: true,
  run: async ({ stdout, operands: [name = ""] }) => {
    stdout(FILES.get(name) ?? "");
  },
});
