// Writes image archives as `docker save` and `skopeo copy` make them: one tar in the OCI layout, one or many images.
import { closeSync, openSync, writeSync } from "node:fs";

import { type LayerOptions, makeBusyboxLayer, makeLayer, sha256 } from "./layer.ts";
import { tarEnd, tarFile } from "./tar.ts";

export interface ImageOptions {
  /** Full names with tag, as `docker.io/library/app:1`. None: an image without a name. */
  readonly names: readonly string[];
  readonly layers?: readonly LayerOptions[];
  /** A shell below, so that containers can run from it. Default true. */
  readonly withBusybox?: boolean;
  /** What its containers run unless told otherwise. Default: wait until asked to end. */
  readonly command?: readonly string[];
  /** Images that agree in this and in their layers have one ID. Default: the first name. */
  readonly identity?: string;
}

export interface ArchivedImage {
  readonly names: readonly string[];
  /** The digest of the configuration: the ID by which CRI knows it. */
  readonly id: string;
  /** The digest of the manifest: the one in repository digests. */
  readonly digest: string;
}

export interface ImageArchive {
  readonly file: string;
  readonly images: readonly ArchivedImage[];
}

/** A name as a runtime lists it. */
export const library = (name: string): string => `docker.io/library/${name}`;

/** Ends with code 0 when it is asked to; a shell that is process 1 would not notice the signal otherwise. */
const waitForEnd = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait $!"] as const;

const architecture = process.arch === "arm64" ? "arm64" : "amd64";

export function writeImageArchive(file: string, images: readonly ImageOptions[]): ImageArchive {
  const output = openSync(file, "w");
  try {
    const add: AddFile = (name, content) => {
      for (const part of tarFile(name, content)) writeAll(output, part);
    };
    const blobs = new BlobWriter(add);
    const written = images.map((image) => writeImage(blobs, image));
    add("oci-layout", JSON.stringify({ imageLayoutVersion: "1.0.0" }));
    add("index.json", JSON.stringify(index(written)));
    writeAll(output, tarEnd);
    return { file, images: written.map(({ image }) => image) };
  } finally {
    closeSync(output);
  }
}

type AddFile = (name: string, content: string | Uint8Array) => void;

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

interface WrittenImage {
  readonly image: ArchivedImage;
  readonly manifest: Descriptor;
}

/** Writes each blob once, however many images have it. */
class BlobWriter {
  readonly #add: AddFile;
  readonly #written = new Set<string>();

  constructor(add: AddFile) {
    this.#add = add;
  }

  blob(mediaType: string, content: Uint8Array): Descriptor {
    const digest = sha256(content);
    if (!this.#written.has(digest)) this.#add(`blobs/${digest.replace(":", "/")}`, content);
    this.#written.add(digest);
    return { mediaType, digest, size: content.length };
  }

  json(mediaType: string, value: object): Descriptor {
    return this.blob(mediaType, Buffer.from(JSON.stringify(value)));
  }
}

function writeImage(blobs: BlobWriter, options: ImageOptions): WrittenImage {
  const makers = (options.layers ?? []).map((layer) => () => makeLayer(layer));
  if (options.withBusybox !== false) makers.unshift(makeBusyboxLayer);
  // One layer at a time in memory: they can be large.
  const layers = makers.map((make) => {
    const { mediaType, blob, diffId } = make();
    return { diffId, descriptor: blobs.blob(mediaType, blob) };
  });
  const diffIds = layers.map(({ diffId }) => diffId);
  const type = "application/vnd.oci.image";
  const config = blobs.json(`${type}.config.v1+json`, imageConfig(options, diffIds));
  const mediaType = `${type}.manifest.v1+json`;
  const descriptors = layers.map(({ descriptor }) => descriptor);
  const content = { schemaVersion: 2, mediaType, config, layers: descriptors };
  const manifest = blobs.json(mediaType, content);
  const { names } = options;
  return { manifest, image: { names, id: config.digest, digest: manifest.digest } };
}

function imageConfig(options: ImageOptions, diffIds: readonly string[]): object {
  const identity = options.identity ?? options.names[0] ?? "unnamed";
  return {
    architecture,
    os: "linux",
    config: {
      Env: ["PATH=/bin"],
      Cmd: options.command ?? waitForEnd,
      Labels: { identity },
    },
    rootfs: { type: "layers", diff_ids: diffIds },
    history: diffIds.map(() => ({ created_by: "test" })),
  };
}

function index(written: readonly WrittenImage[]): object {
  const platform = { architecture, os: "linux" };
  const manifests = written.flatMap(({ image, manifest }): object[] =>
    image.names.length === 0
      ? [{ ...manifest, platform }]
      : image.names.map((name) => ({
          ...manifest,
          platform,
          annotations: { "io.containerd.image.name": name },
        })),
  );
  return { schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests };
}

/** One write takes 2 GiB at most and may take less than it was given. */
function writeAll(output: number, content: Uint8Array): void {
  for (let offset = 0; offset < content.length;) {
    offset += writeSync(output, content, offset, content.length - offset);
  }
}
