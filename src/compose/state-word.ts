/** How the executable is started as the process of the state file: known without loading anything of it. */

/** Not for people. */
export const STATE_PROCESS = "__state";
