/** Reads `proto/runtime-v1.proto`. A macro: it runs while crigc is built, and the binary contains only its result. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import protobuf from "protobufjs";

const PACKAGE = "runtime.v1";

/**
 * `messages`: of requests, in the JSON of protobufjs, which `@grpc/proto-loader` reads. `methods`: each with its HTTP/2 path
 * (`/runtime.v1.ImageService/ListImages`), the name of its request, and whether its response is any number of messages.
 */
export function readSchema() {
  const file = join(import.meta.dir, "../../proto/runtime-v1.proto");
  const { root } = protobuf.parse(readFileSync(file, "utf8"), { keepCase: true });
  root.resolveAll();
  const services = ["RuntimeService", "ImageService"].map((name) =>
    root.lookupService(`${PACKAGE}.${name}`),
  );
  const messages: Record<string, protobuf.IType> = {};
  const add = (type: protobuf.Type): void => {
    if (messages[type.name] !== undefined) return;
    messages[type.name] = {
      fields: Object.fromEntries(type.fieldsArray.map((field) => [field.name, fieldOf(field)])),
    };
    for (const { resolvedType } of type.fieldsArray)
      if (resolvedType instanceof protobuf.Type) add(resolvedType);
  };
  const methods = services.flatMap((service) =>
    service.methodsArray.map(({ name, resolvedRequestType, responseStream = false }) => {
      if (resolvedRequestType !== null) add(resolvedRequestType);
      const path = `/${PACKAGE}.${service.name}/${name}`;
      const request = resolvedRequestType?.name ?? "";
      return [name, { path, request, isStream: responseStream }] as const;
    }),
  );
  return { messages, methods: Object.fromEntries(methods) };
}

/** Enums are numbers. */
const fieldOf = (field: protobuf.Field): protobuf.IField => ({
  ...field.toJSON(),
  type: field.resolvedType instanceof protobuf.Enum ? "int32" : field.type,
});
