/** Signals that whoever started this process had it ignore. A handler of ours would undo that. */

import { procText } from "../files/proc-text.ts";

/** The bit of SIGHUP in the kernel's masks of signals. */
const HANGUP = 1n;

/** Whether a closing terminal is to be ignored, as nohup asks; `false` where it cannot be told. Asked before any handler is set. */
export function ignoresHangup(proc = "/proc"): boolean {
  const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(procText(`${proc}/self/status`))?.[1];
  return mask !== undefined && (BigInt(`0x${mask}`) & HANGUP) !== 0n;
}
