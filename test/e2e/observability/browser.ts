// A headless Chromium, driven over its own debugging protocol: pages of a given width and colour scheme.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { until } from "../../support/containerd/until.ts";

export interface Look {
  readonly width: number;
  readonly scheme: "light" | "dark";
}

export interface Browser {
  /** Opens a file as a reader would; what it asks the network for is in `requests`. */
  open(file: string, look: Look): Promise<Page>;
  close(): Promise<void>;
}

export interface Page {
  /** The value of an expression in the page. */
  evaluate(expression: string): Promise<unknown>;
  /** The whole page as PNG, or a stretch of it. */
  screenshot(stretch?: { readonly top: number; readonly height: number }): Promise<Uint8Array>;
  /** The page as it is printed on A4. */
  pdf(): Promise<Uint8Array>;
  readonly requests: readonly string[];
  /** Messages of the console, refusals of the content policy among them. */
  readonly complaints: readonly string[];
}

const ANSWER_MS = 30_000;

export async function openBrowser(): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), "crigc-chromium-"));
  const program = Bun.spawn(
    [
      "chromium",
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--hide-scrollbars",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-dev-shm-usage",
      "--remote-debugging-address=127.0.0.1",
      "--remote-debugging-port=0",
      `--user-data-dir=${profile}`,
      "about:blank",
    ],
    { stdout: "ignore", stderr: "ignore" },
  );
  const close = async (): Promise<void> => {
    program.kill("SIGKILL");
    await program.exited;
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  try {
    const port = await portOf(profile);
    return { close, open: (file, look) => openPage(port, file, look) };
  } catch (error) {
    await close();
    throw error;
  }
}

const portOf = (profile: string): Promise<number> =>
  until("Chromium has opened its debugging port", 30_000, () => {
    const file = join(profile, "DevToolsActivePort");
    const port = existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[0]) : 0;
    return port > 0 && port;
  });

// oxlint-disable-next-line typescript/no-explicit-any -- a message of the debugging protocol
type Message = any;

async function openPage(port: number, file: string, look: Look): Promise<Page> {
  const created = await fetch(`http://127.0.0.1:${port}/json/new?about:blank`, { method: "PUT" });
  const { webSocketDebuggerUrl } = (await created.json()) as Message;
  const requests: string[] = [];
  const complaints: string[] = [];
  const loaded = Promise.withResolvers<void>();
  const call = await connected(webSocketDebuggerUrl, ({ method, params }) => {
    if (method === "Network.requestWillBeSent") requests.push(params.request.url);
    if (method === "Log.entryAdded") complaints.push(params.entry.text);
    if (method === "Page.loadEventFired") loaded.resolve();
  });
  for (const domain of ["Network", "Log", "Page"]) await call(`${domain}.enable`);
  await call("Emulation.setDeviceMetricsOverride", {
    width: look.width,
    height: 800,
    deviceScaleFactor: 1,
    mobile: look.width < 600,
  });
  await call("Emulation.setEmulatedMedia", {
    features: [{ name: "prefers-color-scheme", value: look.scheme }],
  });
  await call("Emulation.setFocusEmulationEnabled", { enabled: true });
  await call("Page.navigate", { url: `file://${file}` });
  await loaded.promise;
  const evaluate = async (expression: string): Promise<unknown> => {
    return (await call("Runtime.evaluate", { expression, returnByValue: true })).result.value;
  };
  return {
    requests,
    complaints,
    evaluate,
    screenshot: async (stretch) => {
      const clip = stretch && {
        x: 0,
        y: stretch.top,
        width: look.width,
        height: stretch.height,
        scale: 1,
      };
      const answer = await call("Page.captureScreenshot", { captureBeyondViewport: true, clip });
      return Buffer.from(answer.data, "base64");
    },
    pdf: async () => {
      const answer = await call("Page.printToPDF", {
        preferCSSPageSize: true,
        paperWidth: 8.27,
        paperHeight: 11.69,
      });
      return Buffer.from(answer.data, "base64");
    },
  };
}

type Call = (method: string, params?: Record<string, unknown>) => Promise<Message>;

async function connected(url: string, onEvent: (message: Message) => void): Promise<Call> {
  const socket = new WebSocket(url);
  const waiting = new Map<number, PromiseWithResolvers<Message>>();
  socket.addEventListener("message", (event) => {
    const message: Message = JSON.parse(String(event.data));
    const answer = message.id === undefined ? undefined : waiting.get(message.id);
    if (answer === undefined) onEvent(message);
    else if (message.error === undefined) answer.resolve(message.result ?? {});
    else answer.reject(new Error(message.error.message));
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error(`no connection to ${url}`)));
  });
  let serial = 0;
  return (method, params = {}) => {
    serial += 1;
    const answer = Promise.withResolvers<Message>();
    waiting.set(serial, answer);
    setTimeout(() => answer.reject(new Error(`${method} was not answered`)), ANSWER_MS).unref();
    socket.send(JSON.stringify({ id: serial, method, params }));
    return answer.promise;
  };
}
