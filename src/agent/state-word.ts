/** Names by which processes of crigc find each other, in a file without other imports. */

/** Internal: not a command for users. */
export const STATE_PROCESS = "__state";

/** Internal: runs `syncfs` on the path that follows. */
export const COMMIT_PROCESS = "__commit";

/** Of a running agent, in its `--run-dir`. */
export const CONTROL_SOCKET = "crigc.sock";
