// Makes image layers of chosen size: equal descriptions give equal bytes, so images can share them.
import { createCipheriv, createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { busyboxPath } from "./release.ts";
import { tarEnd, tarHeader, tarPadding } from "./tar.ts";

export interface LayerOptions {
  /** Names the content: layers that agree in everything are one layer, wherever they occur. */
  readonly seed: string;
  readonly sizeBytes: number;
  /** Random bytes cannot be compressed; mixed ones shrink to a third, and are stored so. Default random. */
  readonly content?: "random" | "mixed";
  /** Into how many files the bytes are divided. Default 1. */
  readonly files?: number;
}

export interface Layer {
  readonly mediaType: string;
  /** As stored and transferred. */
  readonly blob: Uint8Array;
  readonly blobDigest: string;
  /** Of the uncompressed tar: what the configuration names. */
  readonly diffId: string;
}

export function makeLayer(options: LayerOptions): Layer {
  const tar = concat([...contentEntries(options), tarEnd]);
  return describe(tar, options.content === "mixed" ? "gzip" : "none");
}

/** A shell and its usual commands: 2 MB that every image with programs shares. */
export function makeBusyboxLayer(): Layer {
  const binary = readFileSync(busyboxPath);
  const links = ["sh", "sleep", "cat", "echo", "ls", "dd", "rm", "mkdir", "ps", "true", "false"];
  const tar = concat([
    tarHeader({ name: "bin/", kind: "directory" }),
    tarHeader({ name: "bin/busybox", mode: 0o755, sizeBytes: binary.length }),
    binary,
    tarPadding(binary.length),
    ...links.map((name) =>
      tarHeader({ name: `bin/${name}`, kind: "symlink", linkTarget: "busybox" }),
    ),
    ...["proc/", "dev/", "sys/", "tmp/", "etc/"].map((name) =>
      tarHeader({ name, kind: "directory" }),
    ),
    tarEnd,
  ]);
  return describe(tar, "none");
}

export function sha256(bytes: Uint8Array): string {
  return `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
}

function contentEntries(options: LayerOptions): readonly Uint8Array[] {
  const files = options.files ?? 1;
  const directory = `data-${options.seed}`;
  const entries = [tarHeader({ name: `${directory}/`, kind: "directory" })];
  for (let i = 0; i < files; i += 1) {
    const sizeBytes = Math.floor(options.sizeBytes / files);
    entries.push(
      tarHeader({ name: `${directory}/${i}`, sizeBytes }),
      contentBytes(options.content, `${options.seed}/${i}`, sizeBytes),
      tarPadding(sizeBytes),
    );
  }
  return entries;
}

function contentBytes(
  content: LayerOptions["content"],
  seed: string,
  sizeBytes: number,
): Uint8Array {
  if (content !== "mixed") return randomBytes(seed, sizeBytes);
  const third = Math.floor(sizeBytes / 3);
  const repeated = Buffer.alloc(sizeBytes - third, `${seed}\n`);
  return concat([randomBytes(seed, third), repeated]);
}

/** The key stream of a cipher: as good as random, the same for the same seed, and fast. */
function randomBytes(seed: string, sizeBytes: number): Uint8Array {
  const key = createHash("sha256").update(seed).digest();
  const cipher = createCipheriv("aes-256-ctr", key, Buffer.alloc(16));
  return cipher.update(Buffer.alloc(sizeBytes));
}

function describe(tar: Uint8Array<ArrayBuffer>, compression: "none" | "gzip"): Layer {
  const isGzip = compression === "gzip";
  const blob = isGzip ? Bun.gzipSync(tar, { level: 1 }) : tar;
  const diffId = sha256(tar);
  return {
    mediaType: `application/vnd.oci.image.layer.v1.tar${isGzip ? "+gzip" : ""}`,
    blob,
    blobDigest: isGzip ? sha256(blob) : diffId,
    diffId,
  };
}

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.concat(parts).buffer);
}
