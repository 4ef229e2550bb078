// Whether an executable in the configuration can be run, and an address listened on.

import { accessSync, constants, statSync } from "node:fs";
import { createServer } from "node:net";

import { hostAndPort } from "../../model/values.ts";
import { codeOf, reasonOf } from "../files/errno.ts";

/** `null`: it can be run. */
export function executableFault(path: string): string | null {
  try {
    if (!statSync(path).isFile()) return "it is not a regular file";
    accessSync(path, constants.X_OK);
    return null;
  } catch (error) {
    return codeOf(error) === "EACCES" ? "it is not executable" : reasonOf(error);
  }
}

/** Listens on `HOST:PORT` for a moment; `null`: it is free. */
export function addressFault(address: string): Promise<string | null> {
  const server = createServer();
  const { host, port } = hostAndPort(address);
  return new Promise((resolve) => {
    server.once("error", (error) =>
      resolve(codeOf(error) === "EADDRINUSE" ? "it is in use" : reasonOf(error)),
    );
    server.listen({ port, ...(host === "*" ? {} : { host }) }, () =>
      server.close(() => resolve(null)),
    );
  });
}
