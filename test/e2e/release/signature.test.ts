// Who has a release and the public key of its maker can tell, with OpenSSH or minisign alone, whether it is that release.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import { command, type CommandResult } from "../../support/containerd/command.ts";
import { put, scratch } from "../../support/scratch.ts";
import { run, top } from "./build.ts";

setDefaultTimeout(60_000);

const folder = scratch();
const release = `${folder}/release`;
const keys = { ssh: `${folder}/ssh`, minisign: `${folder}/minisign.key` } as const;

/** Makes a pair of each kind; the public halves are ssh.pub and minisign.pub. */
async function makeKeys(directory: string): Promise<void> {
  const [ssh, minisign] = [`${directory}/ssh`, `${directory}/minisign`];
  await command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ssh);
  await command("minisign", "-G", "-W", "-f", "-s", `${minisign}.key`, "-p", `${minisign}.pub`);
}

beforeAll(async () => {
  put(release, "crigc-linux-x64", "an executable");
  put(release, "LICENSE", "a licence");
  await command(
    "sh",
    "-ec",
    `cd '${release}' && sha256sum -- * > ../sums && mv ../sums SHA256SUMS`,
  );
  await makeKeys(folder);
  const signed = await run(`${top}/scripts/sign`, release, keys.ssh, keys.minisign);
  expect(signed).toMatchObject({
    exitCode: 0,
    stdout: "signed SHA256SUMS.sig\nsigned SHA256SUMS.minisig\n",
  });
});

/** The commands of the documentation, as a reader runs them on a node. */
const documented = (word: string): string => {
  const page = readFileSync(`${top}/docs/install.md`, "utf8");
  const block = [...page.matchAll(/```sh\n([^`]*)```/g)].find(([, text]) => text?.includes(word));
  return block?.[1] ?? `no block of docs/install.md has ${word}`;
};

/** Verifies a copy of the release, after a change to it. */
async function verified(word: string, change: (copy: string) => unknown): Promise<CommandResult> {
  const copy = `${scratch()}/copy`;
  cpSync(release, copy, { recursive: true });
  const [type, key] = readFileSync(`${keys.ssh}.pub`, "utf8").split(" ");
  writeFileSync(`${copy}/allowed_signers`, `crigc ${type} ${key}\n`);
  cpSync(`${folder}/minisign.pub`, `${copy}/crigc.pub`);
  await change(copy);
  return await run("sh", "-ec", `cd '${copy}'\n${documented(word)}`);
}

describe.each([
  ["ssh-keygen -Y verify", "SHA256SUMS.sig"],
  ["minisign -V", "SHA256SUMS.minisig"],
])("%s, as documented", (word, signature) => {
  test("accepts the release as it was signed", async () => {
    const { exitCode, stdout, stderr } = await verified(word, () => undefined);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toContain("crigc-linux-x64: OK");
  });

  test.each<[string, (copy: string) => unknown]>([
    ["a changed file", (copy) => writeFileSync(`${copy}/crigc-linux-x64`, "another executable")],
    [
      "a changed file whose sum was changed too",
      (copy) => {
        writeFileSync(`${copy}/crigc-linux-x64`, "another executable");
        const sums = readFileSync(`${copy}/SHA256SUMS`, "utf8");
        const sum = new Bun.CryptoHasher("sha256").update("another executable").digest("hex");
        writeFileSync(`${copy}/SHA256SUMS`, sums.replace(/[0-9a-f]{64}(?= {2}crigc)/, sum));
      },
    ],
    ["a missing signature", (copy) => rmSync(`${copy}/${signature}`)],
    [
      "a signature by another key",
      async (copy) => {
        const other = scratch();
        await makeKeys(other);
        const moved = `${other}/moved`;
        cpSync(release, moved, { recursive: true });
        await command(`${top}/scripts/sign`, moved, `${other}/ssh`, `${other}/minisign.key`);
        cpSync(`${moved}/${signature}`, `${copy}/${signature}`);
      },
    ],
  ])("refuses %s", async (_, change) => {
    const { exitCode } = await verified(word, change);
    expect(exitCode).not.toBe(0);
  });
});

test("a signature of OpenSSH for another purpose is refused", async () => {
  const { exitCode } = await verified("ssh-keygen -Y verify", async (copy) => {
    rmSync(`${copy}/SHA256SUMS.sig`);
    const sign = ["ssh-keygen", "-q", "-Y", "sign", "-f", keys.ssh, "-n", "file"];
    await command(...sign, `${copy}/SHA256SUMS`);
  });
  expect(exitCode).not.toBe(0);
});

const untouched = () => undefined;

test.each<[string, string, string, (copy: string) => unknown]>([
  ["of a changed file", "ssh", "differs from SHA256SUMS", (copy) => put(copy, "LICENSE", "other")],
  ["of no release", "ssh", "is not a release", (copy) => rmSync(`${copy}/SHA256SUMS`)],
  ["with no key", "release/LICENSE", "neither a key of OpenSSH nor of minisign", untouched],
  ["with a key that is missing", "absent", "cannot read the key", untouched],
])("scripts/sign makes no signature %s", async (_, key, said, change) => {
  const copy = `${scratch()}/copy`;
  cpSync(release, copy, { recursive: true });
  for (const name of ["SHA256SUMS.sig", "SHA256SUMS.minisig"]) rmSync(`${copy}/${name}`);
  change(copy);
  const { exitCode, stderr } = await run(`${top}/scripts/sign`, copy, `${folder}/${key}`);
  expect(exitCode).toBe(1);
  expect(stderr).toContain(said);
  expect(await Bun.file(`${copy}/SHA256SUMS.sig`).exists()).toBe(false);
});
