// The image for DaemonSets: what is in it, that it is reproducible, and that a real containerd runs it as the printed manifest says.

import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

import packaged from "../../../package.json" with { type: "json" };
import { library } from "../../support/containerd/archive.ts";
import { command, tryCommand } from "../../support/containerd/command.ts";
import { mebibyte, readDisk } from "../../support/containerd/disk.ts";
import { ctr, loadImages } from "../../support/containerd/import.ts";
import { imageTags } from "../../support/containerd/inventory.ts";
import { type ContainerdNode, startNode } from "../../support/containerd/node.ts";
import {
  type ContainerMount,
  containerStatus,
  execInContainer,
  runPod,
  startContainer,
} from "../../support/containerd/pods.ts";
import { nodeFlags } from "../../support/containerd/program.ts";
import { until } from "../../support/containerd/until.ts";
import { scratch } from "../../support/scratch.ts";
import { released, run } from "./build.ts";

setDefaultTimeout(300_000);

const work = scratch();
let folder: string;

beforeAll(async () => {
  folder = await released();
});

// oxlint-disable-next-line typescript/no-explicit-any -- documents of OCI and Kubernetes, as the test looks into them
type Json = any;

/** An archive in the OCI layout, unpacked. */
async function unpacked(archive: string) {
  const directory = `${work}/${archive}.d`;
  mkdirSync(directory, { recursive: true });
  await command("tar", "-xf", `${folder}/${archive}`, "-C", directory);
  const { manifests } = JSON.parse(readFileSync(`${directory}/index.json`, "utf8"));
  const blob = ({ digest }: Json): string => `${directory}/blobs/${digest.replace(":", "/")}`;
  const document = (of: Json): Json => JSON.parse(readFileSync(blob(of), "utf8"));
  return { directory, manifests, blob, document };
}
type Layout = Awaited<ReturnType<typeof unpacked>>;

/** Every blob that is named is there with its digest and size, and no other. */
async function expectBlobs({ directory, manifests, blob, document }: Layout): Promise<void> {
  expect(JSON.parse(readFileSync(`${directory}/oci-layout`, "utf8"))).toEqual({
    imageLayoutVersion: "1.0.0",
  });
  const named = new Map<string, Json>();
  const visit = (descriptor: Json): void => {
    named.set(descriptor.digest.slice("sha256:".length), descriptor);
    if (!/(index|manifest)\.v1\+json$/.test(descriptor.mediaType)) return;
    const { manifests: below = [], config, layers = [] } = document(descriptor);
    for (const child of [...below, ...layers, ...(config === undefined ? [] : [config])])
      visit(child);
  };
  manifests.forEach(visit);
  expect(readdirSync(`${directory}/blobs/sha256`).toSorted()).toEqual([...named.keys()].toSorted());
  for (const [digest, descriptor] of named) {
    expect(Bun.file(blob(descriptor)).size).toBe(descriptor.size);
    expect(await command("sha256sum", blob(descriptor))).toStartWith(digest);
  }
}

const { version } = packaged;

