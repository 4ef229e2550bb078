/** Splits lists that exceed the size of a message into parts that together miss nothing. */
import { RuntimeError } from "../model/errors.ts";
import type { SandboxId } from "../model/ids.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
import { byId } from "../model/values.ts";
import type { Channel } from "./channel.ts";
import { itemsOf, type Reading } from "./entries.ts";
import type { ContainerFilterMessage, ListMethod } from "./messages.ts";

const CREATED = 0;
const RUNNING = 1;
const EXITED = 2;
const UNKNOWN = 3;

/**
 * The order makes the union complete. A container goes from created to running to exited and never back, so asking in
 * this order meets it at least once: if it left a state before the question, its next state is still to be asked for.
 * UNKNOWN can be entered and left again (CRI-O reports paused containers as unknown), so it is asked for first and
 * again at the end, followed by the states that a paused container can go to.
 */
const containerStates = [UNKNOWN, CREATED, RUNNING, EXITED, UNKNOWN, RUNNING, EXITED];

/** A sandbox goes from ready to not ready; if a runtime revives one, the second question meets it. */
const READY = 0;
const NOT_READY = 1;
const sandboxStates = [READY, NOT_READY, READY];

/** What to ask for parts, and how to read them. */
export interface Parts<M extends ListMethod, Item> extends Reading<M, Item> {
  readonly runtime: Channel;
}

/** Concurrent questions about single sandboxes. */
const questionsAtOnce = 16;

/**
 * By state; if one state alone is too large, by sandbox, which never changes for a container. A sandbox created after
 * the sandboxes were listed is newer than the list, and so are its containers.
 */
export async function splitContainers(
  place: Parts<"ListContainers", Container>,
  sandboxes: () => Promise<readonly Sandbox[]>,
): Promise<readonly Container[]> {
  const { found, refusal } = await containersByState(place);
  if (refusal === null) return latestOfEach(found);
  const listed = await sandboxes();
  const named = [...listed.map(({ id }) => id), ...found.map(({ sandboxId }) => sandboxId)];
  const all = [...found];
  for (const batch of batchesOf(questionsAtOnce, [...new Set(named)])) {
    const parts = await Promise.all(
      batch.map(async (sandbox) => containersOfSandbox({ ...place, sandbox })),
    );
    for (const part of parts) for (const container of part) all.push(container);
  }
  return latestOfEach(all);
}

/** By state only: CRI has no other filter whose values are known in advance. */
export async function splitSandboxes(
  place: Parts<"ListPodSandbox", Sandbox>,
): Promise<readonly Sandbox[]> {
  const found: Sandbox[] = [];
  for (const state of sandboxStates) {
    const filter = { state: { state } };
    for (const sandbox of await itemsOf(place.runtime, ["ListPodSandbox", { filter }], place))
      found.push(sandbox);
  }
  return latestOfEach(found);
}

interface Place extends Parts<"ListContainers", Container> {
  /** Only containers of this sandbox. */
  readonly sandbox?: SandboxId;
}

interface ByState {
  readonly found: readonly Container[];
  /** Why a state is missing; `null` if none is. */
  readonly refusal: RuntimeError | null;
}

async function containersByState(place: Place): Promise<ByState> {
  const found: Container[] = [];
  let refusal: RuntimeError | null = null;
  for (const state of containerStates) {
    const part = await orTooLarge(listContainers(place, { state: { state } }));
    if (part instanceof RuntimeError) refusal = part;
    else for (const container of part) found.push(container);
  }
  return { found, refusal };
}

async function containersOfSandbox(place: Place): Promise<readonly Container[]> {
  const whole = await orTooLarge(listContainers(place, {}));
  if (!(whole instanceof RuntimeError)) return whole;
  const { found, refusal } = await containersByState(place);
  if (refusal !== null) throw refusal;
  return found;
}

async function listContainers(
  place: Place,
  filter: ContainerFilterMessage,
): Promise<readonly Container[]> {
  const { sandbox } = place;
  const here = sandbox === undefined ? filter : { ...filter, pod_sandbox_id: sandbox };
  return itemsOf(place.runtime, ["ListContainers", { filter: here }], place);
}

/** Returns the error if the response exceeded the size of a message, and throws any other. */
export async function orTooLarge<Items>(asked: Promise<Items>): Promise<Items | RuntimeError> {
  try {
    return await asked;
  } catch (thrown) {
    if (thrown instanceof RuntimeError && thrown.kind === "too-large") return thrown;
    throw thrown;
  }
}

/** Of items met twice, the later one counts. */
export function latestOfEach<Item extends { readonly id: string }>(
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
