// crigc keep missing: what it prints, which archive it names, and the command for each runtime.

import { describe, expect, test } from "bun:test";

import { HostError } from "../../../src/model/errors.ts";
import type { Image } from "../../../src/model/snapshot.ts";
import { parseKeepFile } from "../../../src/policy/keep/keep.ts";
import { anImage, aSnapshot } from "../../support/build/values.ts";
import { openNodeOf } from "../open-node.ts";
import { crigc } from "../world.ts";

const app = anImage("app");
const [tag = ""] = app.repoTags;
const LIST = "/etc/crigc/keep.d/baseline.list";
const archives: Readonly<
  Record<string, { readonly id: string; readonly names: readonly string[] }>
> = {
  "/stick/a\n.tar": { id: app.id, names: [] },
  "-rf.tar": { id: app.id, names: [] },
  "/stick/newer.tar": { id: anImage("newer").id, names: [tag] },
  "/stick/the app.tar.gz": { id: app.id, names: [] },
};

interface Given {
  readonly images?: readonly Image[];
  readonly text?: string;
  readonly name?: string;
  readonly endpoint?: string;
  readonly isRke2?: boolean;
}

function missing(given: Given = {}, ...words: readonly string[]) {
  const text = given.text ?? `${app.id} # crigc: pinned\n${tag}\n`;
  const { node } = openNodeOf({
    snapshot: {
      images: given.images ?? [],
      keep: { directoriesRead: [], ...parseKeepFile(text, LIST) },
      runtime: {
        ...aSnapshot().runtime,
        name: given.name ?? "containerd",
        endpoint: given.endpoint ?? "unix:///run/containerd/containerd.sock",
      },
    },
  });
  const directory = () =>
    ({ kind: given.isRke2 === true ? "present" : "absent", creatable: true }) as never;
  return crigc(["keep", "missing", ...words], {
    open: {
      node,
      machine: () => ({ directory }) as never,
      filesIn: (path) => {
        if (path === "/nowhere") throw new HostError("read", "cannot read /nowhere");
        return path === "/stick"
          ? ["/stick/newer.tar", "/stick/the app.tar.gz", "/stick/torn.tar"]
          : [path];
      },
      archivedImages: async (path) => {
        const found = archives[path];
        if (found === undefined) throw new HostError("parse", `${path} is no archive`);
        return [found];
      },
    },
  });
}

describe("keep missing", () => {
  test("never lets an archive's name be an option of the command", async () => {
    const { stdout } = await missing({}, "--from=-rf.tar");
    expect(stdout).toContain("images import ./-rf.tar\n");
    const broken = await missing({}, "--from=/stick/a\n.tar");
    expect(broken.stdout).toContain("images import ARCHIVE\n");
  });

  test.each<[string, number, Given]>([
    ["everything is there", 0, { images: [{ ...app, pinned: true }] }],
    ["there is no baseline", 0, { text: "# none\n" }],
    ["an image is missing, with how to bring it back", 8, {}],
    ["an image lost its pin, with how to pin it on containerd", 8, { images: [app] }],
    ["an image lost its pin, on CRI-O", 8, { images: [app], name: "cri-o" }],
  ])("says that %s, and exits %d", async (_, code, given) => {
    const { stdout, ...ran } = await missing(given);
    expect(ran).toEqual({ code, stderr: "" });
    expect(stdout).toMatchSnapshot();
  });

  test("names the archives of a directory that have it, the one with its ID first, and reports unreadable ones", async () => {
    const words = ["--from", "/stick", "/nowhere", "-o", "json"];
    const { code, stdout, stderr } = await missing({}, ...words);
    expect(code).toBe(8);
    expect(stdout).toMatchSnapshot();
    expect(stderr.split("\n").toSorted()).toEqual([
      "",
      "crigc: warning: /stick/torn.tar is no archive",
      "crigc: warning: cannot read /nowhere",
    ]);
  });

  test("knows the runtime's own tool to import an archive", async () => {
    const k3s = "unix:///run/k3s/containerd/containerd.sock";
    const given: readonly Given[] = [
      { endpoint: k3s },
      { endpoint: k3s, isRke2: true },
      { endpoint: "unix:///var/snap/microk8s/common/run/containerd.sock" },
      { endpoint: "unix:///run/k0s/containerd.sock" },
      { endpoint: "unix:///tmp/c.sock" },
      { name: "cri-o" },
      { name: "docker" },
    ];
    const tools: string[] = [];
    for (const it of given) {
      const [, command] = /\n {2}(.* ARCHIVE)\n/.exec((await missing(it)).stdout) ?? [];
      tools.push(`${JSON.stringify(it)}: ${command}`);
    }
    expect(tools.join("\n")).toMatchSnapshot();
  });

  test("prints names and IDs alone, and exits 2 for invalid keep rules", async () => {
    expect((await missing({}, "-o", "name")).stdout).toBe(`${tag}\n`);
    expect((await missing({}, "-q")).stdout).toBe(`${app.id}\n`);
    expect(await missing({ text: "a b\n" })).toMatchObject({ code: 2, stdout: "" });
    expect(await missing({}, "/stick")).toMatchObject({ code: 2, stdout: "" });
  });
});
