/** `crigc keep list`, `keep test` and `keep baseline`: the keep rules in force, a pattern tried out, today's images as a list. */

import { ConfigError, configIssue, RuntimeError, usageError } from "../../model/errors.ts";
import type { Image, KeepRule } from "../../model/snapshot.ts";
import { toRfc3339 } from "../../model/time.ts";
import {
  compileKeepRules,
  keepRuleMatches,
  parseKeepFile,
  parseKeepPattern,
} from "../../policy/keep/keep.ts";
import { keepRulesDocument, keepRulesTable } from "../../report/keep.ts";
import { clean } from "../../report/terminal.ts";
import { plural } from "../../report/words.ts";
import {
  command,
  type CommandContext,
  DOCUMENT,
  has,
  LIST,
  operand,
  option,
  print,
} from "../command.ts";
import { exit } from "../exit.ts";
import { IMAGES_ONLY, planNode } from "../node-plan.ts";

export const keepList = command({
  name: "keep list",
  inAgent: true,
  summary: "list the keep rules in force and what each matches on this node",
  doc: "Names the rules that match no image. Without a runtime, checks the files and flags only. Exits 2 if the rules are invalid; crigc then removes no image.",
  formats: LIST,
  run: async (context) => {
    const { keep, images } = await rulesAndImages(context);
    const compiled = compileKeepRules(keep.rules);
    const problems = [...keep.problems, ...compiled.problems];
    const matches = images && keepRuleMatches(compiled, images);
    await print(context, {
      document: keepRulesDocument({ rules: keep.rules, problems, matches }),
      table: keepRulesTable,
      rows: ({ rules }) => rules.map(({ pattern }) => ({ id: pattern, name: pattern })),
    });
    return problems.length === 0 ? exit.done : exit.usage;
  },
});

/** `images`: `null` if no runtime answers. */
async function rulesAndImages(context: CommandContext) {
  try {
    const { keep, images } = (await planNode(context, { parts: IMAGES_ONLY })).snapshot;
    return { keep, images };
  } catch (thrown) {
    if (!(thrown instanceof RuntimeError)) throw thrown;
    context.note(`${thrown.message}; only the rules themselves are checked`);
    return { keep: await context.open.keepRules(context.config), images: null };
  }
}

export const keepTest = command({
  name: "keep test",
  inAgent: true,
  summary: "show which images a keep pattern matches",
  doc: "Exits 8 if none matches.",
  operands: [operand("PATTERN", "a keep pattern, such as registry.example/**")],
  formats: DOCUMENT,
  run: async (context) => {
    const [pattern = ""] = context.operands;
    const rule: KeepRule = { pattern, source: "crigc keep test" };
    const compiled = compileKeepRules([rule]);
    const [problem] = compiled.problems;
    if (problem !== undefined)
      throw usageError("crigc keep test", pattern, `invalid pattern: ${problem.message}`);
    const { snapshot } = await planNode(context, { parts: IMAGES_ONLY });
    const matches = keepRuleMatches(compiled, snapshot.images);
    await print(context, {
      document: keepRulesDocument({ rules: [rule], problems: [], matches }),
      table: keepRulesTable,
    });
    return matches.get(rule)?.length ? exit.done : exit.unknown;
  },
});

export const keepBaseline = command({
  name: "keep baseline",
  summary: "write today's images to baseline.list in the keep directory",
  doc: "Lists each image by ID and tags: if a tag moves, both images are kept. Adds to an existing list.",
  options: [
    option("once", "once per node, by a stamp in the state directory"),
    option("replace", "drop the existing lines of baseline.list"),
  ],
  changes: true,
  run: async (context) => {
    const { dryRun, open, config } = context;
    const file = open.baseline(config);
    const isOnce = has(context, "once");
    const stamp = isOnce ? file.stamp() : null;
    if (stamp !== null) {
      context.say(`Baseline already written at ${clean(stamp)}; nothing to do.`);
      return exit.done;
    }
    const before = has(context, "replace") ? null : validList(file.read(), file.path);
    using node = await open.node(config);
    const images = await node.engine.observe.runtime.listImages(context.signal);
    if (images.length === 0) {
      context.note(`the runtime lists no image; ${file.path} is unchanged${isOnce ? WAITS : ""}`);
      return isOnce ? exit.runtime : exit.done;
    }
    const writtenAt = toRfc3339(open.now());
    const { text, added, unnamed } = baselineList(images, before, writtenAt);
    for (const image of unnamed)
      context.note(
        `warning: image ${clean(image.id)} is not in the baseline: its ID is not a digest and it has no tag`,
      );
    if (!dryRun) {
      if (text !== before) file.write(text);
      // After the list: with a stamp but no list, the node would never get a baseline.
      if (isOnce) file.setStamp(writtenAt);
    }
    const [start, done] = dryRun ? ["Dry run: ", "would be added"] : ["", "added"];
    context.say(`${start}${file.path}: ${plural(added, "pattern")} ${done}.`);
    return exit.done;
  },
});

/**
 * A stamp now would never protect images that are loaded later; continuing without one would start an
 * agent, and make a baseline of whatever is pulled by its next start. So the service waits, as for the runtime.
 */
const WAITS =
  ", and the baseline waits for the first image; remove keep baseline --once from the service if the node has none";

/** A damaged list may have had more patterns than are readable, so it is never added to. Throws `ConfigError`. */
function validList(text: string | null, path: string): string | null {
  const { problems } = parseKeepFile(text ?? "\n", path);
  if (problems.length === 0) return text;
  throw new ConfigError(
    problems.map(({ source, message }) =>
      configIssue(source, "", `${message}; repair the file, or replace it with --replace`),
    ),
  );
}

/** Today's images, after the lines of `before`, which stay as they are. `text` is `before` if it has them all. */
export function baselineList(
  images: readonly Pick<Image, "id" | "repoTags">[],
  before: string | null,
  writtenAt: string,
) {
  // A name with a wildcard would keep other images too.
  const isPattern = (name: string): boolean =>
    !name.includes("*") && parseKeepPattern(name).kind === "valid";
  const groups = images.map(({ id, repoTags }) => [id, ...repoTags].filter(isPattern));
  const known = new Set(parseKeepFile(before ?? "\n", "").rules.map(({ pattern }) => pattern));
  const added = [...new Set(groups.flat())].filter((pattern) => !known.has(pattern));
  const heading = `# Written by crigc keep baseline at ${writtenAt}. crigc never removes these images. You can edit this file.`;
  return {
    text:
      before !== null && added.length === 0
        ? before
        : `${before ?? ""}${[heading, ...added].join("\n")}\n`,
    added: added.length,
    /** Images that no pattern can match: their IDs are not digests, and they have no tags. */
    unnamed: images.filter((_, at) => groups[at]?.length === 0),
  };
}
