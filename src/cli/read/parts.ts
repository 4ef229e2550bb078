/** The options by which `gc` and `plan` are limited to one half of the node, or widened to everything unused. */

import type { Purpose } from "../../model/plan.ts";
import type { Parts } from "../../policy/decide.ts";
import { type CommandOption, has, type Invocation } from "../command.ts";

export const PARTS_OPTIONS: readonly CommandOption[] = [
  { name: "images", placeholder: null, help: "images only, unless --containers stands beside it" },
  {
    name: "containers",
    placeholder: null,
    help: "containers, sandboxes and pod logs only, unless --images stands beside it",
  },
  {
    name: "all-unused",
    placeholder: null,
    help: "all unused containers, then every unused image that no rule protects, whatever the disk says",
  },
];

export function partsOf(invocation: Invocation): Parts {
  const images = has(invocation, "images");
  const containers = has(invocation, "containers");
  const both = images === containers;
  return { containers: both || containers ? "all" : "none", images: both || images };
}

export const purposeOf = (invocation: Invocation): Purpose =>
  has(invocation, "all-unused") ? { kind: "all-unused" } : { kind: "periodic" };
