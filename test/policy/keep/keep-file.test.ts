import { describe, expect, test } from "bun:test";

import { keepFileHeader, parseKeepFile } from "../../../src/policy/keep/keep.ts";

const PATH = "/etc/crigc/keep.d/base.list";
const patterns = (text: string): readonly string[] =>
  parseKeepFile(text, PATH).rules.map(({ pattern }) => pattern);

test("each line is a pattern with its line number", () => {
  expect(parseKeepFile("# base\n\nnginx\n  redis:7  \n", PATH)).toEqual({
    rules: [
      { pattern: "nginx", source: `${PATH}:3` },
      { pattern: "redis:7", source: `${PATH}:4` },
    ],
    problems: [],
  });
});

test("a byte order mark, CRLF, a missing last newline and comments after patterns are accepted", () => {
  expect(patterns("\u{FEFF}nginx\r\nredis:7 # the cache\r\n\r\n\t# nothing\r\nbusybox")).toEqual([
    "nginx",
    "redis:7",
    "busybox",
  ]);
});

test("a file of comments alone is valid and keeps nothing", () => {
  expect(parseKeepFile("# write image names here\n", PATH)).toEqual({ rules: [], problems: [] });
});

describe("lists printed by installers are valid", () => {
  const lists = {
    kubeadm: [
      "registry.k8s.io/kube-apiserver:v1.34.1",
      "registry.k8s.io/coredns/coredns:v1.12.1",
      "registry.k8s.io/pause:3.10.1",
      "registry.k8s.io/etcd:3.6.4-0",
    ],
    k3s: [
      "docker.io/rancher/klipper-helm:v0.9.8-build20250709",
      "docker.io/rancher/mirrored-pause:3.6",
    ],
  };
  for (const [name, lines] of Object.entries(lists)) {
    test(name, () => {
      expect(parseKeepFile(`${lines.join("\n")}\n`, PATH).problems).toEqual([]);
      expect(patterns(`${lines.join("\n")}\n`)).toEqual(lines);
    });
  }
});

describe("a damaged file is a problem that names its place", () => {
  test("0 bytes", () => {
    expect(parseKeepFile("", PATH).problems).toEqual([
      { source: PATH, message: expect.stringContaining("0 bytes") },
    ]);
    expect(parseKeepFile("\u{FEFF}", PATH).problems).toHaveLength(1);
  });

  test("a block of NUL bytes, as a crash leaves it", () => {
    const { rules, problems } = parseKeepFile(`nginx\n${"\u0000".repeat(4096)}`, PATH);
    expect(rules).toHaveLength(1);
    expect(problems).toEqual([{ source: `${PATH}:2`, message: expect.stringContaining("U+0000") }]);
  });

  test("a last line that ends in the middle of a name", () => {
    expect(parseKeepFile("nginx\nregistry.k8s.io/", PATH).problems[0]?.source).toBe(`${PATH}:2`);
    expect(parseKeepFile("nginx\napp@sha256:0123", PATH).problems[0]?.source).toBe(`${PATH}:2`);
  });

  test("two names on one line, and text that is not a list", () => {
    expect(parseKeepFile("nginx redis\n", PATH).problems).toHaveLength(1);
    expect(parseKeepFile("<html>\n<body>502</body>\n", PATH).problems).toHaveLength(2);
  });

  test("fewer patterns than its header declares", () => {
    const whole = `${keepFileHeader(3)}\na/x\na/y\na/z\n`;
    expect(parseKeepFile(whole, PATH).problems).toEqual([]);
    expect(parseKeepFile(`${whole}a/more\n`, PATH).problems).toEqual([]);
    expect(parseKeepFile(whole.slice(0, -4), PATH).problems).toEqual([
      { source: PATH, message: expect.stringContaining("truncated") },
    ]);
  });
});

test("a promise is a whole line, of as many patterns as its number says", () => {
  const none = ["a/x # crigc: 9 patterns or more", "# crigc: 9 patterns or more or less"];
  expect(parseKeepFile(none.join("\n"), PATH).problems).toEqual([]);
  expect(parseKeepFile(`${keepFileHeader(12)}\na/x\n`, PATH).problems).toHaveLength(1);
});

test("a line of a million blanks or comment signs is read at once", () => {
  const many = 1_000_000;
  for (const line of [`a${" ".repeat(many)}b`, `a${" #".repeat(many)}\u2028`, " ".repeat(many)]) {
    const startedAt = process.cpuUsage();
    parseKeepFile(`${line}\n`, PATH);
    expect(process.cpuUsage(startedAt).user).toBeLessThan(1_000_000);
  }
});
