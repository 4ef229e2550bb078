/** Counters, gauges and histograms with labels, in a bounded number of series, as text for Prometheus. */

import { clean } from "../../report/terminal.ts";
import { type MetricDefinition, type MetricName, METRICS } from "./table.ts";

/** Values in the order of the metric's labels. */
export type LabelValues = readonly string[];

/** Maximum series per metric; further values share one series with all labels `other`. */
const SERIES_MAXIMUM = 200;

interface Series {
  readonly labels: LabelValues;
  value: number;
  /** Of a histogram: observations up to each bound, and their sum. */
  readonly counts: number[];
  sum: number;
}

export class MetricRegistry {
  readonly #metrics = new Map<MetricName, Map<string, Series>>();

  add(name: MetricName, by: number | bigint, labels: LabelValues = []): void {
    this.#series(name, labels).value += Math.max(0, Number(by));
  }

  set(name: MetricName, value: number | bigint, labels: LabelValues = []): void {
    this.#series(name, labels).value = Number(value);
  }

  /** Replaces all series of a gauge, so that stale ones disappear. */
  replace(name: MetricName, rows: Iterable<readonly [LabelValues, number | bigint]>): void {
    this.#metrics.get(name)?.clear();
    for (const [labels, value] of rows) this.set(name, value, labels);
  }

  observe(name: MetricName, value: number, labels: LabelValues = []): void {
    const series = this.#series(name, labels);
    const bounds = definitionOf(name).buckets ?? [];
    bounds.forEach((bound, index) => {
      if (value <= bound) series.counts[index] = (series.counts[index] ?? 0) + 1;
    });
    series.value += 1;
    series.sum += value;
  }

  /** Text exposition format 0.0.4. */
  expose(): string {
    return Object.keys(METRICS)
      .filter(isMetricName)
      .flatMap((name) => this.#exposed(name))
      .join("");
  }

  #series(name: MetricName, given: LabelValues): Series {
    // Cleaned here, so that values printed alike are one series: duplicates would invalidate the whole response.
    const labels = given.map(clean);
    let metric = this.#metrics.get(name);
    if (metric === undefined) {
      metric = new Map();
      this.#metrics.set(name, metric);
    }
    const full = metric.size >= SERIES_MAXIMUM && !metric.has(keyOf(labels));
    const bounded = full ? labels.map(() => "other") : labels;
    const key = keyOf(bounded);
    const known = metric.get(key);
    if (known !== undefined) return known;
    const fresh: Series = {
      labels: bounded,
      value: 0,
      counts: (definitionOf(name).buckets ?? []).map(() => 0),
      sum: 0,
    };
    metric.set(key, fresh);
    return fresh;
  }

  #exposed(name: MetricName): readonly string[] {
    const definition = definitionOf(name);
    const series = Array.from(this.#metrics.get(name)?.values() ?? []);
    if (series.length === 0) return [];
    const sorted = series.toSorted((one, other) =>
      keyOf(one.labels) < keyOf(other.labels) ? -1 : 1,
    );
    return [
      `# HELP ${name} ${definition.help.replace(/\\/g, "\\\\").replace(/\n/g, "\\n")}\n`,
      `# TYPE ${name} ${definition.type}\n`,
      ...sorted.map((it) =>
        definition.type === "histogram"
          ? histogramText(name, definition, it)
          : `${name}${labelText(definition.labels, it.labels)} ${it.value}\n`,
      ),
    ];
  }
}

const definitionOf = (name: MetricName): MetricDefinition => METRICS[name];
const isMetricName = (name: string): name is MetricName => Object.hasOwn(METRICS, name);
const keyOf = (labels: LabelValues): string => labels.join("\u0000");

function histogramText(name: string, definition: MetricDefinition, series: Series): string {
  const names = [...definition.labels, "le"];
  const bucket = (bound: string, count: number): string =>
    `${name}_bucket${labelText(names, [...series.labels, bound])} ${count}\n`;
  const bounds = (definition.buckets ?? []).map((bound, index) =>
    bucket(String(bound), series.counts[index] ?? 0),
  );
  const labels = labelText(definition.labels, series.labels);
  return [
    ...bounds,
    bucket("+Inf", series.value),
    `${name}_sum${labels} ${series.sum}\n`,
    `${name}_count${labels} ${series.value}\n`,
  ].join("");
}

function labelText(names: readonly string[], values: LabelValues): string {
  if (names.length === 0) return "";
  const pairs = names.map((name, index) => `${name}="${escaped(values[index] ?? "")}"`);
  return `{${pairs.join(",")}}`;
}

const escaped = (value: string): string => value.replace(/\\/g, "\\\\").replace(/"/g, '\\"');
