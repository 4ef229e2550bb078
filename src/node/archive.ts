/** Lists the IDs and names of the images in an archive of `docker save`, `ctr images export`, skopeo or a distribution. */

import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { pipeline } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";

import { extract } from "tar-stream";
import * as v from "valibot";

import { HostError, messageOf } from "../model/errors.ts";
import { boundedBytes, codeOf, compressionOf, hostError } from "./files.ts";

export interface ArchivedImage {
  /** The digest of its configuration: the ID under which a runtime lists it after the import. */
  readonly id: string;
  readonly names: readonly string[];
  /** The ID of the image for another platform that the archive has under the same names. */
  readonly platformOf?: string;
}

/** Each image once, in the order of the archive. Throws `HostError` `read` or `parse`. */
export async function archivedImages(path: string): Promise<readonly ArchivedImage[]> {
  const files = await documentsIn(path);
  const failure = (what: string): HostError =>
    new HostError(
      "parse",
      `cannot read the images of ${path}: ${what}; is it an archive of docker save or ctr images export?`,
    );
  const archive: Archive = {
    failure,
    file: (name) => files.get(name),
    read: (name, schema) => {
      const bytes = files.get(name);
      if (bytes === undefined) return null;
      const text = new TextDecoder().decode(bytes);
      const read = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), text, {
        abortEarly: true,
      });
      if (read.success) return read.output;
      throw failure(`${name} is invalid: ${read.issues[0].message}`);
    },
  };
  const images = new Map<string, ArchivedImage>();
  const groups = [...dockerImages(archive).map((image) => [image]), ...ociImages(archive)];
  for (const group of groups) {
    const [main] = [...group.filter(({ id }) => images.has(id)), ...group];
    for (const { id, names } of group) {
      const known = images.get(id);
      const platform = id === main?.id || known !== undefined ? known?.platformOf : main?.id;
      images.set(id, {
        id,
        names: [...new Set([...(known?.names ?? []), ...names])],
        ...(platform !== undefined && { platformOf: platform }),
      });
    }
  }
  if (images.size === 0) throw failure("neither manifest.json nor index.json lists an image");
  return [...images.values()];
}

interface Archive {
  readonly file: (name: string) => Uint8Array | undefined;
  /** Parses a JSON file; `null` if the archive lacks it. */
  readonly read: <Value>(name: string, schema: v.GenericSchema<unknown, Value>) => Value | null;
  readonly failure: (what: string) => HostError;
}

const DOCKER = v.array(
  v.object({ Config: v.string(), RepoTags: v.nullish(v.array(v.string()), []) }),
);

/** From `manifest.json`: a list of configurations with their tags. */
const dockerImages = ({ file, read, failure }: Archive): readonly ArchivedImage[] =>
  (read("manifest.json", DOCKER) ?? []).map(({ Config, RepoTags }) => {
    const bytes = file(Config.replace(/^(?:\.?\/)+/, ""));
    if (bytes === undefined)
      throw failure(`manifest.json names the configuration "${Config}", which is missing`);
    return { id: sha256(bytes), names: RepoTags };
  });

const DESCRIPTOR = v.object({
  digest: v.string(),
  annotations: v.nullish(v.record(v.string(), v.string()), {}),
  platform: v.nullish(v.object({ os: v.nullish(v.string()) })),
});
type Descriptor = v.InferOutput<typeof DESCRIPTOR>;

/** A manifest, which has a configuration, or an index of manifests. */
const MANIFEST = v.object({
  config: v.nullish(v.object({ digest: v.string() })),
  manifests: v.nullish(v.array(DESCRIPTOR), []),
});

/** From `index.json`: an OCI layout. The images of one entry are one for each platform. */
const ociImages = (archive: Archive): readonly (readonly ArchivedImage[])[] =>
  (archive.read("index.json", MANIFEST)?.manifests ?? []).map((descriptor) =>
    described(archive, descriptor, []),
  );

/** An index may contain indexes, one per platform; no tool nests them deeper. */
const DEPTH_MAX = 4;

