/** Fills `{{name}}` in a template. A line of nothing but a name takes any number of lines, also none. */
import { assert } from "../model/assert.ts";

export function filled(template: string, values: Readonly<Record<string, string>>): string {
  const valueOf = (name: string): string => {
    const value = values[name];
    assert(value !== undefined, `the template has {{${name}}}, which has no value`);
    return value;
  };
  return template.replaceAll(
    /^\{\{(\w+)\}\}\n|\{\{(\w+)\}\}/gm,
    (_, lines: string | undefined, word: string) => valueOf(lines ?? word),
  );
}
