// proto/runtime-v1.proto agrees with the wire contract, by name, number and type, and declares nothing that it does not know.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { enums, type Field, fieldsOfMessage, messages, methods } from "./declared.ts";
import contract from "./wire-contract.json";

const { beyondThePage } = contract;
const agreedMessages = new Map<string, Readonly<Record<string, unknown>>>(
  Object.entries({ ...contract.messages, ...beyondThePage.messages }),
);
const agreedMethods = new Map<string, readonly string[]>(
  Object.entries({ ...contract.methods, ...beyondThePage.methods }),
);

describe("the proto", () => {
  test.each([...messages])("declares %s as in the contract", (name, message) => {
    const agreed = agreedMessages.get(name);
    expect(agreed).toBeDefined();
    const fields = Object.keys(agreed ?? {}).filter((field) => field in declared(message));
    expect(Object.fromEntries(fields.map((field) => [field, agreed?.[field]]))).toEqual(
      declared(message),
    );
  });

  test.each([...methods.values()].map((it) => [it.path, it] as const))(
    "declares the request of %s as in the contract",
    (path, method) => {
      const key = `${method.service}.${method.name}`;
      expect(path).toBe(`/runtime.v1.${key.replace(".", "/")}`);
      const answer = method.streamed ? `stream ${method.response}` : method.response;
      expect<readonly string[] | undefined>([method.request, answer]).toEqual(
        agreedMethods.get(key),
      );
    },
  );

  test("has every enum completely", () => {
    expect(Object.fromEntries(enums)).toEqual(
      Object.fromEntries(Object.entries(contract.enums).filter(([name]) => enums.has(name))),
    );
  });

  test("declares no message that no method needs", () => {
    const needed = new Set<string>();
    const visit = (name: string): void => {
      if (needed.has(name)) return;
      needed.add(name);
      for (const { type } of fieldsOfMessage(name)) if (type.kind === "message") visit(type.name);
    };
    for (const { request, response } of methods.values()) [request, response].forEach(visit);
    expect(messages.size).toBeGreaterThan(50);
    expect([...messages.keys()].filter((name) => !needed.has(name))).toEqual([]);
  });
});

/** Number and type of each field, as the contract writes them. */
function declared(message: readonly Field[]): Readonly<Record<string, readonly [number, string]>> {
  return Object.fromEntries(message.map((field) => [field.name, [field.number, typeName(field)]]));
}

function typeName({ repeated, type }: Field): string {
  if (type.kind === "strings") return "map<string, string>";
  const prefix = repeated ? "repeated " : "";
  return `${prefix}${type.kind === "scalar" ? type.scalar : type.name}`;
}

// The reference page lies beside the project, where it is there at all; the numbers that the tests above use are a copy.
const page = join(import.meta.dir, "../../../shared/reference/cri-wire.md");
const isThere = existsSync(page);

test.skipIf(!isThere)(
  `the numbers of the tests are those of the reference page${isThere ? "" : " (skipped: there is no ../shared)"}`,
  () => {
    const lines = readFileSync(page, "utf8").replaceAll(
      "map<string,string>",
      "map<string, string>",
    );
    for (const [name, fields] of Object.entries(contract.messages)) {
      const written = Object.entries(fields as Readonly<Record<string, [number, string]>>).map(
        ([field, [number, type]]) => `${number} \`${field}\` ${type}`,
      );
      const text = written.length === 0 ? "(no fields)" : written.join("; ");
      expect(lines).toContain(`- **${name}**: ${text}\n`);
    }
    for (const [name, values] of Object.entries(contract.enums)) {
      const text = Object.entries(values).map(([value, number]) => `${value}=${number}`);
      expect(lines).toContain(`- **${name}** (enum): ${text.join(", ")}\n`);
    }
    for (const [key, [request, answer]] of Object.entries(contract.methods))
      expect(lines).toContain(
        `| ${key.replace(".", " | ")} | ${request} | ${answer?.replace("stream ", "stream of ")} |`,
      );
  },
);
