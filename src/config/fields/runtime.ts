/** Flags of the connection to the container runtime. */
import type { Field } from "../field.ts";
import { RUNTIME } from "./commands.ts";

export const runtimeFields = {
  containerRuntimeEndpoint: {
    flag: "container-runtime-endpoint",
    variables: ["CONTAINER_RUNTIME_ENDPOINT"],
    type: { kind: "endpoint", optional: true },
    default: "",
    defaultWords: "the one socket that answers",
    group: "Runtime",
    placeholder: "ENDPOINT",
    help: "socket of the container runtime",
    doc: "`unix:///PATH` or a bare path. Without it the sockets of containerd, k3s and rke2, microk8s, k0s, CRI-O and cri-dockerd are tried, and the one that answers `runtime.v1` is used. If several answer, `run` and `gc` refuse and name them.",
    commands: RUNTIME,
    kubelet: true,
  },
  imageServiceEndpoint: {
    flag: "image-service-endpoint",
    variables: ["IMAGE_SERVICE_ENDPOINT"],
    type: { kind: "endpoint", optional: true },
    default: "",
    defaultWords: "the runtime's",
    group: "Runtime",
    placeholder: "ENDPOINT",
    help: "socket of the image service, where it is another one",
    doc: "`unix:///PATH` or a bare path. Images are listed and removed, and the image filesystem is asked for, on this socket.",
    commands: RUNTIME,
    kubelet: true,
  },
  runtimeRequestTimeout: {
    flag: "runtime-request-timeout",
    type: { kind: "duration", minimum: "1ms" },
    default: "2m",
    group: "Runtime",
    placeholder: "DURATION",
    help: "deadline of every call to the runtime",
    doc: "A whole streamed list counts as one call. `gc` also waits at most this long for another pass to finish.",
    commands: RUNTIME,
    kubelet: true,
  },
} as const satisfies Readonly<Record<string, Field>>;
