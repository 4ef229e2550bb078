/**
 * Complete lists of what is on the node: streamed if the runtime can, else in one response, else in parts. Decoded entries
 * are cached: without that a pass of 800 removals among 10,000 images takes 26 instead of 15 s of CPU time, and 400 instead
 * of 340 MB.
 */
import { RuntimeError } from "../model/errors.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
import { byId, mapBounded } from "../model/values.ts";
import { decodeContainer, decodeImage, decodeSandbox, digestOf } from "./decode.ts";
import { type ContainerMessage, type Method, methods, type SandboxMessage } from "./messages.ts";
import type { Channel } from "./transport.ts";

type Lists = Pick<RuntimeReader, "listImages" | "listContainers" | "listSandboxes">;

/** Two channels to two endpoints, or twice the same. */
export interface Sources {
  readonly runtime: Channel;
  readonly image: Channel;
  /** Called for each entry that is decoded. */
  readonly onNewEntry?: (() => void) | undefined;
}

export function makeLists({ runtime, image, onNewEntry = () => undefined }: Sources): Lists {
  const listSandboxes = makeList(runtime, {
    stream: methods.StreamPodSandboxes,
    whole: (ask) => ask(methods.ListPodSandbox, { filter: null }),
    parts: splitSandboxes,
    decode: decodeSandbox,
    onNewEntry,
    counting: latestOfEach,
  });
  return {
    listSandboxes,
    /** An image may be listed twice, as in the runtime's list. */
    listImages: makeList(image, {
      stream: methods.StreamImages,
      whole: (ask) => ask(methods.ListImages, {}),
      decode: decodeImage,
      onNewEntry,
    }),
    /** Each container once: a duplicate would push others over the limits. */
    listContainers: makeList(runtime, {
      stream: methods.StreamContainers,
      whole: (ask) => ask(methods.ListContainers, { filter: null }),
      parts: (ask, signal) => splitContainers(ask, () => listSandboxes(signal)),
      decode: decodeContainer,
      onNewEntry,
      counting: latestContainers,
    }),
  };
}

/** The items of one response or stream, in order. */
type Ask<Entry, Item> = <Request extends object>(
  method: Method<Request, Entry>,
  request: Request,
) => Promise<readonly Item[]>;

interface ListOptions<Entry, Item> {
  readonly stream: Method<object, Entry>;
  /** In one response. */
  readonly whole: (ask: Ask<Entry, Item>) => Promise<readonly Item[]>;
  /** A list that is too large for one response; absent: it cannot be split. */
  readonly parts?: (ask: Ask<Entry, Item>, signal: AbortSignal) => Promise<readonly Item[]>;
  readonly decode: (entry: Entry) => Item;
  readonly onNewEntry: () => void;
  /** Which of the items count; by default all. */
  readonly counting?: (items: readonly Item[]) => readonly Item[];
}

/**
 * One list of one runtime: complete, or an error, which discards what was read so far. Whether the runtime streams it is found
 * out once.
 *
 * Entries are recognised by the SHA-256 of their bytes, because authors of pods and images control parts of them: a fast
 * hash, even one with a secret seed, proves nothing (docs/decisions/0003). Those that a list no longer has are dropped,
 * unless it fails. Lists with the same items in any order (containerd's is random) are the same array, so that results
 * derived from a whole list can be cached by it too.
 */
export function makeList<Entry, Item extends { readonly id: string }>(
  channel: Pick<Channel, "list">,
  options: ListOptions<Entry, Item>,
): (signal: AbortSignal) => Promise<readonly Item[]> {
  const { stream, whole, parts, decode, onNewEntry, counting = (items) => items } = options;
  let isStreamed = true;
  /** By digest. */
  let known: ReadonlyMap<string, Item> = new Map();
  let last: readonly Item[] = [];
  let itemsOfLast: ReadonlySet<Item> = new Set();

  async function read(ask: Ask<Entry, Item>, signal: AbortSignal): Promise<readonly Item[]> {
    try {
      if (isStreamed) return await ask(stream, {});
    } catch (thrown) {
      const kind = thrown instanceof RuntimeError ? thrown.kind : null;
      if (kind === "unimplemented") isStreamed = false;
      // One message of the stream; a list of one response has the same limit, but can be split.
      else if (kind !== "too-large") throw thrown;
    }
    return parts === undefined
      ? whole(ask)
      : ((await orTooLarge(whole(ask))) ?? parts(ask, signal));
  }

  return async (signal) => {
    const listed = new Map<string, Item>();
    const ask: Ask<Entry, Item> = async (method, request) => {
      const found: Item[] = [];
      const onEntry = (bytes: Buffer): void => {
        const digest = digestOf(bytes);
        let item = known.get(digest) ?? listed.get(digest);
        if (item === undefined) {
          item = decode(method.answer.decode(bytes));
          onNewEntry();
        }
        listed.set(digest, item);
        found.push(item);
      };
      await channel.list(method, request, { signal, onEntry });
      return found;
    };
    const counted = counting(await read(ask, signal));
    known = listed;
    // If an ID is listed twice, the order matters.
    const isSet = byId(counted).size === counted.length;
    const isSame =
      counted.length === last.length &&
      counted.every((item, at) => (isSet ? itemsOfLast.has(item) : item === last[at]));
    if (!isSame) [last, itemsOfLast] = [counted, new Set(counted)];
    return last;
  };
}

