// The demonstration: a node over its high threshold, what crigc plans and why, what it removes, and the disk before and after.
import { demonstration, MINIMUM_AGE_S, PLAIN_BUDGET_MIB } from "./demonstration.ts";
import { YOUNG_IMAGE } from "./node.ts";

await using demo = await demonstration();
const { isTmpfs } = demo;

title("The node");
say(
  isTmpfs
    ? "A CRI server of this project on a unix socket; its images are files on a tmpfs of 256 MiB."
    : `A CRI server of this project on a unix socket; its images are files in a directory. Without a disk of its own, a budget of ${PLAIN_BUDGET_MIB} MiB for the image store stands for the full disk.`,
);
say(`Here an image counts as young for ${MINIMUM_AGE_S} seconds; the default is two minutes.`);
disk("Disk");
await crigc("images");

title(
  "A first pass: crigc sees these images for the first time, and the disk is below its threshold",
);
await crigc("gc", "--images");
await demo.grow();

title("One more image is pulled");
demo.pullOneMore();
say(YOUNG_IMAGE.name);
disk("Disk");

title("The plan, which changes nothing");
await crigc("plan");

title("The collection");
const before = demo.usedMebibytes();
process.exitCode = await crigc("gc");
disk("Disk after");
say(
  `\n${before - demo.usedMebibytes()} MiB freed. crigc kept the images in use, the pinned one, the sandbox image, what keep.d names, and what is too young.`,
);

title("Why crigc kept one of them");
await crigc("explain", "registry.example/shop/migrate:v7");
say("\nNext: crigc doctor and crigc plan on a node of your own; neither changes anything.");

async function crigc(command: string, ...words: readonly string[]): Promise<number> {
  say(`$ crigc ${[command, ...words].join(" ")}`);
  const code = await demo.run(command, ...words);
  if (code !== 0) say(`(exit code ${code})`);
  return code;
}

function disk(what: string): void {
  const used = demo.usedMebibytes();
  say(
    isTmpfs
      ? `${what}: ${used} of 256 MiB used (${Math.round((used / 256) * 100)}%)`
      : `${what}: images take ${used} MiB`,
  );
}

function title(text: string): void {
  say(`\n== ${text} ==\n`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
