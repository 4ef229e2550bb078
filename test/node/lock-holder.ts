// A process that takes a lock, says what came of it, and holds it until it is ended. Arguments: the request as JSON.

import { acquireLock, type LockPlaces, type LockRequest } from "../../src/node/lock.ts";

const { request, places } = JSON.parse(process.argv[2] ?? "") as {
  readonly request: Omit<LockRequest, "signal">;
  readonly places: LockPlaces;
};
const attempt = await acquireLock({ ...request, signal: new AbortController().signal }, places);
console.log(attempt.kind);
setInterval(() => undefined, 60_000);
