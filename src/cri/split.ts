/** Lists that are too large for one message, asked for in parts that together miss nothing. */
import { RuntimeError } from "../model/errors.ts";
import type { SandboxId } from "../model/ids.ts";
import type { Container, Sandbox } from "../model/snapshot.ts";
import type { Channel } from "./channel.ts";
import { byId, itemsOf, type Reading } from "./entries.ts";
import type { ContainerFilterMessage, ListMethod } from "./messages.ts";

const CREATED = 0;
const RUNNING = 1;
const EXITED = 2;
const UNKNOWN = 3;

/**
 * The order is what makes the union complete. A container goes from created to running to exited and never back, so
 * that asking in that order meets it at least once: a state that it had left before the question was followed by one
 * that is still to be asked for. Unknown can be entered and left again (a paused container of CRI-O is unknown), hence
 * it is asked for first and last, and running once more after it.
 */
const containerStates = [UNKNOWN, CREATED, RUNNING, EXITED, UNKNOWN, RUNNING];

/** A sandbox goes from ready to not ready; should a runtime revive one, it is met by the second question. */
const READY = 0;
const NOT_READY = 1;
const sandboxStates = [READY, NOT_READY, READY];

/** Who is asked for parts, and what reads them. */
export interface Parts<M extends ListMethod, Item> extends Reading<M, Item> {
  readonly runtime: Channel;
}

/** Questions about single sandboxes that are under way at once. */
const questionsAtOnce = 16;

/**
 * By state; where one state alone is too large, by sandbox, which a container never changes. A sandbox that is made
 * after the sandboxes were listed is newer than the list, as are its containers.
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

/** By state only: CRI has no other filter whose values are known beforehand. */
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
  /** Only what is in this sandbox. */
  readonly sandbox?: SandboxId;
}

interface ByState {
  readonly found: readonly Container[];
  /** Why a state is missing; `null`: none is. */
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

/** The error itself where the answer would have been larger than a message may be; any other one is thrown. */
export async function orTooLarge<Items>(asked: Promise<Items>): Promise<Items | RuntimeError> {
  try {
    return await asked;
  } catch (thrown) {
    if (thrown instanceof RuntimeError && thrown.kind === "too-large") return thrown;
    throw thrown;
  }
}

/** What was met twice counts as it was met last. */
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
