// What a command beside a running agent takes from it.

import { expect, test } from "bun:test";
import { symlinkSync } from "node:fs";

import type { Openers } from "../../src/agent/openers.ts";
import { HostError } from "../../src/model/errors.ts";
import { hours } from "../../src/model/time.ts";
import { FILE, ours } from "../config/loading.ts";
import { scratch } from "../support/scratch.ts";
import { crigc } from "./world.ts";

const status = {
  values: {
    imageGCHighThresholdPercent: { value: 80, source: "flag" },
    imageGCLowThresholdPercent: { value: 72, source: "flag" },
    imageMinimumGCAge: { value: "2m", source: "default" },
    evictionHard: { value: { "imagefs.available": "20%" }, source: "kubelet" },
    keep: { value: ["app/**"], source: "drop-in" },
    maxImages: { value: null, source: "file" },
    dryRun: { value: true, source: "flag" },
    "logging.verbosity": { value: 5, source: "flag" },
    aFieldOfTomorrow: { value: 1, source: "flag" },
  },
};
const answering = (text: string): Pick<Openers, "askAgent"> => ({ askAgent: async () => text });

async function config(
  flags: readonly string[] = [],
  around: {
    readonly open?: Partial<Openers>;
    readonly file?: string;
    readonly files?: Readonly<Record<string, string>>;
  } = {},
) {
  const ran = await crigc(["config", "-o", "json", ...flags], {
    open: { ...answering(JSON.stringify(status)), ...around.open },
    files: {
      ...around.files,
      [FILE]: ours(around.file ?? "maxImages: 7\nimageMinimumGCAge: 1h\n"),
    },
  });
  expect(ran.code).toBe(0);
  const { values } = JSON.parse(ran.stdout);
  const named = Object.entries(values as Readonly<Record<string, { source: string }>>);
  const set = named.filter(([, { source }]) => source !== "default");
  return {
    values,
    set: set.map(([name, it]) => `${name}: ${JSON.stringify(it)}`),
    stderr: ran.stderr,
  };
}

test("the running agent's values replace those of files, and name the agent as their source", async () => {
  const { values, set, stderr } = await config();
  expect(set.join("\n")).toMatchSnapshot();
  // Settings of the agent's process alone.
  expect([values.dryRun.value, values["logging.verbosity"].value]).toEqual([false, 2]);
  expect(stderr).toBe("");
});

test("a flag wins over the running agent, with a note if the two differ", async () => {
  // Below the default low threshold, and above the agent's.
  const words = ["--image-gc-high-threshold=75", "--keep=db"];
  const { set, stderr } = await config(words);
  expect([...set, stderr].join("\n")).toMatchSnapshot();
});

test("what --compat kubelet of the agent implies ends with another --compat of the command", async () => {
  const agents = { collectForeign: true, whenFutile: "collect", maxStopGracePeriod: "24h" };
  const told = Object.entries({ compat: "kubelet", ...agents, bootGrace: "0s" });
  const values = Object.fromEntries(told.map(([name, value]) => [name, { value, source: "flag" }]));
  const open = answering(JSON.stringify({ values }));
  const of = async (...flags: readonly string[]) => {
    const { values: found } = await config(flags, { open });
    return Object.keys(agents).map((name) => found[name].value);
  };
  expect(await of()).toEqual(Object.values(agents));
  expect(await of("--compat=none")).toEqual([false, "keep", "30s"]);
});

test("the running agent's values replace those of a file that only the command names, with a note", async () => {
  const { values, stderr } = await config(["--config=/etc/other.yaml"], {
    files: { "/etc/other.yaml": ours("maxImages: 3\n") },
  });
  expect(values.maxImages).toMatchObject({ value: null, source: "agent" });
  expect(stderr).toBe(
    "crigc: warning: the settings of the running agent replace those of /etc/other.yaml, named by --config\n",
  );
  expect((await config([`--config=${FILE}`])).stderr).toBe("");
});

const failing = (message: string, code?: string): Pick<Openers, "askAgent"> => ({
  askAgent: async () => {
    throw new HostError("http", message, { cause: Object.assign(new Error("cause"), { code }) });
  },
});

