/** Notifies systemd: ready, status, watchdog. */

import { fstatSync } from "node:fs";

import type { Environment } from "../config/source/arguments.ts";
import { sendDatagram } from "../host/process/libc.ts";
import type { Severity } from "../report/log/line.ts";

export interface Systemd {
  ready(status: string): void;
  status(text: string): void;
  stopping(): void;
  alive(): void;
  /** How often `alive` is wanted, in milliseconds; `null`: no watchdog is set for this process. */
  readonly watchdogMs: number | null;
}

/** Without `NOTIFY_SOCKET` nothing is sent. */
export function systemdOf(environment: Environment, pid: number): Systemd {
  const socket = environment["NOTIFY_SOCKET"];
  const send = (text: string): void => {
    if (socket !== undefined && socket !== "") sendDatagram(socket, text);
  };
  // A status is one line of text for people.
  const line = (text: string): string => text.replaceAll(/\s+/g, " ");
  return {
    ready: (text) => send(`READY=1\nSTATUS=${line(text)}`),
    status: (text) => send(`STATUS=${line(text)}`),
    stopping: () => send("STOPPING=1"),
    alive: () => send("WATCHDOG=1"),
    watchdogMs: watchdogMs(environment, pid),
  };
}

/** Half of the time that systemd allows, as it recommends. */
function watchdogMs(environment: Environment, pid: number): number | null {
  const us = Number(environment["WATCHDOG_USEC"] ?? "");
  const owner = environment["WATCHDOG_PID"] ?? "";
  if (!Number.isFinite(us) || us <= 0 || (owner !== "" && owner !== String(pid))) return null;
  return Math.max(100, us / 2000);
}

/** As syslog numbers them; the journal takes them off the line again. */
const PRIORITIES: Readonly<Record<Severity, string>> = {
  error: "<3>",
  warning: "<4>",
  info: "<6>",
};

/** The prefix of a log line for `journalctl -p warning`; empty unless the journal reads the file. */
export function journalPrefix(
  environment: Environment,
  file: number,
): (severity: Severity) => string {
  const isRead = environment["JOURNAL_STREAM"] === identityOf(file);
  return (severity) => (isRead ? PRIORITIES[severity] : "");
}

/** As systemd writes it: device and inode. A unit whose output was sent elsewhere has the variable all the same. */
function identityOf(file: number): string {
  try {
    const { dev, ino } = fstatSync(file, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return "";
  }
}
