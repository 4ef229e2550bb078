/** Complete lists of what is on the node: streamed if the runtime can, else in one response, else in parts. */
import { RuntimeError } from "../model/errors.ts";
import type { SandboxId } from "../model/ids.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Container, Image, Sandbox } from "../model/snapshot.ts";
import { byId } from "../model/values.ts";
import type { Channel } from "./channel.ts";
import { containerIn, imageIn, sandboxIn } from "./decode.ts";
import { entryCache, itemsOf, type Reading } from "./entries.ts";
import type {
  ContainerFilterMessage,
  ContainerList,
  ImageList,
  ListMethod,
  SandboxList,
  StreamMethod,
} from "./messages.ts";

type Lists = Pick<RuntimeReader, "listImages" | "listContainers" | "listSandboxes">;

interface Sources {
  readonly runtime: Channel;
  readonly image: Channel;
  readonly onNewEntry?: (() => void) | undefined;
}

/** An error discards what was read so far: a list is complete or an error. */
export function makeLists({ runtime, image, onNewEntry = () => undefined }: Sources): Lists {
  const streamed = listStreams(runtime);
  const streamedImages = listStreams(image);
  const containersInOne = oneOrParts<Container>();
  const sandboxesInOne = oneOrParts<Sandbox>();
  const knownImages = entryCache<ImageList, Image>(imageIn, { onNewEntry });
  const knownContainers = entryCache<ContainerList, Container>(containerIn, {
    onNewEntry,
    counting: latestOfEach,
  });
  const knownSandboxes = entryCache<SandboxList, Sandbox>(sandboxIn, {
    onNewEntry,
    counting: latestOfEach,
  });
  const listSandboxes: Lists["listSandboxes"] = async (signal) =>
    knownSandboxes.list(async (itemOf) => {
      const reading = { itemOf, signal };
      return (
        (await streamed("StreamPodSandboxes", reading)) ??
        sandboxesInOne(async (inParts) =>
          inParts
            ? splitSandboxes({ runtime, ...reading })
            : itemsOf(runtime, ["ListPodSandbox", {}], reading),
        )
      );
    });
  return {
    listSandboxes,
    /** An image may be listed twice, as in the runtime's list. */
    listImages: async (signal) =>
      knownImages.list(async (itemOf) => {
        const reading = { itemOf, signal };
        return (
          (await streamedImages("StreamImages", reading)) ??
          itemsOf(image, ["ListImages", {}], reading)
        );
      }),
    /** Each container once: a duplicate would push others over the limits. */
    listContainers: async (signal) =>
      knownContainers.list(async (itemOf) => {
        const reading = { itemOf, signal };
        return (
          (await streamed("StreamContainers", reading)) ??
          containersInOne(async (inParts) =>
            inParts
              ? splitContainers({ runtime, ...reading }, async () => listSandboxes(signal))
              : itemsOf(runtime, ["ListContainers", {}], reading),
          )
        );
      }),
  };
}

type ListRequest<Item> = (inParts: boolean) => Promise<readonly Item[]>;

/**
 * Once the whole was too large, continues to ask for parts until half of the items are gone: a runtime builds the whole
 * response before it finds that it is too large to send.
 */
function oneOrParts<Item>(): (ask: ListRequest<Item>) => Promise<readonly Item[]> {
  let countWhenTooLarge: number | null = null;
  return async (ask) => {
    if (countWhenTooLarge === null) {
      const whole = await orTooLarge(ask(false));
      if (!(whole instanceof RuntimeError)) return whole;
    }
    const items = await ask(true);
    countWhenTooLarge ??= items.length;
    if (items.length < countWhenTooLarge / 2) countWhenTooLarge = null;
    return items;
  };
}