/** `null` if a message was too large for the runtime. */
async function orTooLarge<Items>(asked: Promise<Items>): Promise<Items | null> {
  try {
    return await asked;
  } catch (thrown) {
    if (thrown instanceof RuntimeError && thrown.kind === "too-large") return null;
    throw thrown;
  }
}

/* Lists that exceed the size of a message are split into parts that together miss nothing. */

const CREATED = 0;
const RUNNING = 1;
const EXITED = 2;
const UNKNOWN = 3;

/**
 * The order makes the union complete. A container goes from created to running to exited and never back, so asking in
 * this order meets it at least once: if it left a state before the question, its next state is still to be asked for.
 * UNKNOWN can be entered and left again (CRI-O reports paused containers as unknown), so it is requested first and
 * again after EXITED, followed by the states that a paused container can reach.
 */
const containerStates = [UNKNOWN, CREATED, RUNNING, EXITED, UNKNOWN, RUNNING, EXITED];

/** A sandbox goes from ready to not ready; if a runtime revives one, the second question meets it. */
const READY = 0;
const NOT_READY = 1;
const sandboxStates = [READY, NOT_READY, READY];

/** Concurrent questions about single sandboxes. */
const questionsAtOnce = 16;

/**
 * By state; if one state alone is too large, by sandbox, which never changes for a container. A sandbox created after
 * the sandboxes were listed is newer than the list, and so are its containers.
 */
async function splitContainers(
  ask: Ask<ContainerMessage, Container>,
  sandboxes: () => Promise<readonly Sandbox[]>,
): Promise<readonly Container[]> {
  const found: Container[] = [];
  let isWhole = true;
  for (const state of containerStates) {
    const filter = { state: { state }, pod_sandbox_id: "" };
    const part = await orTooLarge(ask(methods.ListContainers, { filter }));
    if (part === null) isWhole = false;
    else for (const container of part) found.push(container);
  }
  if (isWhole) return found;
  const listed = await sandboxes();
  const ids = [...listed.map(({ id }) => id), ...found.map(({ sandboxId }) => sandboxId)];
  const parts = await mapBounded([...new Set(ids)], questionsAtOnce, (sandbox) =>
    ask(methods.ListContainers, { filter: { state: null, pod_sandbox_id: sandbox } }),
  );
  return [...found, ...parts.flat()];
}

/** By state only: CRI has no other filter whose values are known in advance. */
async function splitSandboxes(ask: Ask<SandboxMessage, Sandbox>): Promise<readonly Sandbox[]> {
  const found: Sandbox[] = [];
  for (const state of sandboxStates)
    for (const sandbox of await ask(methods.ListPodSandbox, { filter: { state: { state } } }))
      found.push(sandbox);
  return found;
}

/** Of items met twice, the later one counts. */
const latestOfEach = <Item extends { readonly id: string }>(
  items: readonly Item[],
): readonly Item[] => [...byId(items).values()];

/** A container's image never changes, so of two different ones either may be in use. */
function latestContainers(containers: readonly Container[]): readonly Container[] {
  const latest = byId(containers);
  for (const { id, imageName, imageRef, imageId } of containers) {
    const later = latest.get(id);
    if (later?.imageId !== imageId || later.imageRef !== imageRef || later.imageName !== imageName)
      throw new RuntimeError(
        "malformed",
        `cannot list the containers: ${id} is listed twice, with different images, so crigc ignores the list; report this with the runtime's version`,
      );
  }
  return [...latest.values()];
}
