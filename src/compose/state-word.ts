/** The word that starts the executable as the state process, in a file that loads nothing else. */

/** Not for people. */
export const STATE_PROCESS = "__state";
