// Makes image layers of chosen size: equal descriptions give equal bytes, so images can share them.
import { createCipheriv, createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { busyboxPath } from "./release.ts";
import { tarEnd, tarFile, tarHeader } from "./tar.ts";

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
  /** Of the uncompressed tar: what the configuration names. */
  readonly diffId: string;
}

export function makeLayer({ seed, sizeBytes, content, files = 1 }: LayerOptions): Layer {
  const fileBytes = Math.floor(sizeBytes / files);
  const parts = Array.from({ length: files }, (_, at) =>
    tarFile(`data-${seed}/${at}`, contentBytes(content, `${seed}/${at}`, fileBytes)),
  );
  const top = tarHeader({ name: `data-${seed}/`, kind: "directory" });
  return layerOf([top, ...parts.flat()], content === "mixed");
}

/** A shell and its usual commands: 2 MB that every image with programs shares. */
export function makeBusyboxLayer(): Layer {
  const links = ["sh", "sleep", "cat", "echo", "ls", "dd", "rm", "mkdir", "ps", "true", "false"];
  const directory = (name: string): Uint8Array => tarHeader({ name, kind: "directory" });
  return layerOf([
    directory("bin/"),
    ...tarFile("bin/busybox", readFileSync(busyboxPath), 0o755),
    ...links.map((name) =>
      tarHeader({ name: `bin/${name}`, kind: "symlink", linkTarget: "busybox" }),
    ),
    ...["proc/", "dev/", "sys/", "tmp/", "etc/"].map(directory),
  ]);
}

export const sha256 = (bytes: Uint8Array): string =>
  `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;

function contentBytes(
  content: LayerOptions["content"],
  seed: string,
  sizeBytes: number,
): Uint8Array {
  if (content !== "mixed") return randomBytes(seed, sizeBytes);
  const third = Math.floor(sizeBytes / 3);
  return Buffer.concat([randomBytes(seed, third), Buffer.alloc(sizeBytes - third, `${seed}\n`)]);
}

/** The key stream of a cipher: as good as random, the same for the same seed, and fast. */
function randomBytes(seed: string, sizeBytes: number): Uint8Array {
  const key = createHash("sha256").update(seed).digest();
  const cipher = createCipheriv("aes-256-ctr", key, Buffer.alloc(16));
  return cipher.update(Buffer.alloc(sizeBytes));
}

function layerOf(parts: readonly Uint8Array[], isGzip = false): Layer {
  const tar = Buffer.concat([...parts, tarEnd]);
  return {
    mediaType: `application/vnd.oci.image.layer.v1.tar${isGzip ? "+gzip" : ""}`,
    blob: isGzip ? Bun.gzipSync(tar, { level: 1 }) : tar,
    diffId: sha256(tar),
  };
}