/** A streamed list; `null` if the service does not stream, which is found out once per service: they may differ. */
function listStreams(channel: Channel) {
  let isSupported = true;
  return async <M extends ListMethod & StreamMethod, Item>(
    method: M,
    { itemOf, signal }: Reading<M, Item>,
  ): Promise<readonly Item[] | null> => {
    if (!isSupported) return null;
    let count = 0;
    const counted: Reading<M, Item>["itemOf"] = (of, bytes) => {
      count += 1;
      return itemOf(of, bytes);
    };
    try {
      return await itemsOf(channel, [method, {}], { signal, itemOf: counted });
    } catch (thrown) {
      // The refusal comes with the first read, not with the call; after an entry it is a fault like any other.
      const refused = thrown instanceof RuntimeError && thrown.kind === "unimplemented";
      if (!refused || count > 0) throw thrown;
      isSupported = false;
      return null;
    }
  };
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

/** What to ask for parts, and how to read them. */
interface PartialList<M extends ListMethod, Item> extends Reading<M, Item> {
  readonly runtime: Channel;
}

/** Concurrent questions about single sandboxes. */
const questionsAtOnce = 16;

/**
 * By state; if one state alone is too large, by sandbox, which never changes for a container. A sandbox created after
 * the sandboxes were listed is newer than the list, and so are its containers.
 */
async function splitContainers(
  query: PartialList<"ListContainers", Container>,
  sandboxes: () => Promise<readonly Sandbox[]>,
): Promise<readonly Container[]> {
  const { found, refusal } = await containersByState(query);
  if (refusal === null) return latestOfEach(found);
  const listed = await sandboxes();
  const named = [...listed.map(({ id }) => id), ...found.map(({ sandboxId }) => sandboxId)];
  const all = [...found];
  for (const batch of batchesOf(questionsAtOnce, [...new Set(named)])) {
    const parts = await Promise.all(
      batch.map(async (sandbox) => containersOfSandbox({ ...query, sandbox })),
    );
    for (const part of parts) for (const container of part) all.push(container);
  }
  return latestOfEach(all);
}

/** By state only: CRI has no other filter whose values are known in advance. */
async function splitSandboxes(
  query: PartialList<"ListPodSandbox", Sandbox>,
): Promise<readonly Sandbox[]> {
  const found: Sandbox[] = [];
  for (const state of sandboxStates) {
    const filter = { state: { state } };
    for (const sandbox of await itemsOf(query.runtime, ["ListPodSandbox", { filter }], query))
      found.push(sandbox);
  }
  return latestOfEach(found);
}

interface ContainerQuery extends PartialList<"ListContainers", Container> {
  /** Only containers of this sandbox. */
  readonly sandbox?: SandboxId;
}

interface ByState {
  readonly found: readonly Container[];
  /** Why a state is missing; `null` if none is. */
  readonly refusal: RuntimeError | null;
}

async function containersByState(query: ContainerQuery): Promise<ByState> {
  const found: Container[] = [];
  let refusal: RuntimeError | null = null;
  for (const state of containerStates) {
    const part = await orTooLarge(listContainers(query, { state: { state } }));
    if (part instanceof RuntimeError) refusal = part;
    else for (const container of part) found.push(container);
  }
  return { found, refusal };
}

async function containersOfSandbox(query: ContainerQuery): Promise<readonly Container[]> {
  const whole = await orTooLarge(listContainers(query, {}));
  if (!(whole instanceof RuntimeError)) return whole;
  const { found, refusal } = await containersByState(query);
  if (refusal !== null) throw refusal;
  return found;
}

async function listContainers(
  query: ContainerQuery,
  filter: ContainerFilterMessage,
): Promise<readonly Container[]> {
  const { sandbox } = query;
  const here = sandbox === undefined ? filter : { ...filter, pod_sandbox_id: sandbox };
  return itemsOf(query.runtime, ["ListContainers", { filter: here }], query);
}

/** Returns the error if the response exceeded the size of a message, and throws any other. */
async function orTooLarge<Items>(asked: Promise<Items>): Promise<Items | RuntimeError> {
  try {
    return await asked;
  } catch (thrown) {
    if (thrown instanceof RuntimeError && thrown.kind === "too-large") return thrown;
    throw thrown;
  }
}

/** Of items met twice, the later one counts. */
function latestOfEach<Item extends { readonly id: string }>(
  items: readonly Item[],
): readonly Item[] {
  const latest = byId(items);
  return latest.size === items.length ? items : [...latest.values()];
}

function batchesOf<Item>(size: number, items: readonly Item[]): readonly (readonly Item[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}
