// Writes image archives as `docker save` and `skopeo copy` make them: one tar in the OCI layout, one or many images.
import { closeSync, openSync, writeSync } from "node:fs";

import { type Layer, type LayerOptions, makeBusyboxLayer, makeLayer, sha256 } from "./layer.ts";
import { tarEnd, tarHeader, tarPadding } from "./tar.ts";

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
    const writer = blobWriter(output);
    const written = images.map((image) => writeImage(writer, image));
    writer.file("oci-layout", json({ imageLayoutVersion: "1.0.0" }));
    writer.file("index.json", json(index(written)));
    writeSync(output, tarEnd);
    return { file, images: written.map(({ image }) => image) };
  } finally {
    closeSync(output);
  }
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

interface WrittenImage {
  readonly image: ArchivedImage;
  readonly manifest: Descriptor;
}

interface BlobWriter {
  readonly file: (name: string, content: Uint8Array) => void;
  /** Each blob once, however many images have it. */
  readonly blob: (mediaType: string, content: Uint8Array, digest: string) => Descriptor;
}

function blobWriter(output: number): BlobWriter {
  const written = new Set<string>();
  const file = (name: string, content: Uint8Array): void => {
    writeAll(output, tarHeader({ name, sizeBytes: content.length }));
    writeAll(output, content);
    writeAll(output, tarPadding(content.length));
  };
  return {
    file,
    blob: (mediaType, content, digest) => {
      if (!written.has(digest)) file(`blobs/${digest.replace(":", "/")}`, content);
      written.add(digest);
      return { mediaType, digest, size: content.length };
    },
  };
}

function writeImage(writer: BlobWriter, options: ImageOptions): WrittenImage {
  const diffIds: string[] = [];
  const layers: Descriptor[] = [];
  // One layer at a time in memory: they can be large.
  const writeLayer = (layer: Layer): void => {
    diffIds.push(layer.diffId);
    layers.push(writer.blob(layer.mediaType, layer.blob, layer.blobDigest));
  };
  if (options.withBusybox !== false) writeLayer(makeBusyboxLayer());
  for (const layer of options.layers ?? []) writeLayer(makeLayer(layer));
  const config = json(imageConfig(options, diffIds));
  const configBlob = writer.blob(
    "application/vnd.oci.image.config.v1+json",
    config,
    sha256(config),
  );
  const manifestType = "application/vnd.oci.image.manifest.v1+json";
  const content = { schemaVersion: 2, mediaType: manifestType, config: configBlob, layers };
  const manifestBytes = json(content);
  const manifest = writer.blob(manifestType, manifestBytes, sha256(manifestBytes));
  return {
    manifest,
    image: {
      names: options.names,
      id: configBlob.digest,
      digest: manifest.digest,
    },
  };
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

function json(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** One write takes 2 GiB at most and may take less than it was given. */
function writeAll(output: number, content: Uint8Array): void {
  for (let offset = 0; offset < content.length;) {
    offset += writeSync(output, content, offset, content.length - offset);
  }
}
