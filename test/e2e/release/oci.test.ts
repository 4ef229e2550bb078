// The image for DaemonSets: what is in it, that it is reproducible, and that a real containerd runs it as the printed manifest says.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";

import packaged from "../../../package.json" with { type: "json" };
import { library } from "../../support/containerd/archive.ts";
import { command, tryCommand } from "../../support/containerd/command.ts";
import type { ContainerMount, ContainerSecurity } from "../../support/containerd/cri.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { ctr, loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  containerStatus,
  execInContainer,
  type PodContainer,
  removePod,
  runPod,
  startContainer,
} from "../../support/containerd/pods.ts";
import { nodeFlags } from "../../support/containerd/program.ts";
import { until } from "../../support/containerd/until.ts";
import { released, run, top } from "./build.ts";

setDefaultTimeout(300_000);

let folder: string;
let scratch: string;

beforeAll(async () => {
  folder = await released();
  scratch = mkdtempSync(`${tmpdir()}/crigc-oci-`);
});

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

interface Layout {
  readonly directory: string;
  readonly index: { readonly manifests: readonly (Descriptor & Record<string, unknown>)[] };
  /** Of the one manifest, whose digest names the image. */
  readonly digest: string;
  readonly blob: (descriptor: Descriptor) => string;
}

const unpacked = (processor: string): Promise<Layout> =>
  unpackedOf(`crigc-linux-${processor}.oci.tar`);

async function unpackedOf(archive: string): Promise<Layout> {
  const directory = `${scratch}/${archive}.d`;
  mkdirSync(directory, { recursive: true });
  await command("tar", "-xf", `${folder}/${archive}`, "-C", directory);
  const index = JSON.parse(readFileSync(`${directory}/index.json`, "utf8")) as Layout["index"];
  const blob = ({ digest }: Descriptor): string => `${directory}/blobs/${digest.replace(":", "/")}`;
  return { directory, index, digest: index.manifests[0]?.digest ?? "", blob };
}

const { version } = packaged;

describe.each([
  ["x64", "amd64", "lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu"],
  ["arm64", "arm64", "lib/ld-linux-aarch64.so.1", "lib/aarch64-linux-gnu"],
])("the image for %s", (processor, architecture, loader, libraries) => {
  let layout: Layout;
  let manifest: { readonly config: Descriptor; readonly layers: readonly Descriptor[] };
  let layer: string;

  beforeAll(async () => {
    layout = await unpacked(processor);
    const [entry] = layout.index.manifests;
    manifest = JSON.parse(readFileSync(layout.blob(entry as Descriptor), "utf8"));
    layer = layout.blob(manifest.layers[0] as Descriptor);
  });

  test("is an OCI layout of one named image, whose blobs match their digests", async () => {
    expect(JSON.parse(readFileSync(`${layout.directory}/oci-layout`, "utf8"))).toEqual({
      imageLayoutVersion: "1.0.0",
    });
    expect(layout.index.manifests).toEqual([
      {
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
        size: expect.any(Number),
        platform: { architecture, os: "linux" },
        annotations: {
          "io.containerd.image.name": `localhost/crigc:${version}`,
          "org.opencontainers.image.ref.name": version,
        },
      },
    ]);
    const named = [...layout.index.manifests, manifest.config, ...manifest.layers];
    const blobs = readdirSync(`${layout.directory}/blobs/sha256`);
    expect(blobs.toSorted()).toEqual(named.map(({ digest }) => digest.slice(7)).toSorted());
    for (const descriptor of named) {
      const sum = (await command("sha256sum", layout.blob(descriptor))).slice(0, 64);
      expect(`sha256:${sum}`).toBe(descriptor.digest);
      expect(Bun.file(layout.blob(descriptor)).size).toBe(descriptor.size);
    }
  });

  test("runs /crigc run, and has the diff ID of its unpacked layer", async () => {
    const sum = await command("sh", "-c", `gunzip -c '${layer}' | sha256sum`);
    expect(JSON.parse(readFileSync(layout.blob(manifest.config), "utf8"))).toMatchObject({
      architecture,
      os: "linux",
      created: "1970-01-01T00:00:00Z",
      config: {
        Env: ["PATH=/"],
        Entrypoint: ["/crigc"],
        Cmd: ["run"],
        Labels: {
          "org.opencontainers.image.url": packaged.homepage,
          "org.opencontainers.image.licenses": "Apache-2.0",
        },
      },
      rootfs: { type: "layers", diff_ids: [`sha256:${sum.slice(0, 64)}`] },
    });
  });

  test("contains the executable, its libraries, their licences and nothing else", async () => {
    const dynamic = await command("readelf", "-dW", `${folder}/crigc-linux-${processor}`);
    const needed = [...dynamic.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name = ""]) => name);
    const linked = needed.filter((name) => !name.startsWith("ld-linux"));
    const listed = await command("tar", "-tzf", layer);
    expect(
      listed
        .trimEnd()
        .split("\n")
        .filter((name) => !name.endsWith("/"))
        .toSorted(),
    ).toEqual(
      [
        "crigc",
        loader,
        ...linked.map((name) => `${libraries}/${name}`),
        "usr/share/doc/crigc/LICENSE",
        "usr/share/doc/crigc/THIRD-PARTY-LICENSES.txt",
        "usr/share/doc/crigc/crigc.cdx.json",
        "usr/share/doc/libc6/copyright",
      ].toSorted(),
    );
    const inside = await command("sh", "-c", `tar -xzOf '${layer}' crigc | sha256sum`);
    const beside = await command("sha256sum", `${folder}/crigc-linux-${processor}`);
    expect(inside.slice(0, 64)).toBe(beside.slice(0, 64));
  });

  test("contains no time and no owner of the build machine", async () => {
    for (const archive of [layer, `${folder}/crigc-linux-${processor}.oci.tar`]) {
      const listed = await command("tar", "--full-time", "--numeric-owner", "-tvf", archive);
      const lines = listed.trimEnd().split("\n");
      expect(lines.filter((line) => !/ 0\/0 .* 1970-01-01 00:00:00 /.test(line))).toEqual([]);
    }
  });
});

