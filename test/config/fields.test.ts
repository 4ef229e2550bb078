// The table of flags is whole: each entry can be read, says what it is, and clashes with no other.

import { describe, expect, test } from "bun:test";

import {
  defaultWords,
  fieldByFlag,
  fieldByVariable,
  fieldNames,
  fieldOf,
  placeholderOf,
  variablesOf,
} from "../../src/config/fields.ts";
import { defaultOf } from "../../src/config/settings.ts";

/** The contract's table of flags. */
const FLAGS =
  `container-runtime-endpoint image-service-endpoint runtime-request-timeout image-gc-high-threshold
  image-gc-low-threshold minimum-image-ttl-duration image-minimum-gc-age image-maximum-gc-age
  minimum-container-ttl-duration maximum-dead-containers-per-container maximum-dead-containers eviction-hard
  eviction-soft eviction-soft-grace-period eviction-minimum-reclaim eviction-pressure-transition-period
  pod-infra-container-image config config-dir keep keep-dir keep-loaded keep-per-repository image-store-budget
  pod-source kubelet-endpoint kubelet-ca-file
  kubelet-client-cert kubelet-client-key kubelet-token-file dead-pod-ttl boot-grace collect-foreign pod-logs-dir
  container-logs-dir root-dir compat
  image-gc-period image-detection-period image-cache-period container-gc-period pressure-period state-dir run-dir
  metrics-bind-address logging-format v dry-run`
    .split(/\s+/)
    .filter((flag) => flag !== "");

test("the table has exactly the flags of the contract", () => {
  expect([...fieldByFlag.keys()].toSorted()).toEqual(FLAGS.toSorted());
});

test("no two entries share a flag or a variable", () => {
  const flags = fieldNames.flatMap((name) => [
    fieldOf(name).flag,
    ...(fieldOf(name).aliases ?? []),
  ]);
  const variables = fieldNames.flatMap((name) => variablesOf(fieldOf(name)));
  expect(flags).toHaveLength(fieldByFlag.size);
  expect(variables).toHaveLength(fieldByVariable.size);
});

test("the kubelet's names are used if it has one", () => {
  expect(fieldNames.filter((name) => fieldOf(name).kubelet === true).join(" ")).toBe(
    "containerRuntimeEndpoint imageServiceEndpoint runtimeRequestTimeout imageGCHighThresholdPercent " +
      "imageGCLowThresholdPercent imageMinimumGCAge imageMaximumGCAge evictionHard evictionSoft " +
      "evictionSoftGracePeriod evictionMinimumReclaim evictionPressureTransitionPeriod podLogsDir",
  );
});

describe.each(fieldNames.map((name) => [name] as const))("%s", (name) => {
  const field = fieldOf(name);

  test("its default is a value of its type", () => {
    const hasNone = field.type.optional === true && field.default === undefined;
    expect(defaultOf(name) === null).toBe(hasNone);
  });

  test("it has words for help and documentation, and a default in words if the text is empty", () => {
    expect(field.help).toMatch(/^[^A-Z].*[^.]$/);
    expect(field.doc).toMatch(/\.$/);
    expect(field.default === undefined || field.defaultWords === undefined).toBe(true);
    expect([defaultWords(field), placeholderOf(field)]).not.toContain("");
  });
});
