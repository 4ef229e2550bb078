// crigc simulate: combinations, where traces come from, and what it rejects.

import { describe, expect, test } from "bun:test";

import { HostError } from "../../../src/model/errors.ts";
import { readTrace } from "../../../src/model/trace.ts";
import { TRACE } from "../../support/trace.ts";
import { type Around, crigc } from "../world.ts";

const node1 = () => readTrace(TRACE);

const simulate = (words: readonly string[], open: Around["open"] = {}) =>
  crigc(["simulate", ...words], {
    open: {
      filesIn: (path) => {
        if (path === "/missing") throw new HostError("read", "cannot read /missing");
        return path === "/traces" ? ["/traces/a.trace", "/traces/b.trace"] : [path];
      },
      trace: async () => node1(),
      keepRules: async () => ({ rules: [], problems: [], directoriesRead: [] }),
      ...open,
    },
  });

describe("simulate", () => {
  test("prints a row for each combination, and notes those that contradict each other", async () => {
    const words = "--trace a.trace --eviction-hard imagefs.available<5%";
    const vary = "--vary image-gc-high-threshold=85,70 --vary capacity=100,200";
    const { code, stdout, stderr } = await simulate(`${words} ${vary}`.split(" "));
    expect(code).toBe(0);
    expect(stdout).toMatchSnapshot();
    expect(stderr.match(/note: left out image-gc-high-threshold=70/g)).toHaveLength(2);
  });

  test("has every figure in JSON, and percentiles", async () => {
    const { stdout } = await simulate(["--trace", "a.trace", "--flush-every", "1h", "-o", "json"]);
    expect(stdout).toMatchSnapshot();
  });

  test("does not show a disk as full that was nearly full", async () => {
    const { stdout: alone } = await simulate(["--trace", "a.trace", "-o", "json"]);
    const nearly = alone
      .replaceAll(/"(?:mean|peak)Bytes": \d+/g, (figure) => figure.replace(/\d+/, "999"))
      .replaceAll(/"capacityBytes": \d+/g, '"capacityBytes": 1000');
    const sideBySide = async (jobs: readonly unknown[]) => jobs.map(() => nearly);
    const { stdout } = await simulate(["--trace", "/traces"], { sideBySide });
    expect(stdout.match(/\d+%/g)).toEqual(["99%", "99%"]);
  });

  test("replays many traces in processes of their own, under the same settings", async () => {
    const { stdout: alone } = await simulate(["--trace", "a.trace", "-o", "json"]);
    const args: (readonly string[])[] = [];
    const { stdout } = await simulate(
      ["--trace", "/traces", "--keep=**/b", "--bound", "--capacity=1Gi", "--html=p", "--dry-run"],
      {
        sideBySide: async (jobs) => {
          args.push(...jobs.map((job) => job.args));
          return jobs.map(() => alone);
        },
      },
    );
    const rest = ["--capacity=1Gi", "--bound", "--keep=**/b", "--dry-run=true", "--output=json"];
    expect(args).toEqual([
      ["simulate", "--trace=/traces/a.trace", ...rest],
      ["simulate", "--trace=/traces/b.trace", ...rest],
    ]);
    expect(stdout).toContain("6 uses on 2 nodes");
    expect(stdout).toMatch(/^AGAIN, A NODE +P50 +P90 +P99 +MOST$/m);
  });

  test("replays a share, and adds up what the shares gave", async () => {
    const [{ stdout: whole }, { stdout: share }, { stdout: empty }] = await Promise.all([
      simulate(["--trace", "a.trace", "-o", "json"]),
      simulate(["--trace", "/traces", "--share", "1/2", "-o", "json"]),
      simulate(["--trace", "a.trace", "--share", "1/2", "-o", "json"]),
    ]);
    expect(share).toBe(whole);
    const texts: Readonly<Record<string, string>> = { one: whole, two: share, none: empty };
    const open = { resultText: async (path: string) => texts[path] ?? "{}" };
    const words = ["--result", "one", "--result", "none", "--result", "two"];
    expect((await simulate(words, open)).stdout).toContain("6 uses on 2 nodes");
    const { code, stderr } = await simulate(["--result", "other"], open);
    expect([code, stderr]).toEqual([2, expect.stringContaining("was not written by")]);
  });

  test("writes a page with a chart that needs no network", async () => {
    const pages: string[] = [];
    const writeFile = (_: string, page: string): void => void pages.push(page);
    await simulate(["--trace", "a.trace", "--vary", "capacity=100,200", "--html", "x"], {
      writeFile,
    });
    expect(pages[0]?.match(/<circle /g)).toHaveLength(2);
    expect(pages[0]?.match(/<polyline/g)).toHaveLength(1);
    expect(pages[0]).not.toMatch(/<script|src=/);
  });

  test("what cannot be simulated is a usage error", async () => {
    const lines = [
      "--trace a --capacity many",
      "--trace a --restart-every 1s",
      "--trace a --layers none",
      "--trace a --share 2/2",
      "--trace a --vary colour=red,blue",
      "--trace a --vary capacity",
      "--trace a --vary capacity=1Gi,,2Gi",
      "--trace a --vary image-gc-high-threshold=101",
      "--trace a --vary image-gc-high-threshold=1,2",
      // It would be ignored in part.
      "--result a.json --trace a",
      "--share 0/2",
      "--trace /missing",
      "--result /missing",
      "--trace a --vary max-images=1 --vary max-images=2",
      "--trace a --html -",
    ];
    const said: string[] = [];
    for (const line of lines) {
      const { code, stderr } = await simulate(line.split(" "));
      expect(code).toBe(2);
      said.push(`${line}\n  ${stderr}`);
    }
    expect(said.join("")).toMatchSnapshot();
  });

  test("needs the size of the disk from the trace or the command line", async () => {
    const trace = async () => ({ ...node1(), capacityBytes: null });
    const { code, stderr } = await simulate(["--trace", "a.trace"], { trace });
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('--capacity: missing: the trace of "node-1"'),
    ]);
    expect((await simulate(["--trace", "a.trace", "--capacity=90%"], { trace })).code).toBe(0);
  });
});
