// A small CRI client for tests: makes pods on a real runtime and reads back what is there.

import { resolve } from "node:path";

import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

export interface PodSandboxConfig {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly namespace: string;
    readonly attempt: number;
  };
  readonly hostname: string;
  readonly log_directory: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly linux: {
    readonly cgroup_parent: string;
    readonly security_context: {
      readonly namespace_options: { readonly network: "NODE" | "POD" };
    };
  };
}

export interface ContainerMount {
  readonly container_path: string;
  readonly host_path?: string;
  readonly readonly?: boolean;
  readonly propagation?: "PROPAGATION_PRIVATE" | "PROPAGATION_HOST_TO_CONTAINER";
  /** An image volume: containerd 2.1 has them, and wants them read-only. 1.x refuses the container. */
  readonly image?: { readonly image: string };
}

export interface ContainerConfig {
  readonly metadata: { readonly name: string; readonly attempt: number };
  readonly image: { readonly image: string; readonly user_specified_image?: string };
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly envs: readonly { readonly key: string; readonly value: string }[];
  readonly mounts: readonly ContainerMount[];
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly log_path: string;
  readonly linux: { readonly security_context?: ContainerSecurity };
}

export interface ContainerSecurity {
  readonly capabilities: { readonly drop_capabilities: readonly string[] };
  readonly run_as_user: { readonly value: number };
  readonly run_as_group: { readonly value: number };
  readonly readonly_rootfs: boolean;
  readonly no_new_privs: boolean;
  readonly seccomp: { readonly profile_type: "RuntimeDefault" };
}

export type SandboxState = "SANDBOX_READY" | "SANDBOX_NOTREADY";
export type ContainerState = `CONTAINER_${"CREATED" | "RUNNING" | "EXITED" | "UNKNOWN"}`;

export interface ListedSandbox {
  readonly id: string;
  readonly metadata: PodSandboxConfig["metadata"];
  readonly state: SandboxState;
  readonly labels: Readonly<Record<string, string>>;
}

export interface ListedContainer {
  readonly id: string;
  readonly pod_sandbox_id: string;
  readonly metadata: { readonly name: string; readonly attempt: number };
  readonly image: { readonly image: string };
  readonly image_ref: string;
  /** Empty in the lists of all three releases. */
  readonly image_id: string;
  readonly state: ContainerState;
  readonly labels: Readonly<Record<string, string>>;
}

export interface ListedImage {
  readonly id: string;
  readonly repo_tags: readonly string[];
  readonly repo_digests: readonly string[];
  readonly size: string;
  readonly pinned: boolean;
}

export interface ContainerStatus {
  readonly id: string;
  readonly state: ContainerState;
  readonly exit_code: number;
  readonly reason: string;
  readonly message: string;
  readonly log_path: string;
  readonly mounts: readonly ContainerMount[];
  /** Nanoseconds of the epoch, as text. */
  readonly started_at: string;
  readonly finished_at: string;
}

export interface FilesystemUsage {
  readonly fs_id: { readonly mountpoint: string } | null;
  readonly used_bytes: { readonly value: string } | null;
  readonly inodes_used: { readonly value: string } | null;
}

/** Every method that tests call: its request and its answer. */
interface Methods {
  Version: [object, { runtime_name: string; runtime_version: string }];
  Status: [
    { verbose?: boolean },
    {
      status: { conditions: readonly { type: string; status: boolean }[] };
      info: Readonly<Record<string, string>>;
    },
  ];
  RunPodSandbox: [{ config: PodSandboxConfig }, { pod_sandbox_id: string }];
  StopPodSandbox: [{ pod_sandbox_id: string }, object];
  RemovePodSandbox: [{ pod_sandbox_id: string }, object];
  ListPodSandbox: [object, { items: readonly ListedSandbox[] }];
  CreateContainer: [
    { pod_sandbox_id: string; config: ContainerConfig; sandbox_config: PodSandboxConfig },
    { container_id: string },
  ];
  StartContainer: [{ container_id: string }, object];
  StopContainer: [{ container_id: string; timeout: number }, object];
  RemoveContainer: [{ container_id: string }, object];
  ListContainers: [object, { containers: readonly ListedContainer[] }];
  ContainerStatus: [{ container_id: string }, { status: ContainerStatus }];
  ExecSync: [
    { container_id: string; cmd: readonly string[]; timeout: number },
    { stdout: Buffer; stderr: Buffer; exit_code: number },
  ];
  ListImages: [object, { images: readonly ListedImage[] }];
  ImageStatus: [{ image: { image: string } }, { image: ListedImage | null }];
  RemoveImage: [{ image: { image: string } }, object];
  ImageFsInfo: [
    object,
    {
      image_filesystems: readonly FilesystemUsage[];
      container_filesystems: readonly FilesystemUsage[];
    },
  ];
}

export interface CriClient {
  readonly call: <M extends keyof Methods>(
    method: M,
    request: Methods[M][0],
    deadlineMs?: number,
  ) => Promise<Methods[M][1]>;
  readonly close: () => void;
}

const protoFile = resolve(import.meta.dir, "../fake-runtime/cri.proto");
const maxMessageBytes = 16 * 1024 * 1024;

export function connectCri(socket: string): CriClient {
  const definition = loadSync(protoFile, {
    keepCase: true,
    longs: String,
    enums: String,
    defaults: true,
  });
  const client = new grpc.Client(`unix://${socket}`, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": maxMessageBytes,
    // A runtime that restarts is asked again soon, not after grpc's growing pauses.
    "grpc.max_reconnect_backoff_ms": 200,
    "grpc.initial_reconnect_backoff_ms": 50,
  });
  return {
    call: (method, request, deadlineMs = 60_000) =>
      callUnary(client, findMethod(definition, method), { request, deadlineMs }),
    close: () => client.close(),
  };
}

type Method = grpc.MethodDefinition<object, object>;

function findMethod(definition: ReturnType<typeof loadSync>, name: string): Method {
  for (const service of ["runtime.v1.RuntimeService", "runtime.v1.ImageService"]) {
    const methods = definition[service] as Readonly<Record<string, Method>> | undefined;
    const method = methods?.[name];
    if (method !== undefined) return method;
  }
  throw new Error(`cri.proto declares no method ${name}`);
}

function callUnary<Answer>(
  client: grpc.Client,
  method: Method,
  { request, deadlineMs }: { readonly request: object; readonly deadlineMs: number },
): Promise<Answer> {
  return new Promise((fulfil, reject) => {
    client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      { deadline: Date.now() + deadlineMs },
      (error, answer) => {
        if (error) reject(new Error(`${method.path} failed: ${error.message}`, { cause: error }));
        else fulfil(answer as Answer);
      },
    );
  });
}
