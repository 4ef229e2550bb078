// promtool judges the metrics and the rules; rules-test.yaml says when each alert fires and when not.

import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import prometheusRules from "../../../deploy/prometheus-rules.yaml" with { type: "text" };
import { Metrics } from "../../../src/agent/metrics.ts";
import { measured, pass, status } from "../../report/build.ts";
import { tryCommand } from "../../support/containerd/command.ts";
import { put, scratch } from "../../support/scratch.ts";
import type { Json } from "../binary/node.ts";

const directory = scratch();

async function promtool(words: readonly string[], input = ""): Promise<string> {
  const file = put(directory, "input", input);
  const line = ["sh", "-c", 'exec promtool "$@" <"$0"', file, ...words];
  const { exitCode, stdout, stderr } = await tryCommand(line, { cwd: directory });
  return exitCode === 0 ? stderr : `exit ${exitCode}: ${stdout}${stderr}`;
}

test("promtool check metrics accepts the metrics", async () => {
  const metrics = new Metrics();
  metrics.observePass(pass());
  metrics.observeEvent("GhostImage");
  const text = metrics.expose({
    ...status(),
    filesystems: [{ filesystem: measured(), thresholds: null }],
    thresholds: { highPercent: 85, lowPercent: 80 },
    commit: 'a "quoted"\\commit',
  });
  expect(await promtool(["check", "metrics"], text)).toBe("");
});

describe("the rules", () => {
  test("are accepted by promtool check rules", async () => {
    await Bun.write(join(directory, "rules.yaml"), prometheusRules);
    expect(await promtool(["check", "rules", "rules.yaml"])).toBe("");
  });

  test("and the dashboard's queries are valid for Prometheus", async () => {
    const file = Bun.file(join(import.meta.dir, "../../../docs/grafana-dashboard.json"));
    const { panels, annotations }: Json = await file.json();
    const targets: readonly Json[] = panels.flatMap((panel: Json) => panel.targets);
    const queries = [...targets, ...annotations.list].map(({ expr }, index) => ({
      record: `query_${index}`,
      expr: expr.replaceAll("$__rate_interval", "5m"),
    }));
    expect(queries.length).toBeGreaterThan(15);
    const groups = [{ name: "dashboard", rules: queries }];
    await Bun.write(join(directory, "dashboard.yaml"), JSON.stringify({ groups }));
    expect(await promtool(["check", "rules", "dashboard.yaml"])).toBe("");
    const broken = [{ name: "dashboard", rules: [{ record: "query", expr: "sum(" }] }];
    await Bun.write(join(directory, "broken.yaml"), JSON.stringify({ groups: broken }));
    expect(await promtool(["check", "rules", "broken.yaml"])).toStartWith("exit 1");
  });

  test("fire and stay silent as rules-test.yaml says", async () => {
    const cases = await Bun.file(join(import.meta.dir, "rules-test.yaml")).text();
    await Bun.write(join(directory, "rules-test.yaml"), cases);
    expect(await promtool(["test", "rules", "rules-test.yaml"])).toBe("");
    for (const [, name = ""] of prometheusRules.matchAll(/alert: (\w+)/g))
      expect(cases).toContain(name);
  });
});
