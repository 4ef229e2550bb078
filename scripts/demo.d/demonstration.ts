// The demonstration node, to run commands on: a CRI server of this project with images that are real files, and crigc set up for it.
import { mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { startFakeRuntime } from "../../test/support/fake-runtime/server.ts";
import { demoNode, imageDescription, YOUNG_IMAGE } from "./node.ts";

/** Images count as young for this long here, so that the demonstration does not take two minutes. */
export const MINIMUM_AGE_S = 3;
/** Between what the old images take and what they take with the young one. */
export const PLAIN_BUDGET_MIB = 218;

export interface Demonstration extends AsyncDisposable {
  /** A directory of the demonstration's own, on a tmpfs of 256 MiB if `isTmpfs`. */
  readonly home: string;
  readonly isTmpfs: boolean;
  /** Runs the built executable; what it prints goes to this terminal. Resolves with the exit code. */
  run(command: string, ...words: readonly string[]): Promise<number>;
  /** Runs the built executable; resolves with its standard output. Rejects if it fails. */
  output(command: string, ...words: readonly string[]): Promise<string>;
  /** Waits until no image of the node counts as young. */
  grow(): Promise<void>;
  pullOneMore(): void;
  usedMebibytes(): number;
}

/** Options of the command line: `--program`, `--directory`, and `--disk tmpfs` or `--disk plain`. */
export async function demonstration(minimumAgeS = MINIMUM_AGE_S): Promise<Demonstration> {
  const { values } = parseArgs({
    options: {
      program: { type: "string" },
      directory: { type: "string" },
      disk: { type: "string" },
    },
  });
  const program = resolve(values.program ?? "dist/crigc");
  const home = resolve(values.directory ?? "");
  const isTmpfs = values.disk === "tmpfs";
  const flags = [...flagsOf(home, isTmpfs), `--minimum-image-ttl-duration=${minimumAgeS}s`];
  const runtime = await startFakeRuntime({
    socket: join(home, "cri.sock"),
    node: demoNode(),
    store: { directory: join(home, "images") },
  });
  const commandOf = (words: readonly string[]) => [
    program,
    ...words,
    `--container-runtime-endpoint=${runtime.endpoint}`,
    ...flags,
  ];
  return {
    home,
    isTmpfs,
    run: async (...words) =>
      Bun.spawn(commandOf(words), { stdout: "inherit", stderr: "inherit", env: environment() })
        .exited,
    output: async (...words) => {
      const child = Bun.spawn(commandOf(words), { env: environment() });
      const [text, code] = await Promise.all([child.stdout.text(), child.exited]);
      if (code !== 0) throw new Error(`crigc ${words.join(" ")} exits ${code}`);
      return text;
    },
    grow: async () => Bun.sleep((minimumAgeS + 1) * 1000),
    pullOneMore: () => runtime.node.addImage(imageDescription(YOUNG_IMAGE)),
    usedMebibytes: () => (isTmpfs ? usedOf(home) : inMebibytes(runtime.node.store.usedBytes)),
    [Symbol.asyncDispose]: async () => runtime.stop(),
  };
}

/** The configuration of this machine does not apply. */
function flagsOf(home: string, isTmpfs: boolean): readonly string[] {
  const keepDirectory = join(home, "keep.d");
  mkdirSync(keepDirectory);
  writeFileSync(
    join(keepDirectory, "site.list"),
    "# what this site can never pull again\nregistry.example/base/*\n",
  );
  const configuration = join(home, "crigc.yaml");
  writeFileSync(configuration, "apiVersion: crigc/v1\nkind: CrigcConfiguration\n");
  const dropIns = join(home, "conf.d");
  mkdirSync(dropIns);
  return [
    `--config=${configuration}`,
    `--config-dir=${dropIns}`,
    `--state-dir=${join(home, "state")}`,
    `--run-dir=${join(home, "run")}`,
    `--root-dir=${home}`,
    `--keep-dir=${keepDirectory}`,
    `--pod-logs-dir=${join(home, "pods")}`,
    `--container-logs-dir=${join(home, "containers")}`,
    "--pod-source=cri",
    "-v=0",
    ...(isTmpfs
      ? []
      : [
          "--image-gc-high-threshold=100",
          "--image-gc-low-threshold=99",
          `--image-store-budget=${PLAIN_BUDGET_MIB}Mi`,
        ]),
  ];
}

const environment = (): Record<string, string | undefined> =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(?:CRIGC_.*|CONTAINER_RUNTIME_ENDPOINT|IMAGE_SERVICE_ENDPOINT)$/.test(name),
    ),
  );

function usedOf(path: string): number {
  const { blocks, bavail, bsize } = statfsSync(path);
  return inMebibytes((blocks - bavail) * bsize);
}

const inMebibytes = (bytes: number): number => Math.round(bytes / 1024 / 1024);
