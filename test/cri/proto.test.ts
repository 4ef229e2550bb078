// proto/runtime-v1.proto agrees with the wire contract, by name, number and type, and declares nothing that it does not know.
import { describe, expect, test } from "bun:test";

import { enums, type Field, fieldsOfMessage, messages, methods } from "./declared.ts";
import contract from "./wire-contract.json";

const agreedMessages = new Map<string, object>(Object.entries(contract.messages));
const agreedMethods = new Map<string, readonly string[]>(Object.entries(contract.methods));

describe("the proto", () => {
  test.each([...messages])("declares %s as in the contract", (name, message) => {
    expect<object | undefined>(declared(message)).toEqual(agreedMessages.get(name));
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
    expect<object>(Object.fromEntries(enums)).toEqual(contract.enums);
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
