/** Why anything is kept, removed or blocked: each reason is declared once, with its title, sentence and data. */

import { assertNever } from "../model/errors.ts";
import type { PlanNote, PodSourceState } from "../model/plan.ts";
import type {
  ContainerKeepReason,
  ContainerRemoveReason,
  ImageKeepReason,
  ImageTrigger,
  ImageUser,
  LogKeepReason,
  LogRemoveReason,
  RemovalBlock,
  SandboxKeepReason,
  SandboxRemoveReason,
} from "../model/reason.ts";
import type { Instant } from "../model/time.ts";
import { type JsonObject, jsonOf } from "./document.ts";
import { andMore, clean } from "./terminal.ts";
import { humanBytes, humanDuration, plural, secondOf, shortId } from "./words.ts";

/** A reason by its code. */
export interface Kind {
  readonly kind: string;
}

export type ReasonTable<Reason extends Kind> = {
  readonly [Code in Reason["kind"]]: {
    /** A short title, for a heading or a column. */
    readonly title: string;
    /** A sentence without a full stop; absent: the title. */
    text?(reason: Extract<Reason, { kind: Code }>): string;
    /** Data in documents, if other than the fields of the reason. */
    data?(reason: Extract<Reason, { kind: Code }>): object;
  };
};

interface Reasons<Reason extends Kind> {
  readonly text: (reason: Reason) => string;
  /** An unknown code, of a later version, is shown as it is. */
  readonly title: (code: string) => string;
  readonly json: (reason: Reason) => ReasonJson;
}

/** With the data of the reason. */
export type ReasonJson = JsonObject & { readonly code: string; readonly text: string };

export function reasons<Reason extends Kind>(table: ReasonTable<Reason>): Reasons<Reason> {
  const entries = new Map<string, ReasonTable<Kind>[string]>(Object.entries(table));
  const title = (code: string): string => entries.get(code)?.title ?? code;
  const text = (reason: Reason): string =>
    entries.get(reason.kind)?.text?.(reason) ?? title(reason.kind);
  return {
    text,
    title,
    json: (reason) => {
      const data = entries.get(reason.kind)?.data?.(reason);
      const other = data === undefined ? dataJson(reason) : jsonOf(data);
      return { code: reason.kind, text: text(reason), ...other };
    },
  };
}

/** The fields of a reason, finding or hold without its code. */
export const dataJson = ({ kind: _code, ...data }: Kind): JsonObject => jsonOf(data);

export const imageKeep = reasons<ImageKeepReason>({
  "in-use": {
    title: "in use",
    text: ({ users }) => `in use by ${usersWords(users)}`,
  },
  pinned: { title: "pinned in the runtime" },
  "sandbox-image": {
    title: "sandbox image",
    text: ({ by, name }) => `sandbox image ${clean(name)}, ${SANDBOX_IMAGE_BY[by]}`,
  },
  "keep-rule": {
    title: "keep rule",
    text: ({ pattern, source, name }) =>
      `keep rule ${clean(pattern)} (${clean(source)})${name === pattern ? "" : ` matches ${clean(name)}`}`,
  },
  "keep-loaded": { title: "loaded from an archive" },
  "keep-per-repository": {
    title: "recently used in its repository",
    text: ({ repository, place, limit }) =>
      `number ${place} of the ${limit} most recently used images of ${clean(repository)}`,
  },
  "shares-all-layers": {
    title: "kept images have all of its layers",
    text: ({ images }) =>
      `removing it would free nothing: ${images.map(({ name }) => clean(name)).join(", ")} ${images.length === 1 ? "has" : "have"} all of its layers`,
  },
  "too-young": {
    title: "too young",
    text: ({ age, minimumAge, restarted }) =>
      `${restarted === true ? "minimum age restarted" : "first seen"} ${humanDuration(age)} ago; the minimum age is ${humanDuration(minimumAge)}`,
  },
  "not-selected": { title: "not selected" },
  "just-used": { title: "just used", text: () => "used since this pass began" },
  "no-trigger": { title: "unused, no threshold exceeded" },
  blocked: {
    title: "unused, removal is blocked",
    text: ({ block, detail }) =>
      `unused; image removal is blocked: ${imageBlock.title(block)}${detail === undefined ? "" : ` (${clean(detail)})`}`,
  },
  changed: {
    title: "changed since the plan",
    text: ({ what }) => `changed since the plan was made: ${clean(what)}`,
  },
});

export const IMAGE_TRIGGERS: ReasonTable<ImageTrigger> = {
  space: { title: "disk usage", text: () => "disk usage over the high threshold" },
  free: { title: "requested space", text: () => "requested with --free" },
  budget: { title: "store budget", text: () => "images over the store budget" },
  age: { title: "maximum age", text: () => "unused for longer than the maximum age" },
  pressure: {
    title: "disk pressure",
    text: ({ signal }) => `disk pressure: ${signal} is below its eviction threshold`,
  },
  "all-unused": { title: "requested" },
};

