// The image that holds a pod's namespaces open on test nodes.
import { writeImageArchive } from "./archive.ts";
import type { ImageArchive } from "./archive.ts";

/** As the real one, it does nothing until it is killed. */
export async function writePauseArchive(directory: string, name: string): Promise<ImageArchive> {
  return writeImageArchive(`${directory}/pause.tar`, [
    { names: [name], command: ["/bin/busybox", "sleep", "1000000"], identity: "pause" },
  ]);
}
