// docs/operations.md, the dashboard and the alerting rules are held against the metrics that there are.

import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import prometheusRules from "../../deploy/prometheus-rules.yaml" with { type: "text" };
import { type MetricDefinition, type MetricName, METRICS } from "../../src/agent/metrics.ts";
import { eventReasons } from "../../src/model/pass.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<"summary" | "description" | "runbook_url", string>>;
}

const { groups } = Bun.YAML.parse(prometheusRules) as {
  groups: readonly [
    { readonly name: string; readonly rules: readonly { record: string; expr: string }[] },
    { readonly name: string; readonly rules: readonly Rule[] },
  ];
};
const [recorded] = groups[0].rules;
const ALERTS = groups[1].rules;

const docs = join(import.meta.dir, "../../docs");
const page = await Bun.file(join(docs, "operations.md")).text();
const dashboard = await Bun.file(join(docs, "grafana-dashboard.json")).text();

/** The entries of the list in the documentation. */
const metricEntries = (): readonly string[] =>
  Object.entries<MetricDefinition>(METRICS).map(
    ([name, { labels, help }]) =>
      `- \`${name}${labels.length === 0 ? "" : `{${labels.join()}}`}\`: ${help}`,
  );

/** How the section of an alert begins. */
function openingOf(it: Rule): string {
  const severity = `${it.labels.severity[0]?.toUpperCase()}${it.labels.severity.slice(1)}`;
  const delay = it.for === "0m" ? "at once" : `after ${it.for}`;
  const summary = it.annotations.summary.replace(
    /\{\{ (?:or )?\$(?:labels\.)?(\w+)[^}]*\}\}/g,
    "‹$1›",
  );
  return `**${severity}** ${delay}: ${summary}.`;
}

/** Metrics that an expression names. */
const metricsIn = (text: string): ReadonlySet<string> =>
  new Set(text.match(/(?<![\w:])crigc_[a-z_]+/g) ?? []);

const unknownIn = (text: string): readonly string[] =>
  Array.from(metricsIn(text)).filter((name) => !Object.hasOwn(METRICS, name));

/** Labels that Prometheus adds to what it scrapes, or is often told to. */
const ADDED = ["job", "instance", "node"];
const labelsOf = (name: string): readonly string[] => {
  const metric: MetricDefinition | undefined = METRICS[name as MetricName];
  return metric?.labels ?? [];
};

/** Labels in an expression, or in what is written with its result, that none of its metrics has. */
function unknownLabels(expression: string, ...written: readonly string[]): readonly string[] {
  const names = expression.match(/(?<![\w:])crigc_[a-z_]+/g) ?? [];
  const known = new Set([...ADDED, ...names.flatMap(labelsOf)]);
  const used = [
    ...Array.from(expression.matchAll(/([a-z_]+)(?:=~|!~|!=|=)"/g), ([, label = ""]) => label),
    ...Array.from(
      expression.matchAll(/\b(?:by|on|without|group_left) ?\(([^)]+)\)/g),
      ([, list = ""]) => list.split(", "),
    ).flat(),
    ...Array.from(
      written.join().matchAll(/\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}/g),
      ([, label = ""]) => label,
    ),
  ];
  return used.filter((label) => !known.has(label));
}

/** Rows without the padding of the formatter. */
const rowsOf = (text: string): ReadonlySet<string> =>
  new Set(
    text
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .map((line) => line.replace(/ +/g, " ")),
  );

describe("docs/operations.md", () => {
  const rows = rowsOf(page);

  test.each(metricEntries())("has %s", (entry) => {
    expect(page.split("\n")).toContain(entry);
  });

  test.each(ALERTS.map((it) => [it.annotations.runbook_url, it]))(
    "%s is a section about its alert",
    (runbook, it) => {
      const [file, anchor] = runbook.split("#");
      const sections = page.split(/^#+ /m).map((text) => text.split("\n"));
      const section = sections.find(([heading = ""]) => heading.toLowerCase() === anchor);
      expect(file).toBe("https://crigc.example/docs/operations.md");
      expect(section?.[0]).toBe(it.alert);
      expect(section?.[2]).toStartWith(openingOf(it));
      expect(section?.join("\n").length).toBeGreaterThan(150);
      expect(section?.join("\n")).toMatch(
        /```sh\n(?:sudo )?(?:crigc|systemctl|journalctl|df|crictl) /,
      );
    },
  );

  test("docs/operations.md says of every event what it means and what to do", () => {
    for (const reason of eventReasons) {
      const row = Array.from(rows).find((it) => it.startsWith(`| \`${reason}\` |`));
      expect(row?.split("|").length).toBe(5);
    }
  });
});

const { panels, annotations } = JSON.parse(dashboard) as {
  panels: readonly { targets: readonly { expr: string; legendFormat?: string }[] }[];
  annotations: {
    list: readonly { expr: string; titleFormat: string; textFormat: string; tagKeys: string }[];
  };
};
const targets = panels.flatMap((panel) => panel.targets);
const notes = annotations.list;

test.each([
  ["docs/operations.md", [page]],
  ["the dashboard", [...targets, ...notes].map(({ expr }) => expr)],
  ["the rules", [recorded?.expr ?? "", ...ALERTS.map(({ expr }) => expr)]],
])("%s names no metric that does not exist", (where, texts) => {
  expect(unknownIn(texts.join("\n"))).toEqual([]);
  if (where === "the dashboard")
    for (const expression of texts) expect(metricsIn(expression).size).toBeGreaterThan(0);
});

test("the dashboard queries only labels that its metrics have", () => {
  const keys = (text: string): string => text.replace(/(\w+),?/g, "{{$1}}");
  expect([
    ...targets.flatMap((it) => unknownLabels(it.expr, it.legendFormat ?? "")),
    ...notes.flatMap((it) =>
      unknownLabels(it.expr, it.titleFormat, it.textFormat, keys(it.tagKeys)),
    ),
  ]).toEqual([]);
  expect(targets.length).toBeGreaterThan(15);
});

test("every alert says what to do", () => {
  expect(groups.map(({ name }) => name)).toEqual(["crigc-recording", "crigc-alerts"]);
  for (const { annotations: says, labels } of ALERTS) {
    expect(says.description).toMatch(/^What to do: .*\.$/);
    expect(["warning", "critical"]).toContain(labels.severity);
  }
});
