// The schema has the names, numbers and types of CRI, as the fake runtime's proto declares them apart from it.
import { describe, expect, test } from "bun:test";

import protobuf from "protobufjs";

import { encodeRequest, pathOf } from "../../src/cri/codec.ts";
import {
  ENTRIES_FIELD,
  type Fields,
  isStream,
  type Method,
  methods,
} from "../../src/cri/schema.ts";
import { methods as declared, PROTO } from "./declared.ts";

const root = protobuf.loadSync(PROTO);
root.resolveAll();
const names = Object.keys(methods) as Method[];

describe("the schema", () => {
  test.each(names)("of %s is that of CRI", (name) => {
    const service = pathOf(name).split("/")[1] ?? "";
    const method = root.lookupService(service).methods[name];
    expect(pathOf(name)).toBe(declared.get(name)?.path ?? "");
    expect(isStream(name)).toBe(declared.get(name)?.streamed ?? false);
    for (const [fields, type] of [
      [methods[name].request, method?.resolvedRequestType],
      [methods[name].answer, method?.resolvedResponseType],
    ] as const)
      expect(numbered(fields)).toEqual(numberedIn(type, fields));
  });

  test("has the entries of every list in its only field", () => {
    const lists = names.filter((it) => /^(?:List(?!ContainerStats)|Stream)/.test(it));
    expect(lists).toHaveLength(6);
    for (const name of lists)
      expect(Object.values(methods[name].answer).map(({ id }) => id)).toEqual([ENTRIES_FIELD]);
  });

  test("seconds and lengths of more than seven bits are sent completely", () => {
    const sent = { container_id: "c".repeat(300), cmd: ["a", ""], timeout: 2 ** 31 };
    const read = declared.get("ExecSync")?.asked(encodeRequest("ExecSync", sent));
    expect(read).toEqual({ ...sent, timeout: String(2 ** 31) });
  });
});

type Numbered = { readonly [name: string]: readonly unknown[] };

const numbered = (fields: Fields): Numbered =>
  Object.fromEntries(
    Object.entries(fields).map(([name, { id, kind, type }]) => [
      name,
      [id, kind, typeof type === "string" ? type : numbered(type)],
    ]),
  );

/** The fields of the same names in the proto. */
const numberedIn = (declaring: protobuf.Type | null | undefined, fields: Fields): Numbered =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { type }]): [string, readonly unknown[]][] => {
      const field = declaring?.fields[camelCase(name)]?.resolve();
      if (field === undefined) return [];
      const { id, repeated, resolvedType } = field;
      const kind = field instanceof protobuf.MapField ? "map" : repeated ? "many" : "one";
      if (typeof type === "string")
        return [[name, [id, kind, resolvedType instanceof protobuf.Enum ? "int32" : field.type]]];
      const inner = resolvedType instanceof protobuf.Type ? resolvedType : null;
      return [[name, [id, kind, numberedIn(inner, type)]]];
    }),
  );

const camelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
