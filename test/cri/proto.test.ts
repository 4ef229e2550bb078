// proto/runtime-v1.proto agrees with the wire contract, by name, number and type, and declares nothing that it does not know.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { criSchema } from "../../src/cri/proto.ts";
import type { Field, MessageType } from "../../src/cri/schema.ts";
import contract from "./wire-contract.json";

const schema = criSchema();
const messages = new Map<string, Readonly<Record<string, unknown>>>(
  Object.entries(contract.messages),
);
const methods = new Map<string, readonly string[]>(Object.entries(contract.methods));

describe("the embedded proto", () => {
  test.each([...schema.messages.values()].map((it) => [it.name, it] as const))(
    "declares %s as the contract has it",
    (name, message) => {
      const agreed = messages.get(name);
      expect(agreed).toBeDefined();
      const fields = Object.keys(agreed ?? {}).filter((field) => field in declared(message));
      expect(Object.fromEntries(fields.map((field) => [field, agreed?.[field]]))).toEqual(
        declared(message),
      );
    },
  );

  test.each([...schema.methods.values()].map((it) => [it.path, it] as const))(
    "asks for %s as the contract has it",
    (path, method) => {
      const key = `${method.service.replace("runtime.v1.", "")}.${method.name}`;
      expect(path).toBe(`/runtime.v1.${key.replace(".", "/")}`);
      const answer = method.streamed ? `stream ${method.response.name}` : method.response.name;
      expect<readonly string[] | undefined>([method.request.name, answer]).toEqual(
        methods.get(key),
      );
    },
  );

  test("has every enum whole", () => {
    const enums = [...schema.enums].map(([name, values]) => [name, Object.fromEntries(values)]);
    expect(Object.fromEntries(enums)).toEqual(
      Object.fromEntries(Object.entries(contract.enums).filter(([name]) => schema.enums.has(name))),
    );
  });

  test("declares no message that no method needs", () => {
    const needed = new Set<string>();
    const visit = (message: MessageType): void => {
      if (needed.has(message.name)) return;
      needed.add(message.name);
      for (const { type } of message.fields) if (type.kind === "message") visit(type.message);
    };
    for (const { request, response } of schema.methods.values()) [request, response].forEach(visit);
    expect([...schema.messages.keys()].filter((name) => !needed.has(name))).toEqual([]);
  });
});

/** Number and type of each field, as the contract writes them. */
function declared(message: MessageType): Readonly<Record<string, readonly [number, string]>> {
  return Object.fromEntries(
    message.fields.map((field) => [field.name, [field.number, typeName(field)]]),
  );
}

function typeName({ repeated, type }: Field): string {
  if (type.kind === "strings") return "map<string, string>";
  const prefix = repeated ? "repeated " : "";
  if (type.kind === "scalar") return `${prefix}${type.scalar}`;
  return `${prefix}${type.kind === "message" ? type.message.name : type.name}`;
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
    for (const [name, fields] of messages) {
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
    for (const [key, [request, answer]] of methods)
      expect(lines).toContain(
        `| ${key.replace(".", " | ")} | ${request} | ${answer?.replace("stream ", "stream of ")} |`,
      );
  },
);
