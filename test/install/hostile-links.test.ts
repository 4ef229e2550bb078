// A tree full of links that lead out of it: nothing outside is read for a decision, written or removed.

import { describe, expect, test } from "bun:test";
import { lstatSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";

import fc from "fast-check";

import { install, uninstall } from "../../src/install/install.ts";
import { HostError } from "../../src/model/errors.ts";
import { put, scratch } from "../support/scratch.ts";
import { treeOf } from "../support/tree.ts";

/** Shallow before deep, so that a place below a link is known when its turn comes. */
const places =
  `etc usr var etc/crigc etc/systemd usr/local var/lib etc/crigc/crigc.yaml etc/crigc/keep.d
  etc/systemd/system usr/local/bin var/lib/crigc etc/systemd/system/crigc.service
  etc/systemd/system/multi-user.target.wants etc/fish/completions usr/local/bin/crigc
  usr/local/share/man/man8/crigc.8 var/lib/crigc/ledger.json`.split(/\s+/);

/** `OUT` stands for the directory outside. What is absolute exists on no machine, or is that directory. */
const targets =
  `OUT OUT/etc ../../../../../../../../../../../../../..OUT .. ../../outside ../../../outside .
  etc usr /crigc-hostile/loop /data`.split(/\s+/);

type Machine = ReturnType<typeof machine>;

/** The tree lies deep in its scratch directory, so that a few steps up are still in it. */
function machine() {
  const top = scratch();
  const root = join(top, "a/b/c/root");
  for (const place of places) mkdirSync(dirname(join(root, place)), { recursive: true });
  mkdirSync(join(root, "data"));
  for (const outside of ["outside", "a/b/outside", "a/b/c/outside"]) {
    for (const name of ["crigc", "crigc.yaml", "install.json", "crigc.service", "lib/crigc/x"])
      put(join(top, outside), name, "theirs");
  }
  const from = put(top, "executable", "\x7fELF x", 0o755);
  return { top, root, from, outside: join(top, "outside") };
}

/** Links are planted in real directories only: through a link they would land outside of the test. */
function plant(
  { root, outside }: Machine,
  links: readonly { readonly place: string; readonly target: string }[],
): void {
  for (const place of places) {
    const link = links.find((it) => it.place === place);
    if (link === undefined || !hasRealParents(root, place)) continue;
    rmSync(join(root, place), { recursive: true, force: true });
    symlinkSync(link.target.replace("OUT", outside), join(root, place));
  }
}

function hasRealParents(root: string, place: string): boolean {
  const parents = place.split("/").map((_, index, all) => all.slice(0, index).join("/"));
  return parents.every((parent) =>
    lstatSync(join(root, parent), { throwIfNoEntry: false })?.isDirectory(),
  );
}

/** Everything in the scratch directory but the tree itself. */
function surroundings({ top }: Machine): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(treeOf(top)).filter(([path]) => !path.startsWith("a/b/c/root")),
  );
}

const link = fc.record({ place: fc.constantFrom(...places), target: fc.constantFrom(...targets) });

describe("links that lead out of the tree", () => {
  test("are rejected on install and purge, and nothing outside changes", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(link, { maxLength: 5 }),
        fc.boolean(),
        async (links, installedBefore) => {
          const it = machine();
          const { root, from } = it;
          const shellTexts = { man: "page", bash: "bash", zsh: "zsh", fish: "fish" };
          const options = { root, from, shellTexts, start: false, dryRun: false };
          if (installedBefore) await install(options, () => undefined);
          plant(it, links);
          const before = surroundings(it);
          for (const action of [
            () => install(options, () => undefined),
            async () =>
              uninstall({ root, shellTexts, purge: true, dryRun: false }, () => undefined),
          ]) {
            try {
              await action();
            } catch (error) {
              if (!(error instanceof HostError)) throw error;
            }
          }
          expect(surroundings(it)).toEqual(before);
          rmSync(it.top, { recursive: true });
        },
      ),
      { numRuns: 40 },
    );
  }, 30_000);
});
