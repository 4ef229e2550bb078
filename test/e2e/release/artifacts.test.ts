// What a release consists of: sums, archives, libraries, licences, and the same bytes from the same sources.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";

import packaged from "../../../package.json" with { type: "json" };
import { command } from "../../support/containerd/command.ts";
import { scratch } from "../../support/scratch.ts";
import { commit, released, run, starting, targets, top } from "./build.ts";

setDefaultTimeout(300_000);

const { version } = packaged;

const work = scratch();
let folder: string;

beforeAll(async () => {
  folder = await released();
});

const sumsIn = (path: string): ReadonlyMap<string, string> =>
  new Map(
    readFileSync(`${path}/SHA256SUMS`, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => [line.slice(66), line.slice(0, 64)]),
  );

describe("a release", () => {
  test("has an executable and an archive for each target, an image for each of two processors, licences, SBOM and sums, and nothing else", () => {
    expect(readdirSync(folder).toSorted()).toEqual(
      [
        ...targets.map((target) => `crigc-linux-${target}`),
        ...targets.map((target) => `crigc-${version}-linux-${target}.tar.gz`),
        "crigc-linux-arm64.oci.tar",
        "crigc-linux-x64.oci.tar",
        "LICENSE",
        "SHA256SUMS",
        "THIRD-PARTY-LICENSES.txt",
        "crigc.cdx.json",
      ].toSorted(),
    );
  });

  test("has matching sums of every file", async () => {
    expect([...sumsIn(folder).keys()].toSorted()).toEqual(
      readdirSync(folder)
        .filter((name) => name !== "SHA256SUMS")
        .toSorted(),
    );
    const check = await run("sh", "-c", `cd '${folder}' && sha256sum -c --quiet SHA256SUMS`);
    expect(check).toMatchObject({ exitCode: 0 });
  });

  test.each([...targets])(
    "has the executable of %s and the licences in its archive",
    async (target) => {
      const name = `crigc-${version}-linux-${target}`;
      await command("tar", "-xzf", `${folder}/${name}.tar.gz`, "-C", work);
      expect(readdirSync(`${work}/${name}`).toSorted()).toEqual([
        "LICENSE",
        "THIRD-PARTY-LICENSES.txt",
        "crigc",
        "crigc.cdx.json",
      ]);
      const sum = (await command("sha256sum", `${work}/${name}/crigc`)).slice(0, 64);
      expect(sum).toBe(sumsIn(folder).get(`crigc-linux-${target}`) ?? "");
      expect(statSync(`${work}/${name}/crigc`).mode & 0o777).toBe(0o755);
    },
  );

  test("has the licences that version --licenses prints", async () => {
    const { stdout } = await run(...(await starting("x64")), "version", "--licenses");
    expect(stdout).toBe(readFileSync(`${folder}/THIRD-PARTY-LICENSES.txt`, "utf8"));
  });
});

const glibc = ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"];

test.each<[string, readonly string[], boolean]>([
  ["x64", [...glibc, "ld-linux-x86-64.so.2"], true],
  ["x64-baseline", [...glibc, "ld-linux-x86-64.so.2"], true],
  ["arm64", [...glibc, "ld-linux-aarch64.so.1"], true],
  ["x64-musl", ["libc.musl-x86_64.so.1", "libstdc++.so.6"], false],
  ["arm64-musl", ["libc.musl-aarch64.so.1", "libstdc++.so.6"], false],
])(
  "%s needs these libraries and no others, and of glibc none newer than 2.17: %p",
  async (target, libraries, onGlibc) => {
    const executable = `${folder}/crigc-linux-${target}`;
    const dynamic = await command("readelf", "-dW", executable);
    const needed = [...dynamic.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name = ""]) => name);
    expect(needed.toSorted()).toEqual(libraries.toSorted());
    const versions = await command("readelf", "-VW", executable);
    const asked = [...versions.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
    if (onGlibc) expect(Math.max(...asked)).toBe(17);
  },
);

test("the same sources elsewhere, under another umask, locale and time zone, give the same bytes, without a path of the build", async () => {
  const sources = `${work}/elsewhere/and/deeper`;
  await copySources(sources);
  const strange = `umask 077; LC_ALL=C.UTF-8 TZ=Asia/Tokyo exec '${sources}/scripts/release' '${work}/again'`;
  await command("env", `CRIGC_COMMIT=${commit}`, "sh", "-ec", strange);
  expect(sumsIn(`${work}/again`)).toEqual(sumsIn(folder));
  const trace = await run("grep", "--count", "--fixed-strings", top, `${folder}/crigc-linux-x64`);
  expect(trace.stdout.trim()).toBe("0");
});

/** What git would commit, with the modes of a narrow mask, and what scripts/setup has fetched. */
async function copySources(to: string): Promise<void> {
  const sources = "git ls-files -z --cached --others --exclude-standard";
  await command(
    "sh",
    "-ec",
    `cd '${top}' && mkdir -p '${to}/.cache'
     ${sources} | xargs -0 ls -d 2>/dev/null | tar -T - -cf - | tar -xf - -C '${to}'
     chmod -R go= '${to}'
     cp -a node_modules '${to}/' && cp -a .cache/runtimes .cache/c-library '${to}/.cache/'`,
  );
}
