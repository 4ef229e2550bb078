/** Identifies the sandbox image, which no container names and without which no pod starts. */
import type { ImageKeepReason } from "../../model/reason.ts";
import type { Image, Snapshot } from "../../model/snapshot.ts";
import {
  imageNames,
  type KeepPattern,
  matchPattern,
  parseKeepPattern,
} from "../keep/keep-pattern.ts";

/** Repositories of pause images: upstream, its mirrors, and those with the architecture in their name. */
export const PAUSE_PATTERNS: readonly string[] = ["**/pause", "**/pause-*", "**/*mirrored-pause*"];

type Origin = Extract<ImageKeepReason, { readonly kind: "sandbox-image" }>["by"];

export interface SandboxNames {
  readonly patterns: readonly {
    readonly by: Origin;
    /** As written. */
    readonly text: string;
    readonly pattern: KeepPattern;
  }[];
}

/** Everything that names the sandbox image on this node: the runtime and its sandboxes, the flag, the built-in patterns. */
export function sandboxNames(
  snapshot: Pick<Snapshot, "runtime" | "sandboxImages">,
  infraImages: readonly string[],
): SandboxNames {
  const runtime = [...snapshot.runtime.sandboxImages, ...new Set(snapshot.sandboxImages.values())];
  return {
    patterns: [
      ...runtime.flatMap((name) => patternOf("runtime", name)),
      ...infraImages.flatMap((name) => patternOf("flag", name)),
      ...PAUSE_PATTERNS.flatMap((name) => patternOf("pattern", name)),
    ],
  };
}

/** `null`: it is not the sandbox image. A name without a tag matches every tag, to keep too much rather than too little. */
export function sandboxImageReason(names: SandboxNames, image: Image): ImageKeepReason | null {
  const those = imageNames(image);
  for (const { by, pattern } of names.patterns) {
    const name = matchPattern(pattern, those);
    if (name !== null) return { kind: "sandbox-image", by, name };
  }
  return null;
}

/** An invalid name names no image; an empty one is how runtimes say that there is none. */
function patternOf(by: Origin, name: string): SandboxNames["patterns"] {
  const parsed = parseKeepPattern(name);
  return parsed.kind === "valid" ? [{ by, text: name, pattern: parsed.pattern }] : [];
}
