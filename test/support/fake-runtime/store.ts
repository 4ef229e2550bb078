// The fake runtime's disk: layers that images share, as real files where a directory is given.
import { closeSync, mkdirSync, openSync, statfsSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";

import { hexId, type LayerDescription } from "./describe.ts";

export interface StoreOptions {
  /** Where layers lie as files of their size; without one they only count. */
  readonly directory?: string | undefined;
  /** Space comes free so long after the last image of a layer went. */
  readonly releaseDelayMs?: number | undefined;
}

export class LayerStore {
  readonly directory: string | undefined;
  releaseDelayMs: number;
  /** How many images use a layer; 0: to be released. */
  readonly #users = new Map<string, number>();
  readonly #layers = new Map<string, LayerDescription>();
  readonly #timers = new Set<Timer>();

  constructor({ directory, releaseDelayMs = 0 }: StoreOptions) {
    this.directory = directory;
    this.releaseDelayMs = releaseDelayMs;
    if (directory !== undefined) mkdirSync(directory, { recursive: true });
  }

  /** What the layers take, those included whose release is due. */
  get usedBytes(): number {
    return [...this.#layers.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** No byte is available where the layers lie. */
  get isFull(): boolean {
    return this.directory !== undefined && statfsSync(this.directory).bavail === 0;
  }

  get layerCount(): number {
    return this.#layers.size;
  }

  acquire(layers: readonly LayerDescription[]): void {
    for (const layer of layers) {
      this.#users.set(layer.id, (this.#users.get(layer.id) ?? 0) + 1);
      if (this.#layers.has(layer.id)) continue;
      this.#layers.set(layer.id, layer);
      if (this.directory !== undefined) writeLayer(this.#fileOf(layer), layer.bytes);
    }
  }

  release(layers: readonly LayerDescription[]): void {
    for (const { id } of layers) this.#users.set(id, (this.#users.get(id) ?? 1) - 1);
    if (this.releaseDelayMs === 0) {
      this.#sweep();
      return;
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#sweep();
    }, this.releaseDelayMs);
    this.#timers.add(timer);
  }

  /** Forgets what is still to be released. */
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #sweep(): void {
    for (const [id, layer] of this.#layers) {
      if ((this.#users.get(id) ?? 0) > 0) continue;
      this.#layers.delete(id);
      this.#users.delete(id);
      if (this.directory !== undefined) unlinkSync(this.#fileOf(layer));
    }
  }

  #fileOf({ id }: LayerDescription): string {
    return join(this.directory ?? "", `layer-${hexId(id).slice(0, 24)}`);
  }
}

type Timer = ReturnType<typeof setTimeout>;

const chunk = crypto.getRandomValues(new Uint8Array(65_536));

/** Written, not only sized: a sparse file would take no space. */
function writeLayer(path: string, bytes: number): void {
  const file = openSync(path, "w");
  try {
    for (let written = 0; written < bytes;)
      written += writeSync(file, chunk, 0, Math.min(chunk.length, bytes - written));
  } finally {
    closeSync(file);
  }
}