export const imageTrigger = reasons(IMAGE_TRIGGERS);

/** For a column: `disk usage`, `disk pressure (imagefs.available)`. */
export const triggerTitle = ({ code, ...data }: ReasonJson): string =>
  withSignal(imageTrigger.title(code), typeof data["signal"] === "string" ? data["signal"] : null);

export const withSignal = (title: string, signal: string | null): string =>
  signal === null ? title : `${title} (${signal})`;

export const imageBlock = reasons<RemovalBlock>({
  "on-hold": {
    title: "on hold",
    text: (hold) => `garbage collection is on hold ${holdWords(hold)}; crigc release ends the hold`,
  },
  "boot-grace": {
    title: "grace period after a boot",
    text: ({ because, remaining }) =>
      `grace period (--boot-grace) for another ${humanDuration(remaining)}, because ${because === "boot" ? "the node booted" : "all containers vanished at once"}`,
  },
  "keep-rules-invalid": {
    title: "invalid keep rules",
    text: ({ problems }) =>
      `invalid keep rules: ${issuesWords(problems.map((it) => `${it.source}: ${it.message}`))}`,
  },
  "usage-unknown": {
    title: "cannot tell which images are in use",
    text: ({ unknown }) =>
      `cannot tell which images are in use: ${issuesWords(unknown.map((it) => `${it.subject}: ${it.message}`))}`,
  },
  "invalid-capacity": {
    title: "invalid filesystem figures",
    text: ({ message }) => `invalid filesystem figures: ${clean(message)}`,
  },
  "pod-starting": {
    title: "a pod is starting",
    text: ({ pods, remaining, until }) =>
      `${plural(pods.length, "container")} starting (${startingWords(pods)}); no image is removed until then, or until ${secondOf(until)} (${humanDuration(remaining)})`,
    data: ({ pods, remaining, until }) => ({
      pods: pods.map(({ uid, container }) => ({ uid, container })),
      remaining,
      until,
    }),
  },
  futile: {
    title: "too little can be freed",
    text: ({ filesystem, boundBytes, neededBytes, inodes }) =>
      inodes === undefined
        ? `too little can be freed: all unused images together give at most ${humanBytes(boundBytes)} of the ${humanBytes(neededBytes)} that ${clean(filesystem)} needs, so crigc removes none for that; something else fills the disk`
        : inodes.bound === null
          ? `${clean(filesystem)} needs ${inodes.needed} inodes, but the runtime does not count those of its images, so crigc removes none for them`
          : `too little can be freed: all unused images together give at most ${inodes.bound} of the ${inodes.needed} inodes that ${clean(filesystem)} needs, so crigc removes none for that; other files take them`,
    data: ({ filesystem, boundBytes, neededBytes, inodes }) => ({
      filesystem,
      boundBytes,
      neededBytes,
      boundInodes: inodes?.bound,
      neededInodes: inodes?.needed,
    }),
  },
  "nothing-freed": {
    title: "removals give no space back",
    text: ({ filesystem, remaining }) =>
      `removing images gives no space back on ${clean(filesystem)}, because something else holds the content; crigc removes none there for another ${humanDuration(remaining)}`,
  },
  "no-room": {
    title: "CRI-O has no room to record a removal",
    text: ({ filesystem }) => noRoomWords(filesystem),
  },
});

export const planNote = reasons<PlanNote>({
  "out-of-reach": {
    title: "a target that images cannot reach",
    text: ({ block }) => `one target is out of reach: ${imageBlock.text(block)}`,
  },
  "space-off": {
    title: "the high threshold of 100 without a maximum age turns off collection by disk usage",
  },
  "maximum-age-needs-agent": {
    title: "the maximum age needs an agent that has run that long: it removes nothing in this pass",
  },
});

const SANDBOX_IMAGE_BY = {
  runtime: "as the runtime says",
  flag: "as configured",
  pattern: "by a built-in pattern",
} as const;

/** `until 2026-01-31T12:00:00Z (upgrade)`. */
export const holdWords = ({
  until,
  reason,
}: {
  readonly until: Instant | null;
  readonly reason: string;
}): string =>
  `until ${until === null ? "it is released" : secondOf(until)}${reason === "" ? "" : ` (${clean(reason)})`}`;

const issuesWords = (issues: readonly string[]): string =>
  andMore(issues.slice(0, 1).map(clean), issues.length, "; and ") || "no details";

