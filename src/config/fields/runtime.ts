/** Flags for the connection to the container runtime. */
import type { Field } from "../field.ts";
import { RUNTIME } from "./commands.ts";

export const runtimeFields = {
  containerRuntimeEndpoint: {
    flag: "container-runtime-endpoint",
    variables: ["CONTAINER_RUNTIME_ENDPOINT"],
    type: { kind: "endpoint", optional: true },
    defaultWords: "the only socket that answers",
    help: "socket of the container runtime",
    doc: "`unix:///PATH` or a bare path. If unset, crigc tries the sockets of containerd, k3s and RKE2, MicroK8s, k0s, CRI-O and cri-dockerd, and uses the one that answers `runtime.v1`. If several answer, `run` and `gc` refuse to run and name them.",
    commands: RUNTIME,
    kubelet: true,
  },
  imageServiceEndpoint: {
    flag: "image-service-endpoint",
    variables: ["IMAGE_SERVICE_ENDPOINT"],
    type: { kind: "endpoint", optional: true },
    defaultWords: "the runtime's",
    help: "socket of the image service, if different",
    doc: "`unix:///PATH` or a bare path. crigc lists and removes images and reads the image filesystem through this socket.",
    commands: RUNTIME,
    kubelet: true,
  },
  runtimeRequestTimeout: {
    flag: "runtime-request-timeout",
    type: { kind: "duration", minimum: "1ms" },
    default: "2m",
    help: "deadline of each call to the runtime",
    doc: "A streamed list counts as one call. A call that only asks for the image of a sandbox ends after 10 s at most. `gc` also waits at most this long for another pass to finish.",
    commands: RUNTIME,
    kubelet: true,
  },
} as const satisfies Readonly<Record<string, Field>>;
