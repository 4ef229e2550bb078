// Images as real nodes have them: families that share a base, of which each member adds a little of its own.
import { type ImageDescription, imageIdOf } from "./fake-runtime/describe.ts";

export interface Families {
  /** Begins every name and layer, so that two sets of families share nothing. */
  readonly name?: string;
  readonly families: number;
  /** Images of all families together, dealt out in turn. */
  readonly images: number;
  readonly baseBytes: number;
  readonly ownBytes: number;
}

/** `registry.example/NAME-FAMILY:MEMBER`; each reports its base and its own layer together, as runtimes do. */
export function familyImages(of: Families): readonly ImageDescription[] {
  const { name = "family", families, images, baseBytes, ownBytes } = of;
  return Array.from({ length: images }, (_, index) => {
    const family = `${name}-${index % families}`;
    const member = `${family}:${Math.floor(index / families)}`;
    return {
      id: imageIdOf(member),
      repoTags: [`registry.example/${member}`],
      layers: [
        { id: `${family} base`, bytes: baseBytes },
        { id: member, bytes: ownBytes },
      ],
    };
  });
}
