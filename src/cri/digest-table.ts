/** SHA-256, to compare entries of a list by their bytes and for layer chains, and what is known by such a digest. */

const hash = new Uint8Array(32);
const hashWords = new Int32Array(hash.buffer);

/** As eight numbers, until it is called again. */
export function digestOf(bytes: Buffer): Int32Array {
  Bun.SHA256.hash(bytes, hash);
  return hashWords;
}

export const digestOfText = (text: string): string => Bun.SHA256.hash(text, "hex");

const WORDS = 8;
/** So that nobody can choose where entries go, and make all of them go to one place. */
const MULTIPLIER = (crypto.getRandomValues(new Int32Array(1))[0] ?? 0) | 1;

/** Side by side in arrays of numbers, where a map of texts takes six times as much. */
export class DigestTable<Value> {
  readonly #values: Value[] = [];
  #words = new Int32Array(32 * WORDS);
  /** Where each digest may be found, counted from 1; 0: nothing is there. Half of them at least are free. */
  #slots = new Int32Array(64);

  get size(): number {
    return this.#values.length;
  }

  /** -1: it is not known. */
  indexOf(digest: Int32Array): number {
    return (this.#slots[this.#slotOf(digest, 0)] ?? 0) - 1;
  }

  at(index: number): Value | undefined {
    return this.#values[index];
  }

  /** Of a digest that is not known yet, and begins there. */
  add(digest: Int32Array, value: Value, start = 0): void {
    if (2 * (this.size + 1) > this.#slots.length) this.#grow();
    const own = this.size * WORDS;
    for (let word = 0; word < WORDS; word += 1) this.#words[own + word] = digest[start + word] ?? 0;
    this.#values.push(value);
    this.#slots[this.#slotOf(digest, start)] = this.size;
  }

  /** Adds what is marked there. */
  addMarked(other: DigestTable<Value>, marks: Uint8Array): void {
    for (const [index, value] of other.#values.entries())
      if (marks[index] === 1) this.add(other.#words, value, index * WORDS);
  }

  /** Where it is, or where it belongs. */
  #slotOf(digest: Int32Array, start: number): number {
    const last = this.#slots.length - 1;
    let slot = Math.imul(digest[start] ?? 0, MULTIPLIER) >>> Math.clz32(last);
    for (;;) {
      const index = this.#slots[slot] ?? 0;
      if (index === 0 || this.#isAt(index - 1, digest, start)) return slot;
      slot = (slot + 1) & last;
    }
  }

  #isAt(index: number, digest: Int32Array, start: number): boolean {
    const own = index * WORDS;
    for (let word = 0; word < WORDS; word += 1)
      if (this.#words[own + word] !== digest[start + word]) return false;
    return true;
  }

  #grow(): void {
    const words = new Int32Array(this.#words.length * 2);
    words.set(this.#words);
    this.#words = words;
    this.#slots = new Int32Array(this.#slots.length * 2);
    for (let index = 0; index < this.size; index += 1)
      this.#slots[this.#slotOf(words, index * WORDS)] = index + 1;
  }
}
