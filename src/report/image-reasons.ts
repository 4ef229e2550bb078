/** The reasons for keeping images, the triggers and the blocks, each declared once. */

import { assertNever } from "../model/errors.ts";
import type { PlanNote } from "../model/plan.ts";
import type { ImageBlock, ImageKeepReason, ImageTrigger, ImageUser } from "../model/reason.ts";
import type { Instant } from "../model/time.ts";
import { type ReasonJson, reasons, type ReasonTable } from "./document.ts";
import { andMore, clean } from "./terminal.ts";
import { counted, humanBytes, humanDuration, secondOf, shortId } from "./words.ts";

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
  "keep-loaded": {
    title: "loaded from an archive",
    text: () => "loaded from an archive (keepLoaded)",
  },
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
  "no-trigger": {
    title: "unused, no threshold exceeded",
    text: () => "unused; no threshold exceeded",
  },
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

export const imageBlock = reasons<ImageBlock>({
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
      `${counted(pods.length, "container")} starting (${startingWords(pods)}); no image is removed until then, or until ${secondOf(until)} (${humanDuration(remaining)})`,
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
        ? `too little can be freed: all unused images together give at most ${humanBytes(boundBytes)} of the ${humanBytes(neededBytes)} that ${clean(filesystem)} needs, so crigc removes none; something else fills the disk`
        : inodes.bound === null
          ? `${clean(filesystem)} needs ${inodes.needed} inodes, but the runtime does not count those of its images, so crigc removes none for them`
          : `too little can be freed: all unused images together give at most ${inodes.bound} of the ${inodes.needed} inodes that ${clean(filesystem)} needs, so crigc removes none; other files take them`,
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
  clamped: {
    title: "more available than the capacity",
    text: ({ path }) =>
      `${clean(path)} reports more available than its capacity; crigc treats it as empty`,
  },
  "out-of-reach": {
    title: "a disk that images cannot relieve",
    text: ({ block }) => `no image is removed to relieve this disk: ${imageBlock.text(block)}`,
  },
  "space-off": {
    title: "no collection by disk usage",
    text: () =>
      "the high threshold of 100 without a maximum age turns off collection by disk usage",
  },
  "maximum-age-needs-agent": {
    title: "the maximum age needs an agent",
    text: () =>
      "the maximum age needs an agent that has run that long: it removes nothing in this pass",
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
  pods: Extract<ImageBlock, { readonly kind: "pod-starting" }>["pods"],
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
