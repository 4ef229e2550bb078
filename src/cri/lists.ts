/** Complete lists of what is on the node: streamed if the runtime can, else in one response, else in parts. */
import { RuntimeError } from "../model/errors.ts";
import type { SandboxId } from "../model/ids.ts";
import type { RuntimeReader } from "../model/ports.ts";
import type { Container, Image, Sandbox } from "../model/snapshot.ts";
import { byId, mapBounded } from "../model/values.ts";
import { containerIn, imageIn, sandboxIn } from "./decode.ts";
import { listCache, type ListReading } from "./entries.ts";
import type { ContainerList, ImageList, ListMethod, Request, SandboxList } from "./messages.ts";
import type { Channel } from "./transport.ts";

type Lists = Pick<RuntimeReader, "listImages" | "listContainers" | "listSandboxes">;

interface Sources {
  readonly runtime: Channel;
  readonly image: Channel;
  readonly onNewEntry?: (() => void) | undefined;
}

type Containers = ListReading<ContainerList, Container>;
type Sandboxes = ListReading<SandboxList, Sandbox>;

/** An error discards what was read so far: a list is complete or an error. */
export function makeLists({ runtime, image, onNewEntry = () => undefined }: Sources): Lists {
  const streamed = listStreams();
  const streamedImages = listStreams();
  const images = listCache<ImageList, Image>(image, { decode: imageIn, onNewEntry });
  const containers = listCache<ContainerList, Container>(runtime, {
    decode: containerIn,
    onNewEntry,
    counting: latestContainers,
  });
  const sandboxes = listCache<SandboxList, Sandbox>(runtime, {
    decode: sandboxIn,
    onNewEntry,
    counting: latestOfEach,
  });
  const listSandboxes: Lists["listSandboxes"] = (signal) =>
    sandboxes.list(
      signal,
      async (reading) =>
        (await streamed(reading, () => reading.ask("StreamPodSandboxes", {}))) ??
        (await orTooLarge(reading.ask("ListPodSandbox", { filter: null }))) ??
        splitSandboxes(reading),
    );
  return {
    listSandboxes,
    /** An image may be listed twice, as in the runtime's list. */
    listImages: (signal) =>
      images.list(
        signal,
        async (reading) =>
          (await streamedImages(reading, () => reading.ask("StreamImages", {}))) ??
          reading.ask("ListImages", {}),
      ),
    /** Each container once: a duplicate would push others over the limits. */
    listContainers: (signal) =>
      containers.list(
        signal,
        async (reading) =>
          (await streamed(reading, () => reading.ask("StreamContainers", {}))) ??
          (await orTooLarge(containersIn(reading))) ??
          splitContainers(reading, () => listSandboxes(signal)),
      ),
  };
}

type ListRequest<Item> = () => Promise<readonly Item[]>;

/**
 * A streamed list; `null` if the service does not stream, which is found out once per service (they may differ), or if
 * one message of the stream is too large for the runtime: a list of one response has the same limit, but can be split.
 */
function listStreams() {
  let isSupported = true;
  return async <M extends ListMethod, Item>(
    reading: ListReading<M, Item>,
    ask: ListRequest<Item>,
  ): Promise<readonly Item[] | null> => {
    if (!isSupported) return null;
    try {
      return await ask();
    } catch (thrown) {
      if (thrown instanceof RuntimeError && thrown.kind === "too-large") return null;
      // The refusal comes with the first read, not with the call; after an entry it is a fault like any other.
      const refused = thrown instanceof RuntimeError && thrown.kind === "unimplemented";
      if (!refused || reading.entryCount() > 0) throw thrown;
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

/** Concurrent questions about single sandboxes. */
const questionsAtOnce = 16;

/**
 * By state; if one state alone is too large, by sandbox, which never changes for a container. A sandbox created after
 * the sandboxes were listed is newer than the list, and so are its containers.
 */
async function splitContainers(
  reading: Containers,
  sandboxes: ListRequest<Sandbox>,
): Promise<readonly Container[]> {
  const found: Container[] = [];
  let isWhole = true;
  for (const state of containerStates) {
    const part = await orTooLarge(containersIn(reading, { state: { state } }));
    if (part === null) isWhole = false;
    else for (const container of part) found.push(container);
  }
  if (isWhole) return latestContainers(found);
  const listed = await sandboxes();
  const ids = [...listed.map(({ id }) => id), ...found.map(({ sandboxId }) => sandboxId)];
  const parts = await mapBounded([...new Set(ids)], questionsAtOnce, (sandbox) =>
    containersIn(reading, { sandbox }),
  );
  return latestContainers([...found, ...parts.flat()]);
}

/** By state only: CRI has no other filter whose values are known in advance. */
async function splitSandboxes(reading: Sandboxes): Promise<readonly Sandbox[]> {
  const found: Sandbox[] = [];
  for (const state of sandboxStates)
    for (const sandbox of await reading.ask("ListPodSandbox", { filter: { state: { state } } }))
      found.push(sandbox);
  return latestOfEach(found);
}

interface ContainerFilter {
  readonly state?: { readonly state: number };
  readonly sandbox?: SandboxId | undefined;
}

const containersIn = (
  reading: Containers,
  { state, sandbox }: ContainerFilter = {},
): Promise<readonly Container[]> => {
  const filter = { state: state ?? null, pod_sandbox_id: sandbox ?? "" };
  const request: Request<"ListContainers"> = { filter };
  return reading.ask("ListContainers", request);
};

/** `null` if the response exceeded the size of a message. */
async function orTooLarge<Items>(asked: Promise<Items>): Promise<Items | null> {
  try {
    return await asked;
  } catch (thrown) {
    if (thrown instanceof RuntimeError && thrown.kind === "too-large") return null;
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

/** A container's image never changes, so of two different ones either may be in use. */
function latestContainers(containers: readonly Container[]): readonly Container[] {
  const latest = latestOfEach(containers);
  if (latest === containers) return latest;
  const counted = byId(latest);
  for (const { id, imageName, imageRef, imageId } of containers) {
    const later = counted.get(id);
    if (later?.imageId !== imageId || later.imageRef !== imageRef || later.imageName !== imageName)
      throw new RuntimeError(
        "malformed",
        `cannot list the containers: ${id} is listed twice, with different images, so crigc ignores the list; report this with the runtime's version`,
      );
  }
  return latest;
}