describe("the index of both images", () => {
  const archive = `crigc-${version}.oci.tar`;
  let layout: Layout;
  const documentOf = (descriptor: unknown) =>
    JSON.parse(readFileSync(layout.blob(descriptor as Descriptor), "utf8"));

  beforeAll(async () => {
    layout = await unpackedOf(archive);
  });

  test("has the name, and for each processor the same image as the archive for that processor", async () => {
    const [index] = layout.index.manifests;
    expect(index).toMatchObject({
      mediaType: "application/vnd.oci.image.index.v1+json",
      annotations: {
        "io.containerd.image.name": `localhost/crigc:${version}`,
        "org.opencontainers.image.ref.name": version,
      },
    });
    const of = async (processor: string) => {
      const { manifests } = (await unpacked(processor)).index;
      const { annotations: _, ...image } = manifests[0] as Record<string, unknown>;
      return image;
    };
    const { manifests, annotations } = documentOf(index);
    expect(manifests).toEqual([await of("x64"), await of("arm64")]);
    expect(annotations["org.opencontainers.image.url"]).toBe(packaged.homepage);
  });

  test("has the bill of materials as its referrer", () => {
    const [index, referrer] = layout.index.manifests;
    const artifact = documentOf(referrer);
    expect(referrer?.["artifactType"]).toBe("application/vnd.cyclonedx+json");
    expect(artifact).toMatchObject({
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      artifactType: "application/vnd.cyclonedx+json",
      config: { mediaType: "application/vnd.oci.empty.v1+json", size: 2 },
      subject: { mediaType: index?.mediaType, digest: index?.digest, size: index?.size },
    });
    expect(readFileSync(layout.blob(artifact.layers[0]), "utf8")).toBe(
      readFileSync(`${folder}/crigc.cdx.json`, "utf8"),
    );
  });

  test("has every blob that it names, with matching digests, and no other", async () => {
    const named = new Map<string, Descriptor>();
    const visit = (descriptor: Descriptor): void => {
      named.set(descriptor.digest.slice(7), descriptor);
      if (!/(index|manifest)\.v1\+json$/.test(descriptor.mediaType)) return;
      const { manifests = [], config, layers = [] } = documentOf(descriptor);
      for (const child of [...manifests, ...layers, ...(config === undefined ? [] : [config])])
        visit(child);
    };
    for (const descriptor of layout.index.manifests) visit(descriptor);
    const blobs = readdirSync(`${layout.directory}/blobs/sha256`);
    expect(blobs.toSorted()).toEqual([...named.keys()].toSorted());
    for (const [digest, descriptor] of named) {
      expect(Bun.file(layout.blob(descriptor)).size).toBe(descriptor.size);
      expect(await command("sha256sum", layout.blob(descriptor))).toStartWith(digest);
    }
  });

  test("is the same as a folder, which is not overwritten", async () => {
    const join = (out: string) =>
      tryCommand([
        `${top}/scripts/oci-index`,
        `${folder}/crigc.cdx.json`,
        out,
        ...["x64", "arm64"].map((processor) => `${folder}/crigc-linux-${processor}.oci.tar`),
      ]);
    const out = `${scratch}/layout`;
    expect(await join(out)).toMatchObject({ exitCode: 0 });
    await command("diff", "-r", layout.directory, out);
    expect(await join(out)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("exists"),
    });
  });
});