test.each<[string, Partial<Openers>, RegExp]>([
  ["that does not answer in time", failing("no answer within 2000 ms"), /no answer within 2000 ms/],
  ["whose answer is not JSON", answering("<html>"), /not JSON/],
  [
    "that this user may not ask",
    failing("cannot reach the agent: permission denied", "EACCES"),
    /note: cannot reach the agent: permission denied; using this command's own configuration/,
  ],
  ["that does not run, silently", failing("no agent runs here", "ENOENT"), /^$/],
  ...[
    ["maxImages", "many"],
    ["evictionHard", null],
  ].map(([name, value]): [string, Partial<Openers>, RegExp] => [
    `whose ${name} this version refuses`,
    answering(
      JSON.stringify({ values: { ...status.values, [`${name}`]: { value, source: "flag" } } }),
    ),
    new RegExp(`that of the running agent is invalid in this version: ${name}`),
  ]),
])("an agent %s: the command uses its own configuration, and says why", async (_, open, words) => {
  const { values, stderr } = await config([], { open });
  expect(values.maxImages).toMatchObject({ value: 7, source: "file" });
  expect(stderr).toMatch(words);
});

const serving = (endpoint: string, told: string | null) => ({
  runtime: { endpoint },
  values: { ...status.values, containerRuntimeEndpoint: { value: told, source: "flag" } },
});
const high = "imageGCHighThresholdPercent";

test.each([
  ["was told another one", serving("unix:///run/a.sock", "unix:///run/a.sock")],
  ["was told another one that does not answer", { ...serving("", "/run/a.sock"), runtime: null }],
])("an agent that %s than the given runtime is ignored with a note", async (_, theirs) => {
  const { values, stderr } = await config(["--container-runtime-endpoint=/run/b.sock"], {
    open: answering(JSON.stringify(theirs)),
  });
  expect(values[high]).toMatchObject({ value: 85, source: "default" });
  expect(stderr).toContain("the running agent serves");
  expect(stderr).toContain("/run/a.sock; using the configuration of this command");
});

test("an agent whose socket is named by another link to it is that of the given runtime", async () => {
  const directory = scratch();
  symlinkSync(directory, `${directory}/link`);
  const theirs = serving(`unix://${directory}/a.sock`, `unix://${directory}/a.sock`);
  const open = answering(JSON.stringify(theirs));
  const flag = `--container-runtime-endpoint=${directory}/link/a.sock`;
  const { values, stderr } = await config([flag], { open });
  expect(values[high]).toMatchObject({ value: 80, source: "agent" });
  expect(stderr).not.toContain("the running agent serves");
});

test("an agent with another root directory gives its values without its credentials and hooks", async () => {
  const of = (value: string) => ({ value, source: "environment" });
  const theirs = {
    rootDirectoryId: "9:9",
    values: {
      ...status.values,
      kubeletEndpoint: of("https://node:10250"),
      kubeletTokenFile: of("/var/run/secrets/token"),
      eventHook: of("/opt/hook"),
      stateDir: of("/data/crigc"),
    },
  };
  const open = { ...answering(JSON.stringify(theirs)), rootDirectoryId: () => "1:2" };
  const contained = await config([], { open, file: "podSource: kubelet-dir\n" });
  expect(contained.set.join("\n")).toMatchSnapshot();
  expect(contained.stderr).toContain(
    "this command uses its own kubeletEndpoint, kubeletTokenFile, eventHook",
  );
  const same = await config([], { open: { ...open, rootDirectoryId: () => "9:9" } });
  expect(same.values.kubeletTokenFile).toMatchObject({ value: "/var/run/secrets/token" });
  expect(same.stderr).toBe("");
});

test("a command tells boots apart as the agent does, which may have another /proc", async () => {
  const boot = { bootId: "f46efbc5-1b60-4aa5-9018-16e107e8949d", uptimeMs: 7_200_000 };
  const adopted: object[] = [];
  const adoptBoot: Openers["adoptBoot"] = (clocks) => void adopted.push(clocks);
  for (const theirs of [boot, {}])
    await config([], {
      open: { ...answering(JSON.stringify({ ...status, ...theirs })), adoptBoot },
    });
  expect(adopted).toEqual([{ bootId: boot.bootId, uptime: hours(2) }]);
});

test.each(["print config", `config --check=${FILE}`])(
  "%s does not query the agent",
  async (line) => {
    const files = { [FILE]: ours("") };
    const asked = failing("it was asked");
    expect(await crigc(line.split(" "), { open: asked, files })).toMatchObject({ stderr: "" });
  },
);