/** Without the figure, which changes all the time. */
export const noRoomWords = (filesystem: string): string =>
  `${clean(filesystem)} has less than 32 MiB or 64 inodes free, without which CRI-O loses an image and keeps its layers; delete other files first`;

function startingWords(
  pods: Extract<RemovalBlock, { readonly kind: "pod-starting" }>["pods"],
): string {
  const first = pods.slice(0, 1).map(({ uid, container }) => {
    const pod = `pod ${clean(uid)}`;
    return container === "" ? pod : `${clean(container)} of ${pod}`;
  });
  return andMore(first, pods.length, ", and ");
}

const USERS_NAMED = 3;

const usersWords = (users: readonly ImageUser[]): string =>
  andMore(users.slice(0, USERS_NAMED).map(userWords), users.length, " and ") || "something";

export function userWords(user: ImageUser): string {
  const name = userName(user);
  switch (user.kind) {
    case "container":
      return `${clean(user.state)} container ${name}`;
    case "image-volume":
      return `container ${name} as a volume`;
    case "pod-spec":
      return `the spec of ${name}`;
    default:
      return assertNever(user);
  }
}

/** For a column: only the name. */
export function userName(user: ImageUser): string {
  switch (user.kind) {
    case "container":
    case "image-volume":
      return user.podName === ""
        ? `${clean(user.name)} (${shortId(user.id)})`
        : `${clean(user.podName)}/${clean(user.name)}`;
    case "pod-spec":
      return `pod ${clean(user.uid)}`;
    default:
      return assertNever(user);
  }
}

/** A container, a sandbox or a pod log; codes that several of them have mean the same. */
export type PodReason =
  | ContainerKeepReason
  | ContainerRemoveReason
  | SandboxKeepReason
  | SandboxRemoveReason
  | LogKeepReason
  | LogRemoveReason;

/** Of the history too, so that each code has one title. */
export const POD_REMOVALS: ReasonTable<
  ContainerRemoveReason | SandboxRemoveReason | LogRemoveReason
> = {
  "pod-gone": { title: "its pod was deleted" },
  "pod-terminated": { title: "its pod terminated" },
  "foreign-dead": { title: "dead and not created by Kubernetes" },
  "over-per-container-limit": {
    title: "over the limit per container name",
    text: ({ limit }) => `dead, over the limit of ${limit} per container name`,
  },
  "over-total-limit": {
    title: "over the node's limit of dead containers",
    text: ({ limit }) => `dead, over the node's limit of ${plural(limit, "dead container")}`,
  },
  superseded: { title: "its pod has a newer sandbox" },
  "container-gone": { title: "its container was removed" },
};

export const podReasons = reasons<PodReason>({
  ...POD_REMOVALS,
  "not-selected": { title: "not selected" },
  foreign: { title: "not created by Kubernetes" },
  "source-not-ready": {
    title: "cannot tell whether its pod was deleted",
    text: ({ message }) => `cannot tell whether its pod was deleted: ${clean(message)}`,
  },
  blocked: {
    title: "removal is blocked",
    text: ({ block }) => `removal is blocked: ${imageBlock.title(block)}`,
  },
  changed: {
    title: "changed since the plan",
    text: ({ what }) => `changed since the plan was made: ${clean(what)}`,
  },
  running: { title: "running" },
  "too-young": {
    title: "younger than the minimum age",
    text: ({ age, minimumAge }) =>
      `created ${humanDuration(age)} ago; the minimum age is ${humanDuration(minimumAge)}`,
  },
  "not-dead": {
    title: "created or unknown, and its pod is not deleted",
    text: ({ state }) => `${clean(state)}, and its pod is not deleted`,
  },
  "newest-of-name": {
    title: "newest of its name in a live pod, with none running",
  },
  "within-limits": { title: "dead, within the limits of dead containers" },
  ready: { title: "ready" },
  "has-containers": {
    title: "still has containers",
    text: ({ containers }) => `still has ${plural(containers.length, "container")}`,
  },
  "newest-of-pod": { title: "newest sandbox of a pod not known to be deleted" },
  "pod-known": { title: "its pod is on this node" },
  "pod-not-gone-yet": { title: "its pod is not known to be deleted yet" },
  stray: { title: "not a pod log directory" },
  "in-use": { title: "in use", text: ({ what }) => clean(what) },
});

export function podSourceWords(state: PodSourceState): string {
  switch (state.kind) {
    case "ready":
      return `pod source: ${clean(state.source)}`;
    case "none":
      return `no pod source, so no pod counts as deleted (${clean(state.why)})`;
    case "not-ready":
      return `pod source ${clean(state.source)} is not ready: ${clean(state.why)}`;
    default:
      return assertNever(state);
  }
}

export const logsErrorWords = (message: string): string =>
  `no pod log is deleted, not even that of a removed container: ${clean(message)}`;
