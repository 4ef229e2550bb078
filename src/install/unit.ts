/** The systemd unit of the agent: low priority, bounded memory, minimal rights. */

import { ENGINE_ENVIRONMENT } from "./engine.ts";

export interface UnitOptions {
  readonly executable: string;
  /** Arguments of `run`. */
  readonly flags?: readonly string[];
  readonly writable?: readonly string[];
}

/** Admins change it with drop-ins (`systemctl edit crigc`), which upgrades keep. */
export function systemdUnit({ executable, flags = [], writable = [] }: UnitOptions): string {
  const places = writable.map((path) => `ReadWritePaths=${quoted(`-${path}`)}\n`).join("");
  const start = [executable, "run", ...flags.map(quoted)].join(" ");
  return [HEAD, service(start), PRIORITY, `${HARDENING}${places}`, INSTALL].join("\n");
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

const HEAD = `# Written by "crigc install", which replaces it on an upgrade. Change it with "systemctl edit crigc".
[Unit]
Description=Garbage collector for unused images, dead containers and orphaned pod logs
# Ordering only: the agent waits for the runtime by itself, and survives its restarts.
After=containerd.service crio.service docker.service cri-docker.service k3s.service k3s-agent.service
After=rke2-server.service rke2-agent.service k0scontroller.service k0sworker.service
StartLimitIntervalSec=0
`;

const service = (start: string): string => `[Service]
Type=notify
NotifyAccess=main
ExecStart=${start}
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=10s
WatchdogSec=2min
# A removal in flight is finished first; the runtime may take as long as a call's deadline.
TimeoutStopSec=150s
KillMode=mixed
# These would change what the executable does.
UnsetEnvironment=BUN_OPTIONS BUN_BE_BUN
# An agent with nothing to do then uses less than half the processor time.
${ENGINE_ENVIRONMENT.map(([name, value]) => `Environment=${name}=${value}\n`).join("")}StateDirectory=crigc
StateDirectoryMode=0700
# Its locks and holds must survive a restart.
RuntimeDirectory=crigc
RuntimeDirectoryPreserve=yes
`;

/**
 * Best effort, not idle: on a busy disk the idle class would starve our own ledger just when the disk is full.
 * Measured at the peak: 58 MB with 100 images, 205 MB with 10,000 and twice as many containers.
 */
const PRIORITY = `Nice=10
CPUWeight=20
IOSchedulingClass=best-effort
IOSchedulingPriority=7
IOWeight=20
MemoryHigh=384M
MemoryMax=512M
MemorySwapMax=0
TasksMax=512
LimitCORE=0
OOMScoreAdjust=300
`;

/**
 * Omitted on purpose: MemoryDenyWriteExecute (the JIT and calls into libc need such memory),
 * ProcSubset=pid (hides the boot ID), PrivateNetwork and IPAddressDeny (metrics, a kubelet's API, pre-stop requests),
 * ProtectHome=yes and PrivateUsers (an image store may be anywhere, and must be measurable).
 * ReadWritePaths has /var/log, because a subdirectory that is absent at the start would stay read-only.
 */
const HARDENING = `ProtectSystem=strict
ReadWritePaths=/var/log
ProtectHome=read-only
PrivateTmp=yes
PrivateMounts=yes
PrivateDevices=yes
DevicePolicy=closed
ProtectProc=invisible
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
PrivateIPC=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
UMask=0077
`;

const INSTALL = `[Install]
WantedBy=multi-user.target
`;
