/** Parses the pre-stop handler in a container's annotations, which are not trusted. */

import type { ContainerDetail } from "../../model/snapshot.ts";
import { isMap, parsedJson } from "../../model/values.ts";

export type Handler =
  | { readonly kind: "exec"; readonly command: readonly string[] }
  | {
      readonly kind: "http";
      readonly scheme: "http" | "https";
      /** "": the pod's own address. */
      readonly host: string;
      /** A number, or the name of a port of the container. */
      readonly port: number | string;
      readonly path: string;
      readonly headers: readonly { readonly name: string; readonly value: string }[];
    }
  | { readonly kind: "sleep"; readonly seconds: number };

/** `null` if the text is not a handler. */
export function readHandler(text: string): Handler | null {
  const recorded = parsedJson(text);
  if (!isMap(recorded)) return null;
  return (
    execHandler(recorded["exec"]) ??
    httpHandler(recorded["httpGet"]) ??
    sleepHandler(recorded["sleep"])
  );
}

/** Looks up a named port in the ports recorded with the handler; `null` if it is not there. */
export function handlerPort(
  port: number | string,
  annotations: ContainerDetail["annotations"],
): number | null {
  if (typeof port === "number") return validPort(port);
  if (/^\d+$/.test(port)) return validPort(Number(port));
  const ports = parsedJson(annotations["io.kubernetes.container.ports"] ?? "");
  if (!Array.isArray(ports)) return null;
  const named = ports.filter(isMap).find(({ name }) => name === port);
  const number = named?.["containerPort"];
  return typeof number === "number" ? validPort(number) : null;
}

function execHandler(value: unknown): Handler | null {
  const command = isMap(value) ? value["command"] : null;
  if (!Array.isArray(command) || command.length === 0) return null;
  return command.every((part) => typeof part === "string") ? { kind: "exec", command } : null;
}

function httpHandler(value: unknown): Handler | null {
  if (!isMap(value)) return null;
  const { port } = value;
  if (typeof port !== "number" && typeof port !== "string") return null;
  const path = text(value["path"]);
  return {
    kind: "http",
    scheme: text(value["scheme"]).toUpperCase() === "HTTPS" ? "https" : "http",
    host: text(value["host"]),
    port,
    path: path.startsWith("/") ? path : `/${path}`,
    headers: headersOf(value["httpHeaders"]),
  };
}

function headersOf(value: unknown): readonly { readonly name: string; readonly value: string }[] {
  if (!Array.isArray(value)) return [];
  return value
    .filter(isMap)
    .map((each) => ({ name: text(each["name"]), value: text(each["value"]) }))
    .filter((each) => each.name !== "");
}

function sleepHandler(value: unknown): Handler | null {
  const seconds = isMap(value) ? value["seconds"] : null;
  if (typeof seconds !== "number" || !Number.isFinite(seconds) || seconds < 0) return null;
  return { kind: "sleep", seconds };
}

const validPort = (port: number): number | null =>
  Number.isInteger(port) && port > 0 && port <= 65_535 ? port : null;

const text = (value: unknown): string => (typeof value === "string" ? value : "");
