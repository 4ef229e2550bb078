/** The word that starts the executable as the state process, in a file without other imports. */

/** Internal: not a command for users. */
export const STATE_PROCESS = "__state";
