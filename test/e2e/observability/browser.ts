// Chromium without a window: opens a file as a reader would, at a width and in a colour scheme.

export interface Look {
  readonly width: number;
  readonly scheme: "light" | "dark";
}

export interface Page extends Disposable {
  /** The value of an expression in the page. */
  evaluate(expression: string): Promise<unknown>;
  /** The whole page as PNG, or a stretch of it. */
  screenshot(stretch?: { readonly top: number; readonly height: number }): Promise<Uint8Array>;
  /** The page as it is printed on A4. */
  pdf(): Promise<Buffer>;
  /** What it asked the network for. */
  readonly requests: readonly string[];
  /** Messages of the console, refusals of the content policy among them. */
  readonly complaints: readonly string[];
}

const backend = {
  type: "chrome",
  url: false,
  argv: ["--no-sandbox", "--hide-scrollbars", "--disable-dev-shm-usage"],
} as const;

// oxlint-disable-next-line typescript/no-explicit-any -- an event of the debugging protocol
type Data = any;

export async function openPage(file: string, { width, scheme }: Look): Promise<Page> {
  const view = new Bun.WebView({
    width,
    height: 800,
    backend: { ...backend, argv: [...backend.argv] },
  });
  const [requests, complaints]: [string[], string[]] = [[], []];
  // Before it has been anywhere it takes no commands.
  await view.navigate("about:blank");
  view.addEventListener<Data>("Network.requestWillBeSent", ({ data }) =>
    requests.push(data.request.url),
  );
  view.addEventListener<Data>("Log.entryAdded", ({ data }) => complaints.push(data.entry.text));
  for (const domain of ["Network", "Log"]) await view.cdp(`${domain}.enable`);
  const metrics = { width, height: 800, deviceScaleFactor: 1, mobile: width < 600 };
  await view.cdp("Emulation.setDeviceMetricsOverride", metrics);
  const features = [{ name: "prefers-color-scheme", value: scheme }];
  await view.cdp("Emulation.setEmulatedMedia", { features });
  await view.navigate(`file://${file}`);
  const bytesOf = async (method: string, options: Record<string, unknown>): Promise<Buffer> =>
    Buffer.from((await view.cdp<Data>(method, options)).data, "base64");
  return {
    requests,
    complaints,
    evaluate: (expression) => view.evaluate(expression),
    screenshot: (stretch) => {
      const clip = stretch && { x: 0, y: stretch.top, width, height: stretch.height, scale: 1 };
      return bytesOf("Page.captureScreenshot", { captureBeyondViewport: true, clip });
    },
    pdf: () =>
      bytesOf("Page.printToPDF", { preferCSSPageSize: true, paperWidth: 8.27, paperHeight: 11.69 }),
    [Symbol.dispose]: () => view.close(),
  };
}