describe.each([
  ["x64", "amd64", "lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu"],
  ["arm64", "arm64", "lib/ld-linux-aarch64.so.1", "lib/aarch64-linux-gnu"],
])("the image for %s", (processor, architecture, loader, libraries) => {
  test("is one named image of /crigc run, with the executable, its libraries and licences, and neither a time nor an owner of the build machine", async () => {
    const archive = `crigc-linux-${processor}.oci.tar`;
    const layout = await unpacked(archive);
    await expectBlobs(layout);
    expect(layout.manifests).toMatchObject([
      {
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        platform: { architecture, os: "linux" },
        annotations: {
          "io.containerd.image.name": `localhost/crigc:${version}`,
          "org.opencontainers.image.ref.name": version,
        },
      },
    ]);
    const manifest = layout.document(layout.manifests[0]);
    const layer = layout.blob(manifest.layers[0]);
    const sum = await command("sh", "-c", `gunzip -c '${layer}' | sha256sum`);
    expect(layout.document(manifest.config)).toMatchObject({
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
    const files: string[] = [];
    for (const file of [layer, `${folder}/${archive}`]) {
      const listed = await command("tar", "--full-time", "--numeric-owner", "-tvf", file);
      for (const line of listed.trimEnd().split("\n")) {
        const name = / 0\/0 .* 1970-01-01 00:00:00 (.*)$/.exec(line)?.[1] ?? `${line}: a trace`;
        if (file === layer && !name.endsWith("/")) files.push(name);
        expect(name).not.toContain("a trace");
      }
    }
    const dynamic = await command("readelf", "-dW", `${folder}/crigc-linux-${processor}`);
    const needed = [...dynamic.matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name = ""]) => name);
    const linked = needed.filter((name) => !name.startsWith("ld-linux"));
    expect(files.toSorted()).toEqual(
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
});

/** Added to the environment of the printed manifest, as its first comment says. */
const settings = {
  CRIGC_IMAGE_GC_PERIOD: "1s",
  CRIGC_MINIMUM_IMAGE_TTL_DURATION: "1s",
  CRIGC_BOOT_GRACE: "0s",
  CRIGC_IMAGE_GC_HIGH_THRESHOLD: "50",
  CRIGC_IMAGE_GC_LOW_THRESHOLD: "45",
};

describe.each(["1.6", "2.1"] as const)("on containerd %s", (release) => {
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  test("the pod of the printed manifest answers, obeys, collects down to the low threshold, keeps its own image and stops with exit code 0", async () => {
    await using node = await startNode(release, { disk: { sizeBytes: 1024 * mebibyte } });
    // As docs/kubernetes.md says.
    const own = { ...node, programs: { ...node.programs, ctr: node.programs.ownCtr } };
    const named = `localhost/crigc:${version}`;
    await ctr(own, "images", "import", `${folder}/crigc-linux-x64.oci.tar`);
    const crigc = (...words: readonly string[]) =>
      run(`${folder}/crigc-linux-x64`, ...words, ...nodeFlags(node));
    const printed = await crigc("print", "daemonset");
    expect(printed).toMatchObject({ exitCode: 0, stderr: "" });
    const manifest = printed.stdout
      .replaceAll("/var/lib/containerd", `${node.imageDisk.path}/containerd`)
      .replaceAll("/run/containerd/containerd.sock", node.socket)
      .replaceAll("/run/containerd", dirname(node.socket))
      .replaceAll("path: /run/crigc,", `path: ${node.runDirectory},`)
      .replaceAll("path: /var/lib/crigc,", `path: ${node.stateDirectory},`);
    const spec = (Bun.YAML.parse(manifest) as Json).spec.template.spec;
    const [container] = spec.containers;
    const pod = await runPod(node, { name: "crigc", namespace: "kube-system" });
    const agent = await startContainer(node, pod, {
      name: "crigc",
      image: container.image,
      command: container.command,
      args: container.args,
      env: [
        ...container.env.map(({ name, value }: Json) => ({ key: name, value })),
        { key: "CRIGC_METRICS_BIND_ADDRESS", value: `127.0.0.1:${port}` },
        ...Object.entries(settings).map(([key, value]) => ({ key, value })),
      ],
      mounts: await mountsOf(spec, node),
      security: securityOf(container.securityContext),
    });
    const inside = (...words: readonly string[]) => execInContainer(node, agent.id, words);
    const answersIn = <T>(seconds: number, what: string, ask: () => Promise<T | false>) =>
      until(what, seconds * 1000, async () => {
        const { state } = await containerStatus(node, agent.id);
        if (state !== "CONTAINER_RUNNING")
          throw new Error(`the agent ended: ${readFileSync(agent.logFile, "utf8")}`);
        return await ask().catch(() => false as const);
      });

    const probe = container.livenessProbe.exec.command;
    await answersIn(60, "the probe answers", async () => (await inside(...probe)) !== "");
    const status = await crigc("status", "-o", "json");
    expect(status).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(status.stdout)).toMatchObject({ kind: "Status", runtimeError: null });
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toContain("crigc_build_info");

    const { values } = JSON.parse(await inside("crigc", "config", "-o", "json"));
    expect(values.imageGCHighThresholdPercent.value).toBe(50);
    // A machine that is busy may be slow to answer once.
    let failed: readonly Json[] = [];
    await answersIn(60, "the doctor finds nothing that fails", async () => {
      const cmd = ["crigc", "doctor", "-o", "json"];
      const asked = { container_id: agent.id, cmd, timeout: 30 };
      const { checks } = JSON.parse((await node.cri.call("ExecSync", asked)).stdout.toString());
      failed = checks.filter(({ result }: Json) => result === "failed");
      return failed.length === 0 && checks.length > 0;
    }).catch(() => undefined);
    expect(failed).toEqual([]);

    await inside("crigc", "hold", "1h");
    for (let number = 1; readDisk(node.disk.path).usedPercent < 55; number += 1) {
      const layers = [{ seed: `unused-${number}`, sizeBytes: 24 * mebibyte }];
      await loadImages(node, [{ names: [library(`unused:${number}`)], layers }]);
    }
    await inside("crigc", "release");
    await answersIn(60, "the agent has collected", async () => {
      return readDisk(node.disk.path).usedPercent <= 45.5;
    });
    expect(await imageTags(node)).toContain(named);
    const history = await crigc("history", "--kind=image", "-o", "json");
    expect(history.stdout).toContain(library("unused:"));

    await node.cri.call("StopContainer", { container_id: agent.id, timeout: 30 });
    expect(await containerStatus(node, agent.id)).toMatchObject({
      state: "CONTAINER_EXITED",
      exit_code: 0,
    });
  });
});

/** What the kubelet makes of the manifest. Only the machine's own configuration is not the node's: an empty directory takes its place. */
async function mountsOf(spec: Json, node: ContainerdNode): Promise<readonly ContainerMount[]> {
  const mounts: ContainerMount[] = [];
  for (const { name, mountPath, readOnly, mountPropagation } of spec.containers[0].volumeMounts) {
    const { path, type } = spec.volumes.find((it: Json) => it.name === name).hostPath;
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

const securityOf = (context: Json): object => ({
  capabilities: { drop_capabilities: context.capabilities.drop },
  run_as_user: { value: context.runAsUser },
  run_as_group: { value: context.runAsGroup },
  readonly_rootfs: context.readOnlyRootFilesystem,
  no_new_privs: !context.allowPrivilegeEscalation,
  seccomp: { profile_type: "RuntimeDefault" },
});
