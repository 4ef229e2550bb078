// Every parser that is fuzzed.

import type { Target } from "./target.ts";
import { nameTargets } from "./targets/names.ts";
import { nodeTargets } from "./targets/node.ts";
import { runtimeTargets } from "./targets/runtime.ts";
import { settingTargets } from "./targets/settings.ts";
import { stateTargets } from "./targets/state.ts";
import { valueTargets } from "./targets/values.ts";

export const targets: readonly Target[] = [
  ...valueTargets,
  ...nameTargets,
  ...settingTargets,
  ...nodeTargets,
  ...runtimeTargets,
  ...stateTargets,
];
