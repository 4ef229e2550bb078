/** Lists the IDs and names of the images in an archive of `docker save`, `ctr images export`, skopeo or a distribution. */

import { createHash } from "node:crypto";

import { HostError } from "../model/errors.ts";
import { isMap } from "../model/values.ts";
import { pickFromTar } from "./tar.ts";

export interface ArchivedImage {
  /** The digest of its configuration: the ID under which a runtime lists it after the import. */
  readonly id: string;
  readonly names: readonly string[];
}

/** Each image once, in the order of the archive. Throws `HostError` `read` or `parse`. */
export async function archivedImages(path: string): Promise<readonly ArchivedImage[]> {
  const files = await pickFromTar(path, {
    wanted: (name) => name.endsWith(".json") || /^blobs\/[a-z0-9]+\/[0-9a-f]+$/.test(name),
    fileBytesMax: 4 << 20,
    bytesMax: 64 << 20,
  });
  const archive = new Archive(path, files);
  const images = new Map<string, Set<string>>();
  for (const { id, names } of [...archive.dockerImages(), ...archive.ociImages()])
    images.set(id, new Set([...(images.get(id) ?? []), ...names]));
  if (images.size === 0)
    throw archive.failure("neither manifest.json nor index.json lists an image");
  return Array.from(images, ([id, names]) => ({ id, names: [...names] }));
}

type Json = Readonly<Record<string, unknown>>;

/** An index may contain indexes, one per platform; no tool nests them deeper. */
const DEPTH_MAX = 4;

class Archive {
  readonly #path: string;
  readonly #files: ReadonlyMap<string, Uint8Array>;

  constructor(path: string, files: ReadonlyMap<string, Uint8Array>) {
    this.#path = path;
    this.#files = files;
  }

  failure(what: string): HostError {
    return new HostError(
      "parse",
      `cannot read the images of ${this.#path}: ${what}; is it an archive of docker save or ctr images export?`,
    );
  }

  /** From `manifest.json`: a list of configurations with their tags. */
  dockerImages(): readonly ArchivedImage[] {
    const list = this.#json("manifest.json");
    if (list === null) return [];
    return entriesOf(list).map((entry) => {
      const config = textIn(entry, "Config");
      const bytes = this.#files.get(config.replace(/^(?:\.?\/)+/, ""));
      if (bytes === undefined)
        throw this.failure(`manifest.json names the configuration "${config}", which is missing`);
      return { id: sha256(bytes), names: textsIn(entry, "RepoTags") };
    });
  }

  /** From `index.json`: an OCI layout. */
  ociImages(): readonly ArchivedImage[] {
    const index = this.#json("index.json");
    if (index === null) return [];
    return entriesOf(recordOf(index)["manifests"]).flatMap((it) =>
      this.#described(it, namesOf(it), 0),
    );
  }

  /** A platform whose content is not in the archive is not one of its images. */
  #described(descriptor: Json, names: readonly string[], depth: number): readonly ArchivedImage[] {
    const digest = textIn(descriptor, "digest");
    if (isAttestation(descriptor) || depth > DEPTH_MAX) return [];
    const name = `blobs/${digest.replace(":", "/")}`;
    const bytes = this.#files.get(name);
    if (bytes === undefined) return [];
    if (digest.startsWith("sha256:") && sha256(bytes) !== digest)
      throw this.failure(`the content of ${name} does not match its digest`);
    const content = recordOf(this.#json(name));
    const config = recordOf(content["config"])["digest"];
    if (typeof config === "string") return [{ id: config, names }];
    return entriesOf(content["manifests"]).flatMap((it) =>
      this.#described(it, [...names, ...namesOf(it)], depth + 1),
    );
  }

  #json(name: string): unknown {
    const bytes = this.#files.get(name);
    if (bytes === undefined) return null;
    try {
      return JSON.parse(new TextDecoder().decode(bytes));
    } catch {
      throw this.failure(`${name} is not valid JSON`);
    }
  }
}

/** `org.opencontainers.image.ref.name` may be just a tag, which names nothing. */
function namesOf(descriptor: Json): readonly string[] {
  const annotations = recordOf(descriptor["annotations"]);
  const whole = annotations["io.containerd.image.name"];
  if (typeof whole === "string") return [whole];
  const reference = annotations["org.opencontainers.image.ref.name"];
  return typeof reference === "string" && /[/:]/.test(reference) ? [reference] : [];
}

/** What build tools add to an image to document how it was built. */
const isAttestation = (descriptor: Json): boolean =>
  recordOf(descriptor["annotations"])["vnd.docker.reference.type"] === "attestation-manifest" ||
  recordOf(descriptor["platform"])["os"] === "unknown";

const recordOf = (value: unknown): Json => (isMap(value) ? value : {});

const entriesOf = (value: unknown): readonly Json[] =>
  Array.isArray(value) ? value.map(recordOf) : [];

const textIn = (record: Json, field: string): string => {
  const value = record[field];
  return typeof value === "string" ? value : "";
};

const textsIn = (record: Json, field: string): readonly string[] => {
  const value = record[field];
  return Array.isArray(value) ? value.filter((it) => typeof it === "string") : [];
};

const sha256 = (bytes: Uint8Array): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