test("the image is the same with another umask, locale, time zone and folder", async () => {
  mkdirSync(`${scratch}/elsewhere`);
  await command(
    "sh",
    "-ec",
    `umask 077; cp '${folder}/crigc-linux-x64' '${scratch}/elsewhere/copied'; cd /
     LC_ALL=C.UTF-8 TZ=Asia/Tokyo exec '${top}/scripts/oci-archive' '${scratch}/elsewhere/copied' x64 '${scratch}/elsewhere/again.tar'`,
  );
  const sums = await command(
    "sha256sum",
    `${scratch}/elsewhere/again.tar`,
    `${folder}/crigc-linux-x64.oci.tar`,
  );
  const [again, first] = sums.split("\n").map((line) => line.slice(0, 64));
  expect(again).toBe(first ?? "");
});

/** What is read of the printed manifest. */
interface PodSpec {
  readonly containers: readonly {
    readonly image: string;
    readonly command: readonly string[];
    readonly args: readonly string[];
    readonly env: readonly { readonly name: string; readonly value: string }[];
    readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
    readonly livenessProbe: { readonly exec: { readonly command: readonly string[] } };
    // oxlint-disable-next-line typescript/no-explicit-any -- the kubelet's words, handed on as CRI's
    readonly securityContext: any;
    readonly volumeMounts: readonly {
      readonly name: string;
      readonly mountPath: string;
      readonly readOnly?: boolean;
      readonly mountPropagation?: "HostToContainer";
    }[];
  }[];
  readonly volumes: readonly {
    readonly name: string;
    readonly hostPath: { readonly path: string; readonly type: string };
  }[];
}

const thresholds = ["--image-gc-high-threshold=50", "--image-gc-low-threshold=45"];

