// Archives of images, made as the tools make them: what is in them, and that damage is said and never passed over.

import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";

import { archivedImages } from "../../src/node/archive.ts";
import { writeImageArchive } from "../support/containerd/archive.ts";
import { tarHeader, tarOf, tarPadding } from "../support/containerd/tar.ts";
import { failureOf } from "../support/failure.ts";
import { scratch } from "../support/scratch.ts";

const directory = scratch();

type Content = string | Uint8Array;

function put(name: string, content: Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

const digestOf = (content: Content): string =>
  `sha256:${createHash("sha256").update(content).digest("hex")}`;

const config = JSON.stringify({ architecture: "amd64", os: "linux", rootfs: {} });
const configHex = digestOf(config).slice("sha256:".length);

const savedByDocker = tarOf([
  [`${configHex}.json`, config],
  ["layer/layer.tar", new Uint8Array(5 << 20)],
  [
    "manifest.json",
    JSON.stringify([
      { Config: `${configHex}.json`, RepoTags: ["app:1", "registry:5000/app:1"], Layers: [] },
    ]),
  ],
]);

const dockerImages = [{ id: digestOf(config), names: ["app:1", "registry:5000/app:1"] }];

function ociArchive(manifests: readonly object[], blobs: readonly string[]): Uint8Array {
  return tarOf([
    ...blobs.map((blob) => [`./blobs/${digestOf(blob).replace(":", "/")}`, blob] as const),
    ["./index.json", JSON.stringify({ schemaVersion: 2, manifests })],
  ]);
}

const manifest = JSON.stringify({ config: { digest: digestOf(config) }, layers: [] });

const imagesIn = (bytes: Uint8Array) => archivedImages(put("archive.tar", bytes));

test.each([
  ["uncompressed", savedByDocker],
  ["compressed with gzip", gzipSync(savedByDocker)],
  ["compressed with zstd", zstdCompressSync(savedByDocker)],
])(
  "an archive of docker save %s, whatever its name, has the ID by the content of each configuration, and the tags",
  async (_, bytes) => {
    expect(await imagesIn(bytes)).toEqual(dockerImages);
  },
);

describe("an archive in the OCI layout", () => {
  test("as written for several images has the ID and names of each", async () => {
    const { file, images } = writeImageArchive(join(directory, "oci.tar"), [
      { names: ["docker.io/library/one:1", "docker.io/library/one:latest"], withBusybox: false },
      { names: ["docker.io/library/two:1"], withBusybox: false },
      { names: [], withBusybox: false, identity: "nameless" },
    ]);
    expect(await archivedImages(file)).toEqual(images.map(({ id, names }) => ({ id, names })));
  });

  test("of several platforms has the image of each platform that is in it", async () => {
    const index = JSON.stringify({
      manifests: [
        { digest: digestOf(manifest), platform: { os: "linux", architecture: "amd64" } },
        { digest: digestOf("left out"), platform: { os: "linux", architecture: "s390x" } },
        { digest: digestOf("proof"), platform: { os: "unknown", architecture: "unknown" } },
      ],
    });
    const top = {
      digest: digestOf(index),
      annotations: { "io.containerd.image.name": "docker.io/library/app:1" },
    };
    expect(await imagesIn(ociArchive([top], [index, manifest, "proof"]))).toEqual([
      { id: digestOf(config), names: ["docker.io/library/app:1"] },
    ]);
  });

  test("tells the images of further platforms from the one whose configuration docker save names", async () => {
    const arm = { config: JSON.stringify({ architecture: "arm64" }) };
    const armManifest = JSON.stringify({ config: { digest: digestOf(arm.config) } });
    const index = JSON.stringify({
      manifests: [{ digest: digestOf(armManifest) }, { digest: digestOf(manifest) }],
    });
    const bytes = ociArchive([{ digest: digestOf(index) }], [index, manifest, armManifest]);
    const [main, other] = [digestOf(arm.config), digestOf(config)];
    expect(await imagesIn(bytes)).toEqual([
      { id: main, names: [] },
      { id: other, names: [], platformOf: main },
    ]);
  });

  test("takes full names, not tags alone, from its annotations", async () => {
    const named = (name: string): object => ({
      digest: digestOf(manifest),
      annotations: { "org.opencontainers.image.ref.name": name },
    });
    const bytes = ociArchive([named("latest"), named("example.org/app:2")], [manifest]);
    expect(await imagesIn(bytes)).toEqual([{ id: digestOf(config), names: ["example.org/app:2"] }]);
  });
});

test.each([
  ["GNU", "L", (name: string) => `${name}\0`],
  ["POSIX", "x", (name: string) => record(`path=${name}`)],
])("a name longer than a header is read as %s tar writes it", async (_kind, type, text) => {
  const name = `${"deep/".repeat(30)}${configHex}.json`;
  const list = JSON.stringify([{ Config: name, RepoTags: ["app:1"] }]);
  const long = new TextEncoder().encode(text(name));
  const header = headerOf(long.length, (made) => made.write(type, 156));
  const bytes = Buffer.concat([
    header,
    long,
    tarPadding(long.length),
    tarOf([
      ["cut", config],
      ["manifest.json", list],
    ]),
  ]);
  expect(await imagesIn(bytes)).toEqual([{ id: digestOf(config), names: ["app:1"] }]);
});

/** With a sum that is right again after the change. */
function headerOf(sizeBytes: number, change: (made: Buffer) => unknown): Buffer {
  const made = Buffer.from(tarHeader({ name: "long", sizeBytes }));
  change(made);
  made.write("        ", 148);
  const sum = made.reduce((total, byte) => total + byte, 0);
  made.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return made;
}

function record(text: string): string {
  const length = text.length + 5;
  return `${length} ${text}\n`;
}

describe("an invalid archive is refused", () => {
  test("a file that does not exist", async () => {
    const path = join(directory, "absent.tar");
    expect(await failureOf(archivedImages(path))).toMatchObject({
      kind: "read",
      message: `cannot read ${path}: it does not exist`,
    });
  });

  const blank = " ".repeat(4 << 20);
  test.each([
    ["text", new TextEncoder().encode("hello ".repeat(200)), "Invalid tar header"],
    ["nothing", new Uint8Array(0), "lists an image"],
    ["other files", tarOf([["etc/hosts", "127.0.0.1 localhost"]]), "lists an image"],
    ["a list that is no JSON", tarOf([["manifest.json", "[{"]]), "Invalid JSON"],
    [
      "an index whose list is none",
      tarOf([["index.json", '{"manifests":{}}']]),
      "index.json is invalid",
    ],
    ["an unknown packing", new Uint8Array([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]), "with xz"],
    ["a damaged packing", gzipSync(savedByDocker).subarray(0, 40), "cannot read"],
    [
      "a list whose configuration is missing",
      tarOf([["manifest.json", JSON.stringify([{ Config: "gone.json", RepoTags: ["app:1"] }])]]),
      'the configuration "gone.json", which is missing',
    ],
    [
      "a manifest that is not what its digest says",
      tarOf([
        [`blobs/${digestOf(manifest).replace(":", "/")}`, manifest.replace("config", "confug")],
        ["index.json", JSON.stringify({ manifests: [{ digest: digestOf(manifest) }] })],
      ]),
      "does not match its digest",
    ],
    ["half of it", savedByDocker.subarray(0, 2 << 20), "Unexpected end of data"],
    [
      "lists that would fill the memory",
      tarOf(Array.from({ length: 17 }, (_, at) => [`${at}.json`, blank] as const)),
      "take more than",
    ],
  ])("a file with %s", async (_, bytes, message) => {
    expect(await failureOf(imagesIn(bytes))).toMatchObject({
      name: "HostError",
      message: expect.stringContaining(message),
    });
  });
});
