// The completion scripts work in the shells that they are for, and the manual page is good roff.

import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { commands } from "../../../src/cli/dispatch.ts";
import { manualPage } from "../../../src/cli/help/help.ts";
import { SHELL_FILES } from "../../../src/install/install.ts";
import { program, runProgram } from "../../support/program.ts";
import { put, scratch } from "../../support/scratch.ts";

const folder = scratch();
const script = (name: string): string => join(folder, name);
const files = join(folder, "files");
const MANUAL = manualPage(commands, { version: "1.2.3", commit: "" });

beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"])
    writeFileSync(script(shell), (await runProgram(["completion", shell])).stdout);
  symlinkSync(program, join(folder, "crigc"));
  put(files, "folder/nothing");
  put(files, "file.yaml");
});

function run(argv: readonly string[], stdin = ""): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...argv], {
    stdin: Buffer.from(stdin),
    env: { ...process.env, HOME: folder, PATH: `${folder}:/usr/bin:/bin` },
  });
  if (exitCode !== 0 || stderr.length > 0)
    throw new Error(`${argv.join(" ")}: ${exitCode} ${stderr.toString()}`);
  return stdout.toString();
}

/** The line before the cursor, and what is proposed, in the order of names. */
const CASES: readonly (readonly [string, string])[] = [
  ["crigc ho", "hold"],
  ["crigc keep b", "baseline"],
  ["crigc print ", "cloud-config config daemonset openrc prometheus-rules systemd-unit"],
  ["crigc help pri", "print"],
  ["crigc print c", "cloud-config config"],
  ["crigc help fla", "flags"],
  ["crigc completion ", "bash fish zsh"],
  ["crigc --compat ", "kubelet none"],
  ["crigc --compat k", "kubelet"],
  [
    "crigc gc --imag",
    "--image-gc-high-threshold --image-gc-low-threshold --image-gc-period --image-maximum-gc-age --image-minimum-gc-age --image-service-endpoint --image-store-budget --images --image-cache-period --image-detection-period",
  ],
  ["crigc hold --rea", "--reason"],
  ["crigc gc --rea", ""],
  ["crigc gc -o j", "json"],
  ["crigc history --kind s", "sandbox"],
  ["crigc --keep keep ho", "hold"],
  ["crigc -v 3 keep li", "list"],
  ["crigc --keep-per-repository ", ""],
  ["crigc __", ""],
];

const sorted = (words: readonly string[]): string => words.toSorted().join(" ");

/** Those of a completed line, by shell. */
const PROPOSALS = {
  bash: (line: string): readonly string[] =>
    run(["bash", "--norc", join(import.meta.dir, "type.bash"), script("bash")], `${line}\n`)
      .trim()
      .split(/\s+/),
  fish: (line: string): readonly string[] =>
    run(["fish", "--no-config", "-c", `source ${script("fish")}; complete -C '${line}'`])
      .trim()
      .split("\n")
      .map((it) => it.split("\t")[0] ?? ""),
};
const ofBash = [
  ["crigc --compat=k", "kubelet"] as const,
  ["crigc --compat=", "kubelet none"] as const,
];

describe.each([
  ["bash", [...CASES, ...ofBash], `${files}/folder`],
  ["fish", CASES, `${files}/folder/`],
] as const)("%s", (shell, cases, folderProposed) => {
  const proposals = (line: string): string => sorted(PROPOSALS[shell](line));

  test.each(cases)("the line %s is completed with %j", (line, wanted) => {
    expect(proposals(line)).toBe(sorted(wanted.split(" ")));
  });

  test("paths are completed after a flag that takes one", () => {
    expect(proposals(`crigc --config ${files}/f`)).toBe(`${files}/file.yaml ${folderProposed}`);
    expect(proposals(`crigc --state-dir ${files}/f`)).toBe(folderProposed);
  });
});

test("a bash behind a terminal completes the name of an image at the tab key, and its word breaks are left alone", () => {
  const completes = "printf 'r.example:5000/app:1.2\\thelp\\n'";
  const stub = `#!/bin/sh\nif [ "$1" = __complete ]; then ${completes}; else printf '<%s>' "$@" >>${folder}/ran; fi\n`;
  chmodSync(put(folder, "stub/crigc", stub), 0o755);
  const start = put(folder, "bashrc", `PATH=${folder}/stub:$PATH; source ${script("bash")}\n`);
  const typed = ["r.exa", "r.example:", "r.example:5000/app:1"].map((it) => `crigc rm ${it}\t\n`);
  run(
    ["script", "-qec", `bash --noprofile --rcfile ${start} -i`, "/dev/null"],
    `${typed.join("")}exit\n`,
  );
  expect(readFileSync(join(folder, "ran"), "utf8")).toBe("<rm><r.example:5000/app:1.2>".repeat(3));
  expect(readFileSync(script("bash"), "utf8")).not.toContain("COMP_WORDBREAKS");
});

test("zsh completes typed words", () => {
  const typed: readonly (readonly [string, string])[] = [
    ["crigc ho", "crigc hold "],
    ["crigc keep li", "crigc keep list "],
    ["crigc --compat k", "crigc --compat kubelet "],
    ["crigc --compat=k", "crigc --compat=kubelet "],
    ["crigc hold --rea", "crigc hold --reason "],
    ["crigc gc --rea", "crigc gc --rea"],
    ["crigc gc -o j", "crigc gc -o json "],
    ["crigc --keep keep ho", "crigc --keep keep hold "],
    ["crigc --keep-per-r", "crigc --keep-per-repository "],
    [`crigc --config ${files}/fi`, `crigc --config ${files}/file.yaml `],
    [`crigc --state-dir ${files}/f`, `crigc --state-dir ${files}/folder/`],
  ];
  const out = run(
    ["zsh", "-f", join(import.meta.dir, "type.zsh"), script("zsh"), folder],
    `${typed.map(([line]) => line).join("\n")}\n`,
  );
  expect(out.split("\n").slice(0, -1)).toEqual(typed.map(([, line]) => line));
}, 30_000);

test("fish, zsh and man look where crigc install installs for them", () => {
  const places = SHELL_FILES;
  const ofFish = run(["fish", "-c", 'printf "%s\\n" $fish_complete_path']).split("\n");
  expect(ofFish).toContain(dirname(places.fish));
  const ofZsh = run(["zsh", "-f", "-c", "print -l $fpath"]).split("\n");
  expect(ofZsh).toContain(dirname(places.zsh));
  expect(places.man).toEndWith("/share/man/man8/crigc.8");
  const page = put(folder, "man/man8/crigc.8", MANUAL);
  expect(run(["man", "-M", join(folder, "man"), "--where", "crigc"]).trim()).toBe(page);
  expect(run(["manpath", "-g"]).trim().split(":")).toContain("/usr/local/share/man");
});

test("groff renders the manual page without warnings and completely", () => {
  const drawn = run(["groff", "-man", "-Tutf8", "-ww", "-rLL=100n"], MANUAL);
  const text = drawn.replaceAll(/.\u0008/g, "");
  for (const part of [
    "NAME",
    "COMMANDS",
    "--image-gc-high-threshold PERCENT",
    "CRIGC_KEEP_PER_REPOSITORY",
    "EXIT STATUS",
    "/etc/crigc/keep.d",
  ])
    expect(text).toContain(part);
});
