/** The systemd unit of the agent: low priority, bounded memory, minimal rights. */

import { ENGINE_ENVIRONMENT } from "./engine.ts";
import { filled } from "./template.ts";
import template from "./templates/systemd-unit.txt" with { type: "text" };

export interface UnitOptions {
  readonly executable: string;
  /** Arguments of `run`. */
  readonly flags?: readonly string[];
  readonly writable?: readonly string[];
}

/**
 * Admins change it with drop-ins (`systemctl edit crigc`), which upgrades keep.
 *
 * Best effort, not idle: on a busy disk the idle class would starve our own ledger just when the disk is full. Memory
 * measured at the peak: 58 MB with 100 images, 205 MB with 10,000 and twice as many containers.
 *
 * Omitted on purpose: MemoryDenyWriteExecute (the JIT and calls into libc need such memory),
 * ProcSubset=pid (hides the boot ID), PrivateNetwork and IPAddressDeny (metrics, a kubelet's API, pre-stop requests),
 * ProtectHome=yes and PrivateUsers (an image store may be anywhere, and must be measurable).
 * ReadWritePaths has /var/log, because a subdirectory that is absent at the start would stay read-only.
 */
export function systemdUnit({ executable, flags = [], writable = [] }: UnitOptions): string {
  return filled(template, {
    start: [executable, "run", ...flags.map(quoted)].join(" "),
    engine: ENGINE_ENVIRONMENT.map(([name, value]) => `Environment=${name}=${value}\n`).join(""),
    writable: writable.map((path) => `ReadWritePaths=${quoted(`-${path}`)}\n`).join(""),
  });
}

/** One word of a unit file: escapes % and $. */
const quoted = (word: string): string =>
  /^[\w@:,./=<*+-]+$/.test(word)
    ? word
    : `"${word.replace(/["\\]/g, "\\$&").replaceAll("%", "%%").replaceAll("$", "$$$$")}"`;

/** A failing step prevents the start and is retried, so nothing is collected before the list is written. */
export const baselineDropIn = ({
  executable,
}: UnitOptions): string => `# Written by "crigc install --baseline".
[Service]
ReadWritePaths=/etc/crigc/keep.d
ExecStartPre=${executable} keep baseline --once
`;
