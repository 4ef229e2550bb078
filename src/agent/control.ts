/** What the agent answers over HTTP, by path, and how a command queries it over the control socket. */

import { printedJson } from "../report/document.ts";
import { statusDocument, type StatusReport, statusTable } from "../report/status.ts";
import { clean, type Screen } from "../report/terminal.ts";

export interface HealthCheck {
  readonly name: string;
  /** `null`: healthy. */
  readonly problem: string | null;
}

/** The status server. */
export interface HttpProviders {
  /** Current metrics as Prometheus text. */
  metrics(): string;
  health(): readonly HealthCheck[];
  /** Whether the runtime answers and the ledger is loaded. */
  readiness(): readonly HealthCheck[];
  status(): StatusReport;
}

/** `metrics`: others can reach this address, so it reveals no image and no configuration. */
export type Surface = "control" | "metrics";

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface HttpRequest {
  readonly method: string;
  readonly url: URL;
}

export function answered(
  { method, url }: HttpRequest,
  surface: Surface,
  providers: HttpProviders,
): HttpResponse {
  const routes = ROUTES[surface];
  const route = Object.hasOwn(routes, url.pathname) ? routes[url.pathname] : undefined;
  if (route === undefined)
    return plain(404, `unknown path; use ${Object.keys(routes).join(", ")}\n`);
  if (method !== "GET" && method !== "HEAD")
    return plain(405, "unsupported method; use GET or HEAD\n", { allow: "GET, HEAD" });
  return route(providers, url);
}

type Routes = Readonly<Record<string, (from: HttpProviders, url: URL) => HttpResponse>>;

const OPEN_ROUTES: Routes = {
  "/metrics": (from) => typed("text/plain; version=0.0.4; charset=utf-8", from.metrics()),
  "/healthz": (from) => health(from.health()),
  "/readyz": (from) => health(from.readiness()),
};

// The agent renders the tables, so that a client of another version need not understand its data,
// and figures stay exact.
const ROUTES: Readonly<Record<Surface, Routes>> = {
  metrics: OPEN_ROUTES,
  control: {
    ...OPEN_ROUTES,
    "/status": (from) => json(printedJson(statusDocument(from.status()))),
    "/status.txt": (from, url) =>
      plain(200, statusTable(statusDocument(from.status()), screenFrom(url))),
  },
};

const WIDTH_MAXIMUM = 1000;

/** The client's terminal: `?width=100&colour=1&unicode=1`. */
export const screenQuery = ({ width, colour, unicode }: Screen): string =>
  `width=${width ?? 0}&colour=${Number(colour)}&unicode=${Number(unicode)}`;

function screenFrom(url: URL): Screen {
  const width = Number(url.searchParams.get("width") ?? "0");
  return {
    width: Number.isInteger(width) && width > 0 ? Math.min(width, WIDTH_MAXIMUM) : null,
    colour: url.searchParams.get("colour") === "1",
    unicode: url.searchParams.get("unicode") === "1",
  };
}

function health(checks: readonly HealthCheck[]): HttpResponse {
  const ill = checks.some((check) => check.problem !== null);
  const lines = checks.map((check) =>
    check.problem === null
      ? `ok      ${check.name}`
      : `failed  ${check.name}: ${clean(check.problem)}`,
  );
  return plain(ill ? 503 : 200, `${[...lines, ill ? "failed" : "passed"].join("\n")}\n`);
}

const json = (body: string): HttpResponse => typed("application/json; charset=utf-8", body);

const typed = (type: string, body: string): HttpResponse => ({
  status: 200,
  headers: { "content-type": type, ...SAFE },
  body,
});

export const plain = (
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): HttpResponse => ({
  status,
  headers: { "content-type": "text/plain; charset=utf-8", ...SAFE, ...headers },
  body,
});

const SAFE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
