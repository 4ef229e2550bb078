// A day of an operator with the executable: hold, keep, look, ask who removed what; beside an agent where that matters.
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import { program } from "../../support/program.ts";
import { put } from "../../support/scratch.ts";
import { image, quickPasses, removable, startNode, usedAndUnused } from "./node.ts";

const unused = image("unused");
const other = image("other");
const node = { ...usedAndUnused, images: [...usedAndUnused.images, other] };
const flags = removable;

test("hold stops gc with exit 7 and a running agent until release, and shows its end and reason", async () => {
  await using it = await startNode({ node, flags: [...quickPasses, "--image-store-budget=1Mi"] });
  const held = await it.crigc("hold", "1h", "--reason", "upgrade");
  expect(held).toMatchObject({ exitCode: 0, stderr: "" });
  expect(held.stdout).toMatch(/^Garbage collection is on hold for 1h, until .*Z \(upgrade\); /);
  await using agent = it.start("run");
  expect((await it.firstPass()).hold).toMatchObject({ reason: "upgrade" });
  await it.looksAgain();
  const stopped = await it.crigc("gc", "--all-unused");
  expect(stopped.exitCode).toBe(7);
  expect(stopped.stdout).toContain("upgrade");
  expect(it.changes()).toEqual([]);
  expect((await it.crigc("release")).stdout).toContain("Hold released: until");
  await it.untilRemoved(2);
  expect((await it.status()).hold).toBeNull();
  expect(await agent.stop()).toBe(0);
});

test("keep baseline keeps today's images and no later one", async () => {
  await using it = await startNode({ node, flags });
  expect(await it.crigc("keep", "baseline")).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await it.crigc("keep", "list")).toMatchObject({ exitCode: 0 });
  const later = image("later");
  it.runtime.node.addImage(later);
  expect(await it.crigc("gc", "--all-unused")).toMatchObject({ exitCode: 0 });
  expect(it.removedImages()).toEqual([later.id]);
  expect((await it.crigc("explain", unused.id)).stdout).toContain("baseline.list:");
});

test("explain tells when and why an image was removed, by the end of its name", async () => {
  await using it = await startNode({ node, flags });
  expect(await it.crigc("rm", "r.example/unused:1")).toMatchObject({ exitCode: 0 });
  const explained = await it.crigc("explain", "unused:1");
  expect(explained).toMatchObject({ exitCode: 0, stderr: "" });
  expect(explained.stdout).toMatch(/^Image r\.example\/unused:1$/m);
  expect(explained.stdout).toMatch(/Not on the node: removed .* ago \(.*Z\) by pass /);
  const { removed, things } = JSON.parse(
    (await it.crigc("explain", "unused", "-o", "json")).stdout,
  );
  expect(things).toEqual([]);
  expect(removed).toMatchObject([{ id: unused.id, result: "removed" }]);
  expect((await it.crigc("explain", "nused:1")).exitCode).toBe(8);
});

test("a list that is cut within a line stops image removal until it is whole, and the keep directory may not vanish", async () => {
  await using it = await startNode({ node, flags });
  put(it.home, "keep.d/site.list", "r.example/unu");
  const gc = () => it.crigc("gc", "--all-unused");
  expect((await gc()).stdout).toContain("does not end with a newline");
  put(it.home, "keep.d/site.list", "r.example/*\n");
  expect(await gc()).toMatchObject({ exitCode: 0 });
  expect(await it.crigc("keep", "list")).toMatchObject({ exitCode: 0 });
  expect(readFileSync(join(it.stateDir, "keep-directory.json"), "utf8")).toContain(it.keepDir);
  rmSync(it.keepDir, { recursive: true });
  expect((await it.crigc("keep", "list")).exitCode).toBe(2);
  await gc();
  expect(it.changes()).toEqual([]);
});

test("keep baseline --once survives the loss of the ledger", async () => {
  await using it = await startNode({ node, flags });
  const once = () => it.crigc("keep", "baseline", "--once");
  expect((await once()).stdout).toContain("patterns added");
  for (const name of readdirSync(it.stateDir))
    if (!name.startsWith("keep-")) rmSync(join(it.stateDir, name), { recursive: true });
  it.runtime.node.addImage(image("later"));
  expect(await once()).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining("already written"),
  });
  expect((await it.crigc("keep", "test", "r.example/later")).exitCode).toBe(0);
  expect((await it.crigc("keep", "list", "-o", "name")).stdout).not.toContain("later");
});

test("gc on a terminal prints a line a removal and then its report; history names the command and its user", async () => {
  await using it = await startNode({ node, flags });
  const words = ["gc", "--all-unused", ...it.flags].map((word) => `'${word}'`).join(" ");
  const terminal = Bun.spawn(["script", "-qec", `${program} ${words}`, "/dev/null"], {
    env: { ...process.env, SUDO_USER: "alice", LANG: "C.UTF-8" },
    stdin: "ignore",
  });
  const lines = Bun.stripANSI(await new Response(terminal.stdout).text()).split("\r\n");
  expect(await terminal.exited).toBe(0);
  expect(lines.filter((line) => line.startsWith("Image r.example/"))).toHaveLength(2);
  expect(lines[0]).toMatch(/^Image r\.example\/\w+:1: removed, .* \(requested\); .* available$/);
  expect(lines[2]).toMatch(/^Pass /);
  expect((await it.crigc("history")).stdout).toContain("GC (crigc gc --all-unused, user alice), ");
  expect((await it.crigc("gc", "--all-unused")).stderr).not.toContain("Image r.example");
});