/** A platform whose content is not in the archive is not one of its images. */
function described(
  archive: Archive,
  descriptor: Descriptor,
  above: readonly (readonly string[])[],
): readonly ArchivedImage[] {
  const { digest } = descriptor;
  if (isAttestation(descriptor) || above.length > DEPTH_MAX) return [];
  const name = `blobs/${digest.replace(":", "/")}`;
  const bytes = archive.file(name);
  if (bytes === undefined) return [];
  if (digest.startsWith("sha256:") && sha256(bytes) !== digest)
    throw archive.failure(`the content of ${name} does not match its digest`);
  const names = [...above, namesOf(descriptor)];
  const content = archive.read(name, MANIFEST);
  const config = content?.config?.digest;
  if (config !== undefined) return [{ id: config, names: names.flat() }];
  return (content?.manifests ?? []).flatMap((it) => described(archive, it, names));
}

/** `org.opencontainers.image.ref.name` may be just a tag, which names nothing. */
function namesOf({ annotations }: Descriptor): readonly string[] {
  const whole = annotations["io.containerd.image.name"];
  if (whole !== undefined) return [whole];
  const reference = annotations["org.opencontainers.image.ref.name"] ?? "";
  return /[/:]/.test(reference) ? [reference] : [];
}

/** What build tools add to an image to document how it was built. */
const isAttestation = ({ annotations, platform }: Descriptor): boolean =>
  annotations["vnd.docker.reference.type"] === "attestation-manifest" || platform?.os === "unknown";

const sha256 = (bytes: Uint8Array): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** Larger ones are layers. */
const DOCUMENT_BYTES_MAX = 4 << 20;
const DOCUMENTS_BYTES_MAX = 64 << 20;

/** Files of the archive that may be lists, manifests or configurations, by names without a leading `./`. */
async function documentsIn(path: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  const failure = (what: string): HostError =>
    new HostError(
      "parse",
      `cannot read the archive ${path}: ${what}; create it again with docker save or ctr images export`,
    );
  let keptBytes = 0;
  try {
    await using file = await open(path, "r");
    const entries = extract();
    // Its errors reach the loop, because they end the entries, too.
    pipeline([...(await unpacked(path, file)), entries], () => undefined);
    for await (const entry of entries) {
      const { type, size } = entry.header;
      const name = entry.header.name.replace(/^(?:\.?\/)+/, "");
      if (!FILE_TYPES.includes(type) || size > DOCUMENT_BYTES_MAX || !mayBeDocument(name)) {
        entry.resume();
        continue;
      }
      keptBytes += size + HEADER_BYTES;
      if (keptBytes > DOCUMENTS_BYTES_MAX)
        throw failure(`its lists of images take more than ${DOCUMENTS_BYTES_MAX} bytes`);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- declared as `unknown`
      files.set(name, await boundedBytes(entry as AsyncIterable<Uint8Array>, size));
    }
    return files;
  } catch (error) {
    if (error instanceof HostError) throw error;
    if (codeOf(error) === "") throw failure(messageOf(error));
    throw hostError("read", error, (why) => `cannot read ${path}: ${why}`);
  }
}

const FILE_TYPES: readonly string[] = ["file", "contiguous-file"];
/** Of a tar entry, so that empty files count, too. */
const HEADER_BYTES = 512;

const mayBeDocument = (name: string): boolean =>
  name.endsWith(".json") || /^blobs\/[a-z0-9]+\/[0-9a-f]+$/.test(name);

/** The file as a stream, and the one that decompresses it if it is compressed. */
async function unpacked(path: string, file: FileHandle): Promise<readonly NodeJS.ReadableStream[]> {
  const { buffer } = await file.read(new Uint8Array(6), 0, 6, 0);
  const compression = compressionOf(buffer);
  const bytes = file.createReadStream({ start: 0, autoClose: false, highWaterMark: 1 << 20 });
  if (compression === undefined) return [bytes];
  if (compression === "gzip") return [bytes, createGunzip()];
  if (compression === "zstd") return [bytes, createZstdDecompress()];
  throw new HostError(
    "parse",
    `cannot read ${path}: it is compressed with ${compression}, which crigc cannot read; decompress it first`,
  );
}
