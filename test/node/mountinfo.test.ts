import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";

import fc from "fast-check";

import { findMount, parseMount } from "../../src/node/disk.ts";

const root = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard";
const bind =
  "136 27 254:0 /var/lib/images /mnt/image\\040store rw shared:7 master:1 - ext4 /dev/vda rw";
const overlay = "140 27 0:52 / /run/c/rootfs rw - overlay overlay rw,lowerdir=/l\\072x,upperdir=/u";

describe("mountinfo", () => {
  test("a bind mount has its own mount point and the device below it", () => {
    expect(parseMount(bind)).toEqual({ device: "254:0", mountpoint: "/mnt/image store" });
  });

  test("an overlay has a device of its own", () => {
    expect(parseMount(overlay)).toMatchObject({ device: "0:52" });
  });

  test.each([
    "",
    "27",
    "27 1 / / / rw - ext4 /dev/vda rw",
    "27 1 254:0 / / rw,relatime",
    "x 1 254:0 / / rw - a b c",
  ])("%j is not a mount", (line) => {
    expect(parseMount(line)).toBeNull();
  });

  test("a mount is found by its full ID, on any line", () => {
    const text = `${root}\n${bind}\n${overlay}\n`;
    expect(findMount(text, 27)?.mountpoint).toBe("/");
    expect(findMount(text, 136)?.mountpoint).toBe("/mnt/image store");
    expect(findMount(text, 140)?.device).toBe("0:52");
    expect(findMount(text, 36)).toBeNull();
    expect(findMount(text, 1)).toBeNull();
    expect(findMount("", 1)).toBeNull();
  });

  test("every mount point is read back as the kernel wrote it", () => {
    const escaped = (path: string): string =>
      path.replace(/[ \t\n\\#]/g, (c) => `\\${c.charCodeAt(0).toString(8).padStart(3, "0")}`);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (name) => {
        const mountpoint = `/${name.replaceAll("\0", "")}`;
        const line = `1 2 3:4 / ${escaped(mountpoint)} rw shared:1 - tmpfs none rw`;
        expect(parseMount(line)?.mountpoint).toBe(mountpoint);
      }),
    );
  });

  test("every line of this machine's own table is understood", () => {
    const lines = readFileSync("/proc/self/mountinfo", "utf8").trimEnd().split("\n");
    expect(lines.filter((line) => parseMount(line) === null)).toEqual([]);
  });
});
