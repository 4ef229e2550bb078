// What a release consists of: sums, archives, libraries, licences, and the same bytes from the same sources.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";

import packaged from "../../../package.json" with { type: "json" };
import { command, type CommandResult, tryCommand } from "../../support/containerd/command.ts";
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
  test("has an executable and an archive for each target, two images, their index, packages for two processors, a kustomize base, licences, the bill of materials, the script for images, the provenance and sums, and nothing else", () => {
    expect(readdirSync(folder).toSorted()).toEqual(
      [
        ...targets.map((target) => `crigc-linux-${target}`),
        ...targets.map((target) => `crigc-${version}-linux-${target}.tar.gz`),
        "crigc-linux-arm64.oci.tar",
        "crigc-linux-x64.oci.tar",
        `crigc-${version}-kustomize.tar.gz`,
        `crigc-${version}.oci.tar`,
        `crigc_${version}_amd64.deb`,
        `crigc_${version}_arm64.deb`,
        `crigc-${version}-1.x86_64.rpm`,
        `crigc-${version}-1.aarch64.rpm`,
        `crigc-${version}-x86-64.sysext.raw`,
        `crigc-${version}-arm64.sysext.raw`,
        "LICENSE",
        "SHA256SUMS",
        "THIRD-PARTY-LICENSES.txt",
        "crigc.cdx.json",
        "crigc.provenance.json",
        "node-image",
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

  test.each([
    ["--licenses", "THIRD-PARTY-LICENSES.txt"],
    ["--sbom", "crigc.cdx.json"],
  ])("version %s prints what %s contains", async (option, file) => {
    const { stdout } = await run(...(await starting("x64")), "version", option);
    expect(stdout).toBe(readFileSync(`${folder}/${file}`, "utf8"));
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

test("its provenance names every file, the commit, the lock file, each runtime and the commands", () => {
  const statement = JSON.parse(readFileSync(`${folder}/crigc.provenance.json`, "utf8"));
  expect(statement).toMatchObject({
    _type: "https://in-toto.io/Statement/v1",
    predicateType: "https://slsa.dev/provenance/v1",
  });
  const sums = new Map(sumsIn(folder));
  sums.delete("crigc.provenance.json");
  const subjects: readonly { name: string; digest: { sha256: string } }[] = statement.subject;
  expect(new Map(subjects.map(({ name, digest }) => [name, digest.sha256]))).toEqual(sums);
  const { buildDefinition, runDetails } = statement.predicate;
  expect(buildDefinition).toMatchObject({
    buildType: `${packaged.homepage}/scripts/release`,
    externalParameters: { source: packaged.homepage, version, commit },
  });
  expect(buildDefinition.internalParameters.commands).toHaveLength(1 + targets.length);
  expect(buildDefinition.resolvedDependencies.map(({ name }: { name: string }) => name)).toEqual([
    "sources",
    "bun.lock",
    "package.json",
    "scripts/setup.d/c-library",
    ...targets.map((target) => `bun-linux-${target.replace("arm64", "aarch64")}`).toSorted(),
  ]);
  expect(buildDefinition.resolvedDependencies[0].digest).toEqual({ gitCommit: commit });
  expect(runDetails.builder.id).toBe(`${packaged.homepage}/scripts/release`);
});

describe("release --verify", () => {
  const verify = (
    script: readonly string[],
    release: string,
    from = commit,
  ): Promise<CommandResult> =>
    tryCommand(["env", `CRIGC_COMMIT=${from}`, ...script, "--verify", release]);

  // One rebuild shows both: what was forged is found, and all else has the same bytes.
  test("finds in a copy of the sources elsewhere, under another umask, locale and time zone, the one file that was forged with its sum, and no other", async () => {
    const sources = `${work}/elsewhere/and/deeper`;
    await copySources(sources);
    const forged = `${work}/forged`;
    await command(
      "sh",
      "-ec",
      `cp -a --reflink=auto '${folder}' '${forged}' && cd '${forged}'
       echo forged >> node-image && sha256sum -- [!S]* > SHA256SUMS`,
    );
    // Nor does it matter who builds, and where.
    const strange = `umask 077; LC_ALL=C.UTF-8 TZ=Asia/Tokyo exec '${sources}/scripts/release' "$@"`;
    const { exitCode, stderr } = await verify(["sh", "-ec", strange, "sh"], forged);
    expect(stderr).toContain(`not what the sources of ${commit} give: node-image\n`);
    expect(exitCode).toBe(1);
    const trace = await run("grep", "--count", "--fixed-strings", top, `${folder}/crigc-linux-x64`);
    expect(trace.stdout.trim()).toBe("0");
  });

  test.each<[string, string, (copy: string) => unknown, string?]>([
    ["a changed file", "differs from SHA256SUMS", (copy) => writeFileSync(`${copy}/LICENSE`, "")],
    [
      "a file without a sum",
      "SHA256SUMS does not name: new",
      (copy) => writeFileSync(`${copy}/new`, ""),
    ],
    ["a release of another commit", "check out 0123456789", () => undefined, "f".repeat(40)],
    [
      "a release without provenance",
      "no readable crigc.provenance.json",
      (copy) =>
        command("sh", "-ec", `cd '${copy}' && rm crigc.p* && sed -i /provenance/d SHA256SUMS`),
    ],
  ])("refuses %s before it builds anything", async (name, said, change, from = commit) => {
    const copy = `${work}/${name}`;
    // As large as a release need be to be refused.
    await command(
      "sh",
      "-ec",
      `mkdir '${copy}' && cd '${copy}' && cp '${folder}/LICENSE' '${folder}/crigc.provenance.json' .
       sha256sum -- [!S]* > SHA256SUMS`,
    );
    await change(copy);
    const { exitCode, stderr } = await verify([`${top}/scripts/release`], copy, from);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining(said) });
  });
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
