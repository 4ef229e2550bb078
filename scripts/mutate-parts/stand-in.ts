// Stands in for bun:test in the mutated tree: it collects tests, so that one process can run them against many mutants.

import { expect, spyOn } from "bun:test";

import fc from "fast-check";

export { expect, spyOn };

export type Collected = { readonly name: string; readonly run: () => unknown };

type Body = (...values: never[]) => unknown;
type Scope = { readonly before: Body[]; readonly after: Body[] };

export const collected: Collected[] = [];
const scopes: Scope[] = [{ before: [], after: [] }];

function add(name: string, body: () => unknown): void {
  const around = [...scopes];
  const run = async (): Promise<void> => {
    for (const scope of around) for (const hook of scope.before) await hook();
    try {
      await body();
    } finally {
      for (const scope of around) for (const hook of scope.after) await hook();
    }
  };
  const plain = scopes.every(({ before, after }) => before.length + after.length === 0);
  collected.push({ name, run: plain ? body : run });
}

function group(_name: string, body: () => unknown): void {
  scopes.push({ before: [], after: [] });
  body();
  scopes.pop();
}

// A mutant that random inputs kill today is killed tomorrow.
fc.configureGlobal({ seed: 1 });

const nothing = (): void => undefined;

/** `register` for each row of a table, and the forms that skip. */
function withForms(register: (name: string, body: () => unknown) => void) {
  const forms = {
    each: (table: readonly unknown[]) => (name: string, body: Body) => {
      for (const [index, row] of table.entries()) {
        const values = Array.isArray(row) ? row : [row];
        register(`${name} #${index}`, () => (body as (...all: unknown[]) => unknown)(...values));
      }
    },
    skip: nothing,
    todo: nothing,
    skipIf: (skipped: boolean) => (skipped ? nothing : call),
    if: (wanted: boolean) => (wanted ? call : nothing),
  };
  const call = Object.assign(
    (name: string, body: () => unknown): void => register(name, body),
    forms,
  );
  return call;
}

export const test = withForms(add);
export const describe = withForms(group);
export const beforeEach = (hook: Body): number => scopes.at(-1)!.before.push(hook);
export const afterEach = (hook: Body): number => scopes.at(-1)!.after.push(hook);

/** What the hooks of bun:test do around a file is done once, for all mutants. */
export const beforeAll = async (hook: () => unknown): Promise<void> => {
  await hook();
};
export const afterAll = nothing;
