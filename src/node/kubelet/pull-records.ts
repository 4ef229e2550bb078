// Reads the kubelet's records of its image pulls in ROOT/image_manager: `pulling` has an intent for each pull under way,
// `pulled` a record for each pulled image. They belong to the kubelet; crigc never writes there.

import { constants } from "node:fs";
import { lstat, open, realpath } from "node:fs/promises";
import { join } from "node:path";

import * as v from "valibot";

import type { ImageId } from "../../model/ids.ts";
import type { PullReader } from "../../model/ports.ts";
import type { PullIntent, PullReading, PullRecord } from "../../model/records.ts";
import type { Image } from "../../model/snapshot.ts";
import { type Instant, instant } from "../../model/time.ts";
import { mapBounded, parsedJson } from "../../model/values.ts";
import { Directory } from "../directory.ts";
import { codeOf, reasonOf, sha256OfText } from "../files.ts";

/** About 100,000 entries; Bun reads a directory as a whole. */
const DIRECTORY_BYTES_MAX = 16 * 1024 * 1024;
/** A kubelet pulls far fewer images at once. */
const INTENTS_MAX = 1_000;
/** A record has some 100 bytes for each pod secret that pulled the image. */
const FILE_BYTES_MAX = 1024 * 1024;
/** For reports. */
const RECORDS_MAX = 20_000;
const CONCURRENCY = 16;

type Part = "pulling" | "pulled";

export class PullRecords implements PullReader {
  readonly #root: string;
  readonly #directory: string;

  /** `root`: the kubelet's directory; "/" without one. */
  constructor(root: string) {
    this.#root = root;
    this.#directory = join(root, "image_manager");
  }

  async read(...[images, isSettled]: Parameters<PullReader["read"]>): Promise<PullReading> {
    const intents = await this.intents();
    try {
      const files = await this.#list("pulled");
      const { recorded, unlisted } = matchedTo(files, images);
      const isOpen = ([id]: readonly [ImageId, unknown]): boolean => !isSettled(id);
      const unreadable = await this.#unreadable([...recorded].filter(isOpen));
      return { kind: "read", directory: this.#directory, recorded, unreadable, unlisted, intents };
    } catch (error) {
      return { kind: "failed", message: this.#failure(error), intents };
    }
  }

  async intents(): Promise<readonly PullIntent[] | null> {
    try {
      return await this.#readIntents(await this.#list("pulling"));
    } catch {
      return null;
    }
  }

  async records(): Promise<readonly PullRecord[]> {
    try {
      const files = [...(await this.#list("pulled"))].slice(0, RECORDS_MAX);
      return await this.#filesOf("pulled", files, recordOf);
    } catch {
      return [];
    }
  }

  async #unreadable(
    recorded: readonly (readonly [ImageId, readonly string[]])[],
  ): Promise<readonly ImageId[]> {
    if (recorded.length === 0) return [];
    const all = recorded.flatMap(([, files]) => files);
    const valid = new Set(
      await this.#filesOf("pulled", all, (it) => (isOfPull(it) ? it.file : null)),
    );
    return recorded.flatMap(([id, files]) => (files.every((it) => valid.has(it)) ? [] : [id]));
  }

  /** An invalid file belongs to no pull in progress: the kubelet renames a file once it is written. */
  async #readIntents(files: ReadonlySet<string>): Promise<readonly PullIntent[]> {
    if (files.size > INTENTS_MAX) throw new Error(`more than ${INTENTS_MAX} pull intents`);
    const read = await this.#filesOf("pulling", files, ({ file, text, changedAt: markedAt }) => {
      if (text === null) throw new Error(`cannot read ${file}`);
      const parsed = v.safeParse(INTENT, parsedJson(text));
      const isOne = parsed.success && fileOf(parsed.output.image) === file;
      return isOne ? [{ image: parsed.output.image, markedAt }] : [];
    });
    return read.flat();
  }

  /** The names of its files. */
  async #list(part: Part): Promise<ReadonlySet<string>> {
    if (this.#root === "/") throw new Error("no directory of a kubelet was found");
    const path = join(this.#directory, part);
    const { size } = await lstat(path);
    if (size > DIRECTORY_BYTES_MAX) throw new Error(`${path} has too many entries to read`);
    const entries = await this.#within(part, (directory) => directory.entries());
    return new Set(entries.flatMap(({ name }) => (FILE_NAME.test(name) ? [name] : [])));
  }

  /** Opened without following a link below the root. */
  async #within<T>(part: Part, use: (directory: Directory) => Promise<T>): Promise<T> {
    await using manager = await Directory.open(join(await realpath(this.#root), "image_manager"));
    await using directory = await manager.openBelow(part);
    return await use(directory);
  }

  /** What `of` makes of each file, at once, so that only a few are in memory; without files that no longer exist. */
  async #filesOf<T>(
    part: Part,
    files: Iterable<string>,
    of: (read: Read) => T,
  ): Promise<readonly T[]> {
    return await this.#within(part, async (directory) => {
      const found = await mapBounded([...new Set(files)], CONCURRENCY, async (file) => {
        const read = await readOne(directory, file);
        return read === null ? [] : [of(read)];
      });
      return found.flat();
    });
  }

