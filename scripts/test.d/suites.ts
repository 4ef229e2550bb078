// The suites of scripts/test, one entry each, in the order in which they run.

export type Suite = {
  readonly name: string;
  /** Folders or files for `bun test`; or one executable, with its words, that ends with the line `N passed, N failed`. */
  readonly run:
    | { readonly tests: readonly string[] }
    | { readonly executable: string; readonly words?: readonly string[] };
  /** Folders that belong to other suites. */
  readonly except?: readonly string[];
  /** Its files walk through one scenario: keep the order in which they are written. */
  readonly ordered?: true;
  /** Its files share nothing and measure no time: as many run side by side as there are cores. */
  readonly parallel?: true;
  /** The suite runs dist/crigc, which is built first. */
  readonly needsExecutable?: true;
  /** Mounts, network namespaces and containers: skipped where that is impossible, but for CI. */
  readonly needsRoot?: true;
  /** What it needs beside the toolbox: the groups of scripts/setup. */
  readonly groups?: readonly string[];
  /** Limit of one test and of the suite. */
  readonly testSeconds: number;
  readonly suiteMinutes: number;
};

const otherSuites = ["test/e2e", "test/conformance", "test/fuzz", "test/property", "test/sim"];

export const suites: readonly Suite[] = [
  {
    name: "verify",
    run: { executable: "scripts/verify" },
    testSeconds: 60,
    suiteMinutes: 5,
  },
  {
    name: "unit",
    run: { tests: ["test"] },
    except: otherSuites,
    parallel: true,
    testSeconds: 20,
    suiteMinutes: 10,
  },
  {
    name: "conformance",
    run: { tests: ["test/conformance"] },
    testSeconds: 120,
    suiteMinutes: 10,
  },
  {
    name: "property",
    run: { tests: ["test/property"] },
    parallel: true,
    testSeconds: 120,
    suiteMinutes: 15,
  },
  {
    name: "fuzz",
    run: { tests: ["test/fuzz"] },
    testSeconds: 60,
    suiteMinutes: 5,
  },
  {
    name: "sim",
    run: { tests: ["test/sim"] },
    parallel: true,
    testSeconds: 120,
    suiteMinutes: 15,
  },
  {
    name: "mutants",
    run: { executable: "scripts/dev", words: ["mutate", "--one-of", "4", "--minutes", "4"] },
    testSeconds: 60,
    suiteMinutes: 10,
  },
  {
    name: "binary",
    run: { tests: ["test/e2e/binary"] },
    ordered: true,
    needsExecutable: true,
    testSeconds: 60,
    suiteMinutes: 15,
  },
  {
    name: "torture",
    run: {
      executable: "scripts/dev",
      words: ["torture", "--kills", "12", "--cuts", "10", "--full", "4", "--jumps", "10"],
    },
    needsExecutable: true,
    needsRoot: true,
    groups: ["containerd"],
    testSeconds: 60,
    suiteMinutes: 10,
  },
  {
    name: "containerd",
    run: { tests: ["test/e2e/containerd"] },
    ordered: true,
    needsExecutable: true,
    needsRoot: true,
    groups: ["containerd"],
    testSeconds: 600,
    suiteMinutes: 40,
  },
  {
    name: "shells",
    run: { tests: ["test/e2e/shells"] },
    needsExecutable: true,
    groups: ["shells"],
    testSeconds: 60,
    suiteMinutes: 5,
  },
  {
    name: "observability",
    run: { tests: ["test/e2e/observability"] },
    ordered: true,
    needsExecutable: true,
    groups: ["observability"],
    testSeconds: 180,
    suiteMinutes: 20,
  },
  {
    name: "install",
    run: { tests: ["test/e2e/install"] },
    ordered: true,
    needsExecutable: true,
    needsRoot: true,
    groups: ["debian-root"],
    testSeconds: 300,
    suiteMinutes: 20,
  },
  {
    name: "release",
    run: { tests: ["test/e2e/release"] },
    ordered: true,
    needsRoot: true,
    groups: ["release", "containerd"],
    testSeconds: 600,
    suiteMinutes: 40,
  },
  {
    name: "boot",
    run: { executable: "scripts/dev", words: ["boot-node"] },
    needsRoot: true,
    groups: ["boot"],
    testSeconds: 840,
    suiteMinutes: 15,
  },
];
