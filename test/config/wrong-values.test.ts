// A wrong type in any field of a file is refused with what was expected and where it stands.

import { describe, expect, test } from "bun:test";

import { fieldNames, fieldOf } from "../../src/config/fields.ts";
import type { FieldType } from "../../src/config/types.ts";
import { FILE, issuesOf, ours } from "./loading.ts";

const inFiles = fieldNames.filter((name) => fieldOf(name).outsideFiles !== true);

/** As JSON, between bars. */
const NEVER = '[[1]]|{"a":{"b":1}}|1.5';
const WRONG: Readonly<Record<FieldType["kind"], string>> = {
  integer: '"85"|true|1e12|"many"',
  duration: '5|true|"30mins"|"-1s"|""|["2m"]',
  size: '0|-5|true|"20 GB"|"lots"',
  boolean: '1|"true"|"yes"',
  choice: 'true|"other"|""',
  // The last one has 109 bytes, more than the kernel takes.
  endpoint: `true|"tcp://127.0.0.1:1"|"run/a.sock"|"unix://run/a.sock"|"/${"ü".repeat(54)}"`,
  url: 'true|"127.0.0.1:10250"|"ftp://a"|"https://a/b"',
  address: '9419|true|"127.0.0.1"|"127.0.0.1:0"|"127.0.0.1:99999"|"http://a:1"',
  path: 'true|"a/b"|"/a/../b"|"/a\\u0000b"|"/a\\nb"',
  list: 'true|[1]|["a", null]',
  statements:
    'true|"nodefs.available<10%"|{"nodefs.available": 10}|{"nodefs.available": ""}|{"disk.available": "10%"}|["nodefs.available"]|[]',
};

describe.each(inFiles.map((name) => [name] as const))("%s", (name) => {
  test.each(`${NEVER}|${WRONG[fieldOf(name).type.kind]}`.split("|"))("%s is refused", (json) => {
    const [outer, inner] = name.split(".");
    const body = inner === undefined ? `${outer}: ${json}` : `${outer}:\n  ${inner}: ${json}`;
    const issues = issuesOf({ files: { [FILE]: ours(body) } });
    expect(issues).toHaveLength(1);
    const [issue] = issues;
    expect(issue?.source).toBe(`${FILE}:${inner === undefined ? 3 : 4}`);
    expect(issue?.message).toContain(`${name}: `);
    expect(issue?.message).toMatch(/ is not (a|an|one|true)|: use |expected/);
    expect(issue?.message).not.toContain("\u0000");
  });
});