describe.each(["1.6", "1.7", "2.1"] as const)("on containerd %s", (release) => {
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  let node: ContainerdNode;
  let spec: PodSpec;
  let agent: PodContainer;
  let endPod: () => Promise<void>;

  beforeAll(async () => {
    node = await startNode(release, { disk: { sizeBytes: 1024 * mebibyte } });
    const { digest } = await unpackedOf(`crigc-${version}.oci.tar`);
    // As docs/kubernetes.md says.
    const own = { ...node, programs: { ...node.programs, ctr: node.programs.ownCtr } };
    await ctr(own, "images", "import", `${folder}/crigc-${version}.oci.tar`);
    const named = `localhost/crigc:${packaged.version}`;
    await ctr(own, "images", "tag", named, `localhost/crigc@${digest}`);
    const printed = await run(
      `${folder}/crigc-linux-x64`,
      "print",
      "daemonset",
      `--image=localhost/crigc@${digest}`,
      `--image-store=${node.imageDisk.path}/containerd`,
      `--metrics-bind-address=127.0.0.1:${port}`,
      "--image-gc-period=1s",
      "--minimum-image-ttl-duration=1s",
      "--boot-grace=0s",
      ...thresholds,
      ...nodeFlags(node),
    );
    expect(printed).toMatchObject({ exitCode: 0, stderr: "" });
    spec = (Bun.YAML.parse(printed.stdout) as { spec: { template: { spec: PodSpec } } }).spec
      .template.spec;
    const pod = await runPod(node, { name: "crigc", namespace: "kube-system" });
    endPod = () => removePod(node, pod);
    const [container] = spec.containers;
    if (container === undefined) throw new Error("the manifest has no container");
    agent = await startContainer(node, pod, {
      name: "crigc",
      image: container.image,
      command: container.command,
      args: container.args,
      env: container.env.map(({ name, value }) => ({ key: name, value })),
      mounts: await mountsOf(spec, node),
      security: securityOf(container.securityContext),
    });
  });

  afterAll(async () => {
    await node?.stop();
  });

  const inside = (...words: readonly string[]): Promise<string> =>
    execInContainer(node, agent.id, words);

  const answersIn = <T>(seconds: number, what: string, ask: () => Promise<T | false>) =>
    until(what, seconds * 1000, async () => {
      const { state } = await containerStatus(node, agent.id);
      if (state !== "CONTAINER_RUNNING")
        throw new Error(`the agent ended: ${readFileSync(agent.logFile ?? "", "utf8")}`);
      return await ask().catch(() => false as const);
    });

  test("the pod of the printed manifest answers to its probe, to the node and on its port", async () => {
    const probe = spec.containers[0]?.livenessProbe.exec.command ?? [];
    await answersIn(60, "the probe answers", async () => (await inside(...probe)) !== "");
    const crigc = `${folder}/crigc-linux-x64`;
    const status = await run(crigc, "status", "-o", "json", ...nodeFlags(node));
    expect(status).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(status.stdout)).toMatchObject({ kind: "Status", runtimeError: null });
    expect(spec.containers[0]?.ports).toEqual([{ name: "metrics", containerPort: port }]);
    const health = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect(health.status).toBe(200);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toContain("crigc_build_info");
  });

  test("a command in the pod uses the agent's settings, and no check of doctor fails", async () => {
    const { values } = JSON.parse(await inside("crigc", "config", "-o", "json"));
    expect(values.imageGCHighThresholdPercent.value).toBe(50);
    // A machine that is busy may be slow to answer once.
    let failed: readonly { readonly result: string }[] = [];
    await answersIn(60, "the doctor finds nothing that fails", async () => {
      const answer = await node.cri.call("ExecSync", {
        container_id: agent.id,
        cmd: ["crigc", "doctor", "-o", "json"],
        timeout: 30,
      });
      const { checks } = JSON.parse(answer.stdout.toString()) as { checks: typeof failed };
      failed = checks.filter(({ result }) => result === "failed");
      return failed.length === 0 && checks.length > 0;
    }).catch(() => undefined);
    expect(failed).toEqual([]);
  });

  test("the pod collects unused images down to the low threshold, keeps its own, and its history is on the node", async () => {
    await inside("crigc", "hold", "1h");
    for (let number = 1; readDisk(node.disk.path).usedPercent < 55; number += 1) {
      const layers = [{ seed: `unused-${number}`, sizeBytes: 24 * mebibyte }];
      await loadImages(node, [{ names: [library(`unused:${number}`)], layers }]);
    }
    await inside("crigc", "release");
    await answersIn(60, "the agent has collected", async () => {
      return readDisk(node.disk.path).usedPercent <= 45.5;
    });
    expect(await imageTags(node)).toContain(`localhost/crigc:${version}`);
    const crigc = `${folder}/crigc-linux-x64`;
    const history = await run(crigc, "history", "--kind=image", "-o", "json", ...nodeFlags(node));
    expect(history.stdout).toContain(library("unused:"));
  });

  test("the pod stops with exit code 0", async () => {
    await node.cri.call("StopContainer", { container_id: agent.id, timeout: 30 });
    const status = await containerStatus(node, agent.id);
    expect({ state: status.state, code: status.exit_code }).toEqual({
      state: "CONTAINER_EXITED",
      code: 0,
    });
    await endPod();
  });
});

/** What the kubelet makes of the manifest. Only the machine's own configuration is not the node's: an empty directory takes its place. */
async function mountsOf(spec: PodSpec, node: ContainerdNode): Promise<readonly ContainerMount[]> {
  const mounts: ContainerMount[] = [];
  for (const { name, mountPath, readOnly, mountPropagation } of spec.containers[0]?.volumeMounts ??
    []) {
    const volume = spec.volumes.find((it) => it.name === name);
    if (volume === undefined) throw new Error(`the manifest has no volume ${name}`);
    const { path, type } = volume.hostPath;
    const host = path === "/etc/crigc" ? `${node.directory}/no-configuration` : path;
    if (type === "DirectoryOrCreate") mkdirSync(host, { recursive: true });
    // As on a node of OpenRC, a machine whose mounts are private cannot pass them on.
    const found = await tryCommand(["findmnt", "-no", "PROPAGATION", "--target", host]);
    const passesOn = mountPropagation === "HostToContainer" && found.stdout.includes("shared");
    mounts.push({
      container_path: mountPath,
      host_path: host,
      readonly: readOnly === true,
      propagation: passesOn ? "PROPAGATION_HOST_TO_CONTAINER" : "PROPAGATION_PRIVATE",
    });
  }
  return mounts;
}

const securityOf = (
  context: PodSpec["containers"][number]["securityContext"],
): ContainerSecurity => ({
  capabilities: { drop_capabilities: context.capabilities.drop },
  run_as_user: { value: context.runAsUser },
  run_as_group: { value: context.runAsGroup },
  readonly_rootfs: context.readOnlyRootFilesystem,
  no_new_privs: !context.allowPrivilegeEscalation,
  seccomp: { profile_type: "RuntimeDefault" },
});
