/** The options of `crigc history`, parsed into a query. */

import { quoted } from "../../config/value/described.ts";
import { parseDuration } from "../../config/value/duration.ts";
import { usageError } from "../../model/errors.ts";
import type { Removal } from "../../model/history.ts";
import { fromRfc3339, type Instant, instant } from "../../model/time.ts";
import { isRemovalKind, removalCodes, removalKinds } from "../../report/container-reasons.ts";
import type { RemovalQuery } from "../../store/history.ts";
import { type CommandOption, has, type Invocation, option, textOf } from "../command.ts";

/** `limit`: passes, or removals if filtered. */
export interface HistoryRequest extends RemovalQuery {
  /** Only images that came back. */
  readonly regrets?: boolean;
  /** Leaves out passes with nothing to do. */
  readonly hidesIdle?: boolean;
}

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 100_000;

// The type keeps this complete: a new result in the model does not compile without an entry here.
const RESULTS: Readonly<Record<Removal["result"], true>> = {
  removed: true,
  "already-gone": true,
  ghost: true,
  skipped: true,
  failed: true,
};

export const HISTORY_OPTIONS: readonly CommandOption[] = [
  option("since TIME", "show records since a time, a date, or this long ago (36h)"),
  option("until TIME", "show records before a time, a date, or this long ago"),
  option("kind KIND", "filter by image, container, sandbox, pod-logs or log-link; repeatable", {
    choices: removalKinds,
  }),
  option("reason CODE", "filter by reason or trigger, such as space; repeatable", {
    choices: [...removalCodes, "periodic"],
  }),
  option("result RESULT", "filter by removed, already-gone, ghost, skipped or failed; repeatable", {
    choices: Object.keys(RESULTS),
  }),
  option("image TEXT", "filter by image ID, tag or digest that contains TEXT"),
  option("pass ID", "show only this pass"),
  option("filter KEY=VALUE", "kind, reason, result, image or pass, as with the option; repeatable"),
  option("regrets", "show only images that came back after their removal"),
  option("limit N", `newest N passes (removals, if filtered) [${LIMIT_DEFAULT}]`),
];

/** `--filter kind=image` means `--kind image`. */
const FILTERS = ["kind", "reason", "result", "image", "pass"] as const;

function withFilters(invocation: Invocation): Invocation {
  const options = new Map(invocation.options);
  for (const text of invocation.options.get("filter") ?? []) {
    const [, key = "", value = ""] = /^([^=]*)=?(.*)$/s.exec(text) ?? [];
    const filtered = FILTERS.some((it) => it === key)
      ? HISTORY_OPTIONS.find(({ name }) => name === key)
      : undefined;
    if (filtered === undefined)
      throw usageError(
        "--filter",
        text,
        `unknown filter ${quoted(key)}: use ${FILTERS.join(", ")}`,
      );
    if (value === "" || filtered.choices?.includes(value) === false)
      throw usageError(
        "--filter",
        text,
        `invalid ${key} ${quoted(value)}: use ${filtered.choices?.join(", ") ?? filtered.placeholder ?? ""}`,
      );
    options.set(key, [...(options.get(key) ?? []), value]);
  }
  return { ...invocation, options };
}

/** Throws `ConfigError`. */
export function historyRequest(given: Invocation, now: Instant): HistoryRequest {
  const invocation = withFilters(given);
  const image = textOf(invocation, "image");
  const kinds = invocation.options.get("kind")?.filter(isRemovalKind);
  if (image !== null && kinds !== undefined && !kinds.includes("image"))
    throw usageError("--image", image, "--image selects images, and --kind excludes them");
  const since = moment(invocation, "since", now);
  const until = moment(invocation, "until", now);
  if (since !== undefined && until !== undefined && since >= until)
    throw usageError("--until", textOf(invocation, "until") ?? "", "it is not after --since");
  return {
    since,
    until,
    kinds: image === null ? kinds : ["image"],
    reasons: invocation.options.get("reason"),
    results: invocation.options.get("result")?.filter(isResult),
    text: image ?? undefined,
    passId: textOf(invocation, "pass") ?? undefined,
    regrets: has(invocation, "regrets"),
    hidesIdle: invocation.output === "table" && !["all", "q"].some((it) => has(invocation, it)),
    limit: limitOf(textOf(invocation, "limit")),
  };
}

/** The parser has rejected other values. */
const isResult = (text: string): text is Removal["result"] => Object.hasOwn(RESULTS, text);

function moment(invocation: Invocation, name: string, now: Instant): Instant | undefined {
  const text = textOf(invocation, name);
  return text === null ? undefined : momentOf(text, `--${name}`, now);
}

function limitOf(text: string | null): number {
  if (text === null) return LIMIT_DEFAULT;
  const limit = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw usageError("--limit", text, `invalid number ${quoted(text)}: use 1 to ${LIMIT_MAX}`);
}

/** `2026-01-15T12:00:00Z`, `2026-01-15` (midnight UTC), or `2h` (before `now`). Throws `ConfigError`. */
export function momentOf(text: string, source: string, now: Instant): Instant {
  const time = fromRfc3339(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (time !== null) return time;
  const ago = parseDuration(text);
  if (ago !== null && ago >= 0n) return instant(now - ago);
  const message = `invalid time ${quoted(text)}: use 2026-01-15T12:00:00Z, 2026-01-15 or 36h (ago)`;
  throw usageError(source, text, message);
}
