// report on the command line: one page of the node and its history.

import { describe, expect, test } from "bun:test";

import type { Openers } from "../../../src/engine/openers.ts";
import { RuntimeError } from "../../../src/model/errors.ts";
import { read } from "../../state/fixture.ts";
import { aLedger, anImage, aRecord, NOW } from "../../support/build/values.ts";
import { scratch } from "../../support/scratch.ts";
import { openNodeOf } from "../open-node.ts";
import { crigc } from "../world.ts";

describe("report", () => {
  const directory = scratch();
  const app = anImage("app");

  async function report(words: readonly string[], node: Openers["node"] = nodeOf()) {
    const written = new Map<string, string>();
    const ran = await crigc(["report", ...words], {
      open: {
        now: () => NOW,
        hostName: () => "node-7<script>",
        node,
        state: () => read(directory).reader,
        writeFile: (path, text) => void written.set(path, text),
      },
    });
    return { ...ran, written };
  }

  const nodeOf = (): Openers["node"] =>
    openNodeOf({
      snapshot: { images: [app] },
      ledger: aLedger({ images: new Map([[app.id, aRecord()]]) }),
    }).node;

  test("writes one page of the node into the file, or to stdout for -", async () => {
    const { code, stdout, written } = await report(["--html", "/tmp/r.html"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "Report written to /tmp/r.html.\n" });
    const page = written.get("/tmp/r.html") ?? "";
    expect(page).toStartWith("<!doctype html>");
    expect(page).toContain(">registry.example/app:v1</td>");
    expect(page).toContain("node-7&lt;script&gt;");
    expect(page).not.toContain("node-7<script>");
    expect(await report(["--html", "-"])).toMatchObject({ stdout: page, written: new Map() });
  });

  test("of a node that cannot be read writes no file, because it would replace the one of before", async () => {
    const cancelled: Openers["node"] = async () => {
      throw new RuntimeError("cancelled", "the call was cancelled");
    };
    const { code, stderr, written } = await report(["--html", "/r"], cancelled);
    expect({ code, written: written.size }).toEqual({ code: 3, written: 0 });
    expect(stderr).toBe("crigc: the call was cancelled\n");
  });

  test.each([
    [[], "missing --html FILE"],
    [["--html", ""], "--html: empty value"],
  ])("refuses %j", async (words, message) => {
    const { code, stderr, written } = await report(words);
    expect({ code, written: written.size }).toEqual({ code: 2, written: 0 });
    expect(stderr).toContain(message);
  });
});
