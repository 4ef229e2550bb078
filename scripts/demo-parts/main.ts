// The demonstration: a node over its high threshold, what crigc plans and why, what it removes, and the disk before and after.
import { mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { startFakeRuntime } from "../../test/support/fake-runtime/server.ts";
import { demoNode, imageDescription, YOUNG_IMAGE } from "./node.ts";

const { values } = parseArgs({
  options: { program: { type: "string" }, directory: { type: "string" }, disk: { type: "string" } },
});
const program = resolve(values.program ?? "dist/crigc");
const home = resolve(values.directory ?? "");
const isTmpfs = values.disk === "tmpfs";

/** An image counts as young for so long here, that the demonstration need not last two minutes. */
const MINIMUM_AGE_S = 3;

const keepDirectory = join(home, "keep.d");
mkdirSync(keepDirectory);
writeFileSync(
  join(keepDirectory, "site.list"),
  "# what this site can never pull again\nregistry.example/base/*\n",
);

// What this machine has configured has no say here.
const configuration = join(home, "crigc.yaml");
writeFileSync(configuration, "apiVersion: crigc/v1\nkind: CrigcConfiguration\n");
const dropIns = join(home, "conf.d");
mkdirSync(dropIns);
const environment = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(?:CRIGC_.*|CONTAINER_RUNTIME_ENDPOINT|IMAGE_SERVICE_ENDPOINT)$/.test(name),
  ),
);

/** Between what the old images take and what they take with the young one. */
const PLAIN_BUDGET_MIB = 218;

const runtime = await startFakeRuntime({
  socket: join(home, "cri.sock"),
  node: demoNode(),
  store: { directory: join(home, "images") },
});
try {
  await demonstrate();
} finally {
  await runtime.stop();
}

async function demonstrate(): Promise<void> {
  title("The node");
  say(
    isTmpfs
      ? "A CRI server of ours on a unix socket; its images are files on a tmpfs of 256 MiB."
      : `A CRI server of ours on a unix socket; its images are files in a directory. Without a disk of its own, a budget of ${PLAIN_BUDGET_MIB} MiB for the image store stands for the full disk.`,
  );
  say(`Here an image counts as young for ${MINIMUM_AGE_S} seconds; the default is two minutes.`);
  disk("Disk");
  await crigc("images");

  title("A first pass: crigc remembers what it saw, and to a new memory everything is young");
  await crigc("gc", "--images");
  await Bun.sleep((MINIMUM_AGE_S + 1) * 1000);

  title("One more image is pulled");
  runtime.node.addImage(imageDescription(YOUNG_IMAGE));
  say(YOUNG_IMAGE.name);
  disk("Disk");

  title("The plan, which changes nothing");
  await crigc("plan");

  title("The collection");
  const before = used();
  const code = await crigc("gc");
  disk("Disk after");
  say(
    `\n${before - used()} MiB came back. What a container uses, what the runtime pins, the sandbox image, what keep.d names and what is too young are still there.`,
  );

  title("Why one of them stayed");
  await crigc("explain", "registry.example/shop/migrate:v7");
  process.exitCode = code;
}

/** Runs the built executable on the demonstration node, with what it prints going straight to this terminal. */
async function crigc(command: string, ...words: readonly string[]): Promise<number> {
  say(`$ crigc ${[command, ...words].join(" ")}`);
  const flags = [
    `--config=${configuration}`,
    `--config-dir=${dropIns}`,
    `--container-runtime-endpoint=${runtime.endpoint}`,
    `--state-dir=${join(home, "state")}`,
    `--run-dir=${join(home, "run")}`,
    `--root-dir=${home}`,
    `--keep-dir=${keepDirectory}`,
    `--pod-logs-dir=${join(home, "pods")}`,
    `--container-logs-dir=${join(home, "containers")}`,
    `--minimum-image-ttl-duration=${MINIMUM_AGE_S}s`,
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
  const child = Bun.spawn([program, command, ...words, ...flags], {
    stdout: "inherit",
    stderr: "inherit",
    env: environment,
  });
  const code = await child.exited;
  if (code !== 0) say(`(exit code ${code})`);
  return code;
}

function used(): number {
  if (!isTmpfs) return Math.round(runtime.node.store.usedBytes / 1024 / 1024);
  const { blocks, bavail, bsize } = statfsSync(home);
  return Math.round(((blocks - bavail) * bsize) / 1024 / 1024);
}

function disk(what: string): void {
  say(
    isTmpfs
      ? `${what}: ${used()} of 256 MiB used (${Math.round((used() / 256) * 100)}%)`
      : `${what}: images take ${used()} MiB`,
  );
}

function title(text: string): void {
  say(`\n== ${text} ==\n`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