  #failure(error: unknown): string {
    const path = join(this.#directory, "pulled");
    return codeOf(error) === "ENOENT"
      ? `${path} does not exist (a kubelet keeps pull records since Kubernetes 1.35)`
      : `cannot read ${path}: ${reasonOf(error)}`;
  }
}

function matchedTo(files: ReadonlySet<string>, images: readonly Image[]) {
  const recorded = new Map<ImageId, readonly string[]>();
  const named = new Set<string>();
  for (const image of images) {
    const own = filesOf(image).filter((file) => files.has(file));
    if (own.length > 0) recorded.set(image.id, [...(recorded.get(image.id) ?? []), ...own]);
    for (const file of own) named.add(file);
  }
  return { recorded, unlisted: [...files].filter((file) => !named.has(file)) };
}

const filesOfImage = new WeakMap<Image, readonly string[]>();

/** A record is named by what the runtime returned from the pull: the ID, or on CRI-O a digest. */
function filesOf(image: Image): readonly string[] {
  const known = filesOfImage.get(image);
  if (known !== undefined) return known;
  const id = image.id.replace(/^sha256:/, "");
  const files = [...new Set([id, `sha256:${id}`, ...image.repoDigests])].map(fileOf);
  filesOfImage.set(image, files);
  return files;
}

/** Also skips drafts, which end in `.tmp`. */
const FILE_NAME = /^sha256-[0-9a-f]{64}$/;
const fileOf = (name: string): string => `sha256-${sha256OfText(name)}`;

/** v1alpha1 in Kubernetes 1.33 and 1.34, v1beta1 since. */
const API = v.pipe(v.string(), v.startsWith("kubelet.config.k8s.io/"));
const NAME = v.pipe(v.string(), v.minLength(1));
const INTENT = v.object({ apiVersion: API, kind: v.literal("ImagePullIntent"), image: NAME });
const SOURCES = v.nullish(v.array(v.unknown()));
const CREDENTIALS = v.object({
  nodePodsAccessible: v.nullish(v.boolean()),
  kubernetesSecrets: SOURCES,
  kubernetesServiceAccounts: SOURCES,
});
const RECORD = v.object({
  apiVersion: API,
  kind: v.literal("ImagePulledRecord"),
  imageRef: NAME,
  credentialMapping: v.nullish(v.record(v.string(), v.nullish(CREDENTIALS))),
});

function contentOf({ file, text }: Read): v.InferOutput<typeof RECORD> | null {
  const parsed = v.safeParse(RECORD, parsedJson(text ?? ""));
  return parsed.success && fileOf(parsed.output.imageRef) === file ? parsed.output : null;
}

/** From an interrupted pull a kubelet that starts makes a record without credentials, also for an image that was loaded. */
const isOfPull = (read: Read): boolean =>
  Object.values(contentOf(read)?.credentialMapping ?? {}).some(
    (to) =>
      to?.nodePodsAccessible === true ||
      [to?.kubernetesSecrets, to?.kubernetesServiceAccounts].some((it) => (it?.length ?? 0) > 0),
  );

function recordOf(read: Read): PullRecord {
  const { file } = read;
  const content = contentOf(read);
  if (content === null) return { file, imageRef: null, names: [], isForAllPods: false };
  const mapping = Object.entries(content.credentialMapping ?? {});
  return {
    file,
    imageRef: content.imageRef,
    names: mapping.map(([name]) => name),
    isForAllPods: mapping.length > 0 && mapping.every(([, to]) => to?.nodePodsAccessible === true),
  };
}

interface Read {
  readonly file: string;
  /** "" if it is not a regular file or is too large; `null`: it cannot be read. */
  readonly text: string | null;
  readonly changedAt: Instant;
}

/** `null`: it no longer exists. */
async function readOne(directory: Directory, file: string): Promise<Read | null> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    await using handle = await open(directory.pathOf(file), flags);
    const found = await handle.stat({ bigint: true });
    const isReadable = found.isFile() && found.size <= FILE_BYTES_MAX;
    const text = isReadable ? await handle.readFile("utf8") : "";
    return { file, text, changedAt: instant(found.mtimeNs) };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    return { file, text: codeOf(error) === "ELOOP" ? "" : null, changedAt: instant(0n) };
  }
}
