/** The OpenRC service of the agent, for Alpine and others. */

import { ENGINE_ENVIRONMENT } from "./engine.ts";

export interface ScriptOptions {
  readonly executable: string;
  /** Arguments of `run`. */
  readonly flags?: readonly string[];
}

/** supervise-daemon restarts the agent when it exits; its log goes to the system log. */
export const openrcScript = ({
  executable,
  flags = [],
}: ScriptOptions): string => `#!/sbin/openrc-run
# Written by "crigc install", which replaces it on an upgrade. Settings go to /etc/crigc/crigc.yaml.

name="crigc"
description="Garbage collector for unused images, dead containers and orphaned pod logs"
supervisor="supervise-daemon"
command="${executable}"
command_args="${["run", ...flags.map(quoted)].join(" ")}"
pidfile="/run/crigc.pid"
respawn_delay=10
respawn_max=0
# A removal in flight is finished first; the runtime may take as long as a call's deadline.
retry="TERM/150/KILL/5"
supervise_daemon_args="--nicelevel 10 --ionice 2:7"
output_logger="logger -t crigc -p daemon.info"
error_logger="logger -t crigc -p daemon.info"
extra_started_commands="reload"

# These would change what the executable does.
unset BUN_OPTIONS BUN_BE_BUN
# An agent with nothing to do then uses less than half the processor time.
${ENGINE_ENVIRONMENT.map(([name, value]) => `export ${name}=${value}\n`).join("")}
depend() {
	need localmount
	use logger
	after containerd crio docker cri-dockerd k3s
}

start_pre() {
	checkpath --directory --mode 0700 --owner root:root /var/lib/crigc
	checkpath --directory --mode 0755 --owner root:root /run/crigc
	# Nothing is collected until the list is written, with the settings of the agent.
	if yesno "\${crigc_baseline:-no}"; then
		eval "\\"\${command}\\" keep baseline --once \${command_args#run}" || return 1
	fi
}

reload() {
	ebegin "Reloading \${RC_SVCNAME}"
	supervise-daemon "\${RC_SVCNAME}" --signal HUP
	eend $?
}
`;

/** Variable of the service: the first start keeps the images present. */
export const openrcSettings = `# Written by "crigc install --baseline".
crigc_baseline=yes
`;

/** One shell word, escaped for double quotes that are evaluated twice. */
const quoted = (word: string): string =>
  /^[\w@:,./=+-]+$/.test(word)
    ? word
    : `'${word.replaceAll("'", "'\\''")}'`.replace(/["$`\\]/g, "\\$&");
