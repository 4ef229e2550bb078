// A running agent, watched as an operator does: health, metrics, Prometheus, status, a changed and a broken configuration, a runtime that goes away.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";

import prometheusRules from "../../../src/agent/prometheus-rules.txt" with { type: "text" };
import { imageIdOf } from "../../support/fake-runtime/describe.ts";
import { put, scratch } from "../../support/scratch.ts";
import { eventually, freePort, type RunningAgent, startAgent } from "./agent.ts";

const directory = scratch();
let agent: RunningAgent;

beforeAll(async () => {
  agent = await startAgent(directory, {
    runtime: {
      store: { directory: join(directory, "store") },
      node: {
        images: [
          { id: imageIdOf(1), repoTags: ["registry.example/app:1"], sizeBytes: 4096 },
          { id: imageIdOf(2), repoTags: ["registry.example/app:2"], sizeBytes: 8192 },
        ],
      },
    },
    yaml: "imageGCHighThresholdPercent: 99\nimageGCLowThresholdPercent: 98\n",
  });
});

afterAll(async () => {
  await agent.stop();
});

const status = async (): Promise<Record<string, unknown>> =>
  JSON.parse((await agent.command("status", "-o", "json")).stdout) as Record<string, unknown>;

test("a running agent becomes ready and healthy", async () => {
  const ready = await eventually(
    () => agent.get("/readyz"),
    (answer) => answer.status === 200,
  );
  expect(ready.body).toEndWith("passed\n");
  expect((await agent.get("/healthz")).status).toBe(200);
});

test("promtool accepts the metrics of a running agent", async () => {
  const { body } = await eventually(
    () => agent.get("/metrics"),
    (answer) => answer.body.includes("crigc_passes_total"),
  );
  const tool = Bun.spawn(["promtool", "check", "metrics"], {
    stdin: new Blob([body]),
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await new Response(tool.stderr).text()).toBe("");
  expect(await tool.exited).toBe(0);
  expect(body).toMatch(/crigc_images 2\n/);
  expect(body).toMatch(/crigc_runtime_up 1\n/);
});

test("Prometheus scrapes a running agent and accepts its rules", async () => {
  const port = await freePort();
  put(directory, "prometheus/rules.yaml", prometheusRules);
  put(
    directory,
    "prometheus/prometheus.yml",
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yaml]
scrape_configs:
  - job_name: crigc
    static_configs: [{ targets: ["127.0.0.1:${agent.metricsPort}"] }]
`,
  );
  const home = join(directory, "prometheus");
  const prometheus = Bun.spawn(
    [
      "prometheus",
      `--config.file=${home}/prometheus.yml`,
      `--storage.tsdb.path=${home}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdout: "ignore", stderr: "ignore" },
  );
  const asked = async (query: string): Promise<readonly { value: readonly [number, string] }[]> => {
    const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`;
    const answer = (await (await fetch(url)).json()) as {
      data: { result: readonly { value: readonly [number, string] }[] };
    };
    return answer.data.result;
  };
  try {
    const ratio = await eventually(
      () => asked("crigc:imagefs_used:ratio"),
      (result) => result.length > 0,
    );
    expect(Number(ratio[0]?.value[1])).toBeGreaterThan(0);
    expect(Number(ratio[0]?.value[1])).toBeLessThan(1);
    expect((await asked('up{job="crigc"}'))[0]?.value[1]).toBe("1");
    expect((await asked("scrape_samples_scraped"))[0]?.value[1]).not.toBe("0");
  } finally {
    prometheus.kill("SIGKILL");
    await prometheus.exited;
  }
});

test("status shows the agent's disk, loops and values, as a table and as JSON", async () => {
  const table = await agent.command("status");
  expect(table.code).toBe(0);
  expect(table.stdout).toContain("image-gc");
  expect(table.stdout).toContain("imageGCHighThresholdPercent");
  const document = await status();
  expect(document["kind"]).toBe("Status");
  expect(document["values"]).toMatchObject({
    imageGCHighThresholdPercent: { value: 99, source: expect.stringContaining("file") as string },
  });
});

test("a threshold changed in its file is shown in status without a restart", async () => {
  agent.configure("imageGCHighThresholdPercent: 97\nimageGCLowThresholdPercent: 96\n");
  await eventually(status, (document) => JSON.stringify(document["values"]).includes('"value":97'));
});

test("an invalid file is reported, and the old value stays in force", async () => {
  agent.configure("imageGCHighThresholdPercent: lots\n");
  const document = await eventually(status, (it) => it["configurationError"] !== null);
  expect(String(document["configurationError"])).toContain("lots");
  expect(document["values"]).toMatchObject({ imageGCHighThresholdPercent: { value: 97 } });
  expect((await agent.get("/metrics")).body).toContain("crigc_config_reload_success 0\n");
  agent.configure("imageGCHighThresholdPercent: 97\nimageGCLowThresholdPercent: 96\n");
  await eventually(status, (it) => it["configurationError"] === null);
});

test("a runtime that goes down is reported everywhere, and the agent recovers by itself", async () => {
  await agent.runtime.crash();
  const ill = await eventually(
    () => agent.get("/readyz"),
    (answer) => answer.status === 503,
  );
  expect(ill.body).toContain("failed  runtime");
  expect((await status())["runtimeError"]).not.toBeNull();
  await eventually(
    () => agent.get("/metrics"),
    (answer) => answer.body.includes("crigc_runtime_up 0\n"),
  );
  await agent.runtime.recover();
  await eventually(
    () => agent.get("/readyz"),
    (answer) => answer.status === 200,
  );
  expect((await status())["runtimeError"]).toBeNull();
  await eventually(
    async () => agent.log(),
    (log) => / succeeded (again )?after /.test(log),
  );
});

test("an agent that stops removes its socket, and status says that no agent is running", async () => {
  const other = await startAgent(join(directory, "other"));
  await eventually(
    () => other.command("status"),
    (answer) => answer.code === 0,
  );
  expect(await other.stop()).toBe(0);
  const gone = await other.command("status");
  expect(gone.code).toBe(8);
  expect(gone.stderr).toContain("no agent is running");
});
