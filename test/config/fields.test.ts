// The table of flags is whole: each entry can be read, says what it is, and clashes with no other.

import { describe, expect, test } from "bun:test";

import { defaultWords, placeholderOf, variablesOf } from "../../src/config/field.ts";
import {
  fieldByFlag,
  fieldByVariable,
  fieldGroups,
  type FieldName,
  fieldNames,
  fieldOf,
} from "../../src/config/fields.ts";
import { defaultOf } from "../../src/config/settings.ts";
import { parseText, printedText } from "../../src/config/values.ts";

/** The contract's table of flags. */
const FLAGS =
  `container-runtime-endpoint image-service-endpoint runtime-request-timeout image-gc-high-threshold
  image-gc-low-threshold minimum-image-ttl-duration image-minimum-gc-age image-maximum-gc-age
  minimum-container-ttl-duration maximum-dead-containers-per-container maximum-dead-containers eviction-hard
  eviction-soft eviction-soft-grace-period eviction-minimum-reclaim eviction-pressure-transition-period
  pod-infra-container-image config config-dir keep keep-dir keep-loaded keep-per-repository image-store-budget
  max-images image-gc-inode-high-threshold image-gc-inode-low-threshold pod-source kubelet-endpoint kubelet-ca-file
  kubelet-client-cert kubelet-client-key kubelet-token-file dead-pod-ttl max-stop-grace-period boot-grace collect-foreign pod-logs-dir
  container-logs-dir root-dir space-accounting max-removals-per-pass removal-interval when-futile compat
  image-gc-period image-detection-period image-cache-period container-gc-period pressure-period state-dir run-dir
  metrics-bind-address event-hook logging-format v dry-run`
    .split(/\s+/)
    .filter((flag) => flag !== "");

const DEFAULTS: readonly (readonly [FieldName, string])[] = [
  ["runtimeRequestTimeout", "2m"],
  ["imageGCHighThresholdPercent", "85"],
  ["imageGCLowThresholdPercent", "80"],
  ["imageMinimumGCAge", "2m"],
  ["imageMaximumGCAge", "0s"],
  ["minimumContainerTTLDuration", "0s"],
  ["maximumDeadContainersPerContainer", "1"],
  ["maximumDeadContainers", "-1"],
  [
    "evictionHard",
    "nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%",
  ],
  ["evictionPressureTransitionPeriod", "5m"],
  ["keepDir", "/etc/crigc/keep.d"],
  ["podSource", "auto"],
  ["kubeletEndpoint", "https://127.0.0.1:10250"],
  ["keepLoaded", "false"],
  ["deadPodTTL", "24h"],
  ["maxStopGracePeriod", "30s"],
  ["bootGrace", "5m"],
  ["collectForeign", "false"],
  ["podLogsDir", "/var/log/pods"],
  ["containerLogsDir", "/var/log/containers"],
  ["spaceAccounting", "measured"],
  ["removalInterval", "0s"],
  ["whenFutile", "keep"],
  ["compat", "none"],
  ["imageGCPeriod", "5m"],
  ["imageDetectionPeriod", "5m"],
  ["imageCachePeriod", "30s"],
  ["containerGCPeriod", "1m"],
  ["pressurePeriod", "10s"],
  ["stateDir", "/var/lib/crigc"],
  ["runDir", "/run/crigc"],
  ["logging.format", "text"],
  ["logging.verbosity", "2"],
  ["dryRun", "false"],
];

test("the table has exactly the flags of the contract", () => {
  expect([...fieldByFlag.keys()].toSorted()).toEqual(FLAGS.toSorted());
});

test.each(DEFAULTS)("%s is %s by default", (name, text) => {
  expect(printedText(fieldOf(name).type, defaultOf(name))).toBe(text);
});

test("a flag without a default is off, none or empty by default", () => {
  const named = new Set(DEFAULTS.map(([name]) => name));
  for (const name of fieldNames.filter((it) => !named.has(it)))
    expect(["off", ""]).toContain(printedText(fieldOf(name).type, defaultOf(name)));
});

test("every field stands under one heading, in the order of the table", () => {
  expect(fieldGroups.flatMap(([, names]) => names)).toEqual([...fieldNames]);
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
  expect(fieldNames.filter((name) => fieldOf(name).kubelet === true)).toEqual([
    "containerRuntimeEndpoint",
    "imageServiceEndpoint",
    "runtimeRequestTimeout",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "imageMinimumGCAge",
    "imageMaximumGCAge",
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMinimumReclaim",
    "evictionPressureTransitionPeriod",
    "podLogsDir",
  ]);
});

describe.each(fieldNames.map((name) => [name] as const))("%s", (name) => {
  const field = fieldOf(name);

  test("its default is a value of its type", () => {
    const parsed = parseText(field.type, field.default ?? "");
    if (parsed.kind === "fault") throw new Error(parsed.message);
    expect(parsed.value === null).toBe(field.type.optional === true && field.default === undefined);
  });

  test("it has words for help and documentation, and a default in words if the text is empty", () => {
    expect(field.help).toMatch(/^[^A-Z].*[^.]$/);
    expect(field.doc).toMatch(/\.$/);
    expect(field.default === undefined || field.defaultWords === undefined).toBe(true);
    expect([defaultWords(field), placeholderOf(field)]).not.toContain("");
    expect(field.commands.length).toBeGreaterThan(0);
  });
});
