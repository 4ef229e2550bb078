// docs/air-gapped.md, word by word: the commands for a node with a USB stick, on a bare containerd.
import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { library, writeImageArchive } from "../../support/containerd/archive.ts";
import { command } from "../../support/containerd/command.ts";
import { loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import { gc, ripen, youngAge } from "../../support/containerd/reports.ts";
import { program } from "../../support/program.ts";

setDefaultTimeout(120_000);

const page = await Bun.file(join(import.meta.dir, "../../../docs/air-gapped.md")).text();
/** Lines of the code block below this line of the page. */
function commandsBelow(line: string): readonly string[] {
  const [, block = ""] = page.split(`\n${line}\n\n\`\`\`sh\n`)[1]?.match(/^([^]*?)\n```/) ?? [];
  return block.split("\n").filter((it) => it !== "");
}
const onTheNode = commandsBelow("On the node, as root:");

const listed = `test "$(ctr -n k8s.io images ls -q | grep -c library)" = "$(crigc images -o name 2>/dev/null | grep -c library)"`;

/** In a separate mount namespace: the stick is below /mnt and /usr/local/bin is empty. */
async function run(
  node: ContainerdNode,
  stick: string,
  lines: readonly string[],
): Promise<readonly (readonly [string, number, string])[]> {
  const script = [
    `mount --bind ${stick} /mnt; mount -t tmpfs tmpfs /usr/local/bin`,
    ...lines.map((line) =>
      line.startsWith("mount ")
        ? ""
        : // CRI lists what ctr has imported a moment later.
          `echo "@@"; { ${line}\n} 2>&1; echo "@@$?"; for n in $(seq 500); do ${listed} && break; done`,
    ),
  ].join("\n");
  const child = Bun.spawn(["unshare", "--mount", "sh", "-c", script], {
    stdout: "pipe",
    env: {
      PATH: `/usr/local/bin:${dirname(node.programs.ctr)}:/usr/sbin:/usr/bin:/sbin:/bin`,
      CONTAINERD_ADDRESS: node.socket,
      CONTAINER_RUNTIME_ENDPOINT: node.endpoint,
      CRIGC_POD_LOGS_DIR: node.podLogsDirectory,
      CRIGC_CONTAINER_LOGS_DIR: node.containerLogsDirectory,
      CRIGC_ROOT_DIR: node.rootDirectory,
      CRIGC_STATE_DIR: node.stateDirectory,
      CRIGC_RUN_DIR: node.runDirectory,
      CRIGC_KEEP_DIR: node.keepDirectory,
    },
  });
  const said = await new Response(child.stdout).text();
  const results = said.split("@@\n").slice(1);
  return lines
    .filter((line) => !line.startsWith("mount "))
    .map((line, at) => {
      const [output = "", code = ""] = results[at]?.split(/@@(?=\d+\n)/) ?? [];
      return [line.replace(/ +#.*$/, ""), Number.parseInt(code, 10), output] as const;
    });
}

test("a bare node with a USB stick is protected by the commands of the page, as written", async () => {
  await using node = await startNode("2.1");
  const stick = join(node.directory, "stick");
  for (const name of ["release", "images"]) mkdirSync(join(stick, name), { recursive: true });
  const executable = join(stick, "release/crigc-linux-x64");
  copyFileSync(program, executable);
  chmodSync(executable, 0o644);
  const sums = await command("sh", "-c", `cd ${stick}/release && sha256sum crigc-linux-x64`);
  writeFileSync(join(stick, "release/SHA256SUMS"), sums);
  for (const name of ["app", "tools"])
    writeImageArchive(join(stick, `images/${name}.tar`), [{ names: [library(`${name}:1`)] }]);
  const ran = await run(node, stick, onTheNode);
  const codes = ran.map(([line, code]) => [line, code]);
  expect(codes).toEqual([
    ["cd /mnt/release && sha256sum -c --ignore-missing SHA256SUMS", 0],
    ["install -m 0755 crigc-linux-x64 /usr/local/bin/crigc", 0],
    ['for file in /mnt/images/*.tar; do ctr -n k8s.io images import "$file"; done', 0],
    ["crigc keep baseline", 0],
    ["crigc keep list", 0],
    ["crigc plan", 0],
  ]);
  await loadImages(node, [
    { names: [library("later:1")], layers: [{ seed: "later", sizeBytes: 4096 }] },
  ]);
  await ripen(node, "--all-unused");
  await gc(node, youngAge, "--all-unused");
  const left = await imageTags(node);
  expect(left).toContain(library("app:1"));
  expect(left).toContain(library("tools:1"));
  expect(left).not.toContain(library("later:1"));
});
