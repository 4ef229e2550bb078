/** Flags for the runtime, image garbage collection and keep rules. */
import { type FieldEntry, RUNTIME } from "../field.ts";
import {
  boolean,
  duration,
  endpoint,
  integer,
  list,
  optional,
  path,
  percent,
  size,
} from "../types.ts";

export const runtimeFields = {
  containerRuntimeEndpoint: {
    variables: ["CONTAINER_RUNTIME_ENDPOINT"],
    type: optional(endpoint),
    defaultWords: "the only socket that answers",
    help: "socket of the container runtime",
    doc: "`unix:///PATH` or a bare path. Known: containerd, k3s and RKE2, MicroK8s, k0s, CRI-O, cri-dockerd. If several answer `runtime.v1`, `run` and `gc` exit 2.",
    commands: RUNTIME,
    kubelet: true,
  },
  imageServiceEndpoint: {
    variables: ["IMAGE_SERVICE_ENDPOINT"],
    type: optional(endpoint),
    defaultWords: "the runtime's",
    help: "socket of the image service, if different",
    doc: "For images and the image filesystem.",
    commands: RUNTIME,
    kubelet: true,
  },
  runtimeRequestTimeout: {
    type: duration("1ms"),
    default: "2m",
    help: "deadline of each call to the runtime",
    doc: "A streamed list is one call. `gc` also waits at most this long for another pass.",
    commands: RUNTIME,
    kubelet: true,
  },
} satisfies Readonly<Record<string, FieldEntry>>;

const PERCENT = percent(0, 100);

export const imageFields = {
  imageGCHighThresholdPercent: {
    type: PERCENT,
    default: "85",
    help: "disk usage that starts image GC",
    doc: "Reaching it is enough. With 100 and no maximum age, periodic image GC is off.",
    kubelet: true,
  },
  imageGCLowThresholdPercent: {
    type: PERCENT,
    default: "80",
    help: "disk usage to free down to",
    doc: "Must be below the high threshold.",
    kubelet: true,
  },
  imageMinimumGCAge: {
    flag: "minimum-image-ttl-duration",
    aliases: ["image-minimum-gc-age"],
    type: duration("0s"),
    default: "2m",
    help: "keep images first seen within this duration",
    doc: "First seen by crigc, not built or pulled.",
    kubelet: true,
  },
  imageMaximumGCAge: {
    type: duration("0s"),
    default: "0s",
    help: "remove images unused for this long; 0s: off",
    doc: "Must exceed the minimum age. Counts uptime, a day at most between two looks. At any disk usage.",
    kubelet: true,
  },
  imageStoreBudget: {
    type: optional(size),
    defaultWords: "off",
    help: "maximum total size of images, such as 20Gi",
    doc: "A pass frees down to the strictest target.",
  },
} satisfies Readonly<Record<string, FieldEntry>>;

export const keepFields = {
  keep: {
    type: list,
    placeholder: "GLOB",
    help: "images that are never removed; repeatable",
    doc: "`*` stays within a path component, `**` does not; a name without a tag matches every tag and digest; `sha256:…` matches an ID or digest by a prefix of at least 12 hex digits.",
    commands: RUNTIME,
  },
  keepDir: {
    type: path("directory"),
    default: "/etc/crigc/keep.d",
    help: "directory of keep lists, *.list",
    doc: "Read on every pass. If it is set but missing, or a file is invalid, crigc removes no image.",
    commands: RUNTIME,
  },
  keepLoaded: {
    type: boolean,
    default: "false",
    help: "keep images loaded from an archive",
    doc: "Those without a repository digest, or with only `import-YYYY-MM-DD` ones.",
  },
  keepPerRepository: {
    type: optional(integer(0)),
    defaultWords: "off",
    help: "keep the N most recently used tags of each repository",
    doc: "At any disk usage. Keeps all ties for Nth place. 0: off.",
  },
  podInfraContainerImage: {
    type: list,
    placeholder: "IMAGE",
    help: "sandbox image, always kept; repeatable",
    doc: "Besides images that the runtime names or pins, and usual pause images. With an invalid name, crigc removes no image.",
  },
} satisfies Readonly<Record<string, FieldEntry>>;
