/** Names of images, containers and sandboxes for people. */

import type { ImageId } from "../model/ids.ts";
import type { Container, Image, Sandbox } from "../model/snapshot.ts";
import { clean } from "./terminal.ts";

/** A code in words: `pod logs`, `already gone`. */
export const kindTitle = (kind: string): string => clean(kind).replaceAll("-", " ");

const HEX_SHOWN = 12;

type NamedImage = Pick<Image, "id" | "repoTags" | "repoDigests">;

/** The best name: a tag, else `repository@sha256:…` with a short digest, else the short ID. */
export const imageName = (image: NamedImage): string =>
  givenName(image)?.replace(/(@\w+:[0-9a-f]{12})[0-9a-f]+$/, "$1") ?? shortId(image.id);

/** The same for programs: with the whole digest or ID. */
export const wholeImageName = (image: NamedImage): string => givenName(image) ?? clean(image.id);

function givenName({ repoTags, repoDigests }: NamedImage): string | undefined {
  const name = [...repoTags, ...repoDigests].find((it) => !it.startsWith("<none>"));
  return name === undefined ? undefined : clean(name);
}

/** `sha256:0123456789ab`, or the first 12 digits without an algorithm: enough for `explain`. */
export function shortId(id: ImageId | string): string {
  const text = clean(id);
  const colon = text.indexOf(":");
  return text.slice(0, colon + 1 + HEX_SHOWN);
}

export const containerName = ({
  podNamespace,
  podName,
  name,
}: Pick<Container, "podNamespace" | "podName" | "name">): string =>
  clean(podName === "" ? name : `${podNamespace}/${podName}/${name}`);

export const sandboxName = ({ namespace, name }: Pick<Sandbox, "namespace" | "name">): string =>
  clean(namespace === "" ? name : `${namespace}/${name}`);
