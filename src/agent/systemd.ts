/** Notifies systemd: ready, status, watchdog. */

import { fstatSync } from "node:fs";

import type { Environment } from "../config/settings.ts";
import { sendDatagram } from "../node/libc.ts";
import type { Severity } from "./log.ts";

export type Systemd = ReturnType<typeof systemdOf>;

/** Sends nothing without `NOTIFY_SOCKET`. */
export function systemdOf(environment: Environment, pid: number) {
  const socket = environment["NOTIFY_SOCKET"];
  const send = (text: string): void => {
    if (socket !== undefined && socket !== "") sendDatagram(socket, text);
  };
  // A status is one line of text.
  const line = (text: string): string => text.replaceAll(/\s+/g, " ");
  return {
    ready: (text: string): void => send(`READY=1\nSTATUS=${line(text)}`),
    status: (text: string): void => send(`STATUS=${line(text)}`),
    stopping: (): void => send("STOPPING=1"),
    alive: (): void => send("WATCHDOG=1"),
    /** Period of `alive`; `null`: no watchdog for this process. */
    watchdogMs: watchdogMs(environment, pid),
  };
}

/** Half of the watchdog's time, as systemd recommends. */
function watchdogMs(environment: Environment, pid: number): number | null {
  const us = Number(environment["WATCHDOG_USEC"] ?? "");
  const owner = environment["WATCHDOG_PID"] ?? "";
  if (!Number.isFinite(us) || us <= 0 || (owner !== "" && owner !== String(pid))) return null;
  return Math.max(100, us / 2000);
}

/** Syslog priorities; the journal strips them from the line. */
const PRIORITIES: Readonly<Record<Severity, string>> = {
  error: "<3>",
  warning: "<4>",
  info: "<6>",
};

/** Prefix of a log line for `journalctl -p warning`; empty if the journal does not read the file. */
export function journalPrefix(
  environment: Environment,
  file: number,
): (severity: Severity) => string {
  const isRead = environment["JOURNAL_STREAM"] === identityOf(file);
  return (severity) => (isRead ? PRIORITIES[severity] : "");
}

/** Device and inode, as systemd writes them. The variable is set even if the unit's output goes elsewhere. */
function identityOf(file: number): string {
  try {
    const { dev, ino } = fstatSync(file, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return "";
  }
}
