// For every entry of the table: a value that is not its default, written for each source, and what it is then.

import type { FieldName } from "../../src/config/fields.ts";
import type { Printed } from "../../src/config/values.ts";

export interface Sample {
  readonly name: FieldName;
  /** Behind the flag and in the variable. */
  readonly text: string;
  /** In a file, as JSON. */
  readonly inFile: unknown;
  /** As `crigc config` prints it. */
  readonly printed: Printed;
}

const sample = (
  name: FieldName,
  text: string,
  printed: Printed,
  inFile: unknown = printed,
): Sample => ({
  name,
  text,
  inFile,
  printed,
});

export const SAMPLES: readonly Sample[] = [
  sample("containerRuntimeEndpoint", "/run/a.sock", "unix:///run/a.sock"),
  sample("imageServiceEndpoint", "unix:///run/b.sock", "unix:///run/b.sock", "/run/b.sock"),
  sample("runtimeRequestTimeout", "90s", "1m30s"),
  sample("imageGCHighThresholdPercent", "90", 90),
  sample("imageGCLowThresholdPercent", "70", 70),
  sample("imageMinimumGCAge", "1h", "1h", "60m"),
  sample("imageMaximumGCAge", "1w", "7d"),
  sample("imageGCInodeHighThresholdPercent", "90", 90),
  sample("imageGCInodeLowThresholdPercent", "60", 60),
  sample("imageStoreBudget", "20GiB", "20Gi", 21_474_836_480),
  sample("maxImages", "40", 40),
  sample("spaceAccounting", "reported", "reported"),
  sample("whenFutile", "collect", "collect"),
  sample("maxRemovalsPerPass", "3", 3),
  sample("removalInterval", "250ms", "250ms"),
  sample("keep", "registry.local/**", ["registry.local/**"], "registry.local/**"),
  sample("keepDir", "/srv/keep/", "/srv/keep", "/srv//keep"),
  sample("keepLoaded", "true", true),
  sample("keepPerRepository", "2", 2),
  sample("podInfraContainerImage", "pause:3.9", ["pause:3.9"]),
  sample("minimumContainerTTLDuration", "10s", "10s"),
  sample("maximumDeadContainersPerContainer", "-1", -1),
  sample("maximumDeadContainers", "100", 100),
  sample("maxStopGracePeriod", "1m", "1m"),
  sample("collectForeign", "1", true),
  sample("podSource", "kubelet-api", "kubelet-api"),
  sample("kubeletEndpoint", "http://127.0.0.1:10255", "http://127.0.0.1:10255"),
  sample("kubeletCAFile", "/etc/ca.pem", "/etc/ca.pem"),
  sample("kubeletClientCert", "/etc/cert.pem", "/etc/cert.pem"),
  sample("kubeletClientKey", "/etc/key.pem", "/etc/key.pem"),
  sample("kubeletTokenFile", "/etc/token", "/etc/token"),
  sample("deadPodTTL", "1h", "1h"),
  sample("evictionHard", "imagefs.available<20Gi", { "imagefs.available": "20Gi" }),
  sample("evictionSoft", "nodefs.available<15%", { "nodefs.available": "15%" }),
  sample("evictionSoftGracePeriod", "nodefs.available=1m30s", { "nodefs.available": "1m30s" }),
  sample("evictionMinimumReclaim", "nodefs.available=500Mi", { "nodefs.available": "500Mi" }),
  sample("evictionPressureTransitionPeriod", "0s", "0s"),
  sample("podLogsDir", "/srv/pods", "/srv/pods"),
  sample("containerLogsDir", "/srv/containers", "/srv/containers"),
  sample("rootDir", "/srv/kubelet", "/srv/kubelet"),
  sample("stateDir", "/srv/state", "/srv/state"),
  sample("runDir", "/srv/run", "/srv/run"),
  sample("imageGCPeriod", "10m", "10m"),
  sample("imageDetectionPeriod", "1m", "1m"),
  sample("imageCachePeriod", "1m", "1m"),
  sample("containerGCPeriod", "30s", "30s"),
  sample("pressurePeriod", "5s", "5s"),
  sample("bootGrace", "0", "0s", 0),
  sample("metricsBindAddress", "127.0.0.1:9419", "127.0.0.1:9419"),
  sample("eventHook", "/usr/local/bin/hook", "/usr/local/bin/hook"),
  sample("compat", "kubelet", "kubelet"),
  sample("dryRun", "true", true),
  sample("logging.format", "json", "json"),
  sample("logging.verbosity", "5", 5),
];

/** Fields without which another one is refused. */
export const COMPANIONS: Readonly<Partial<Record<FieldName, FieldName>>> = {
  imageGCInodeLowThresholdPercent: "imageGCInodeHighThresholdPercent",
  kubeletClientCert: "kubeletClientKey",
  kubeletClientKey: "kubeletClientCert",
  evictionSoft: "evictionSoftGracePeriod",
};
