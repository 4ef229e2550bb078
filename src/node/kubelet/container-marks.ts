// Reads the kubelet's marks of containers: in `ROOT/pods/UID/containers/NAME` it makes a file just before it creates one.

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

import type { PodUid } from "../../model/ids.ts";
import type { ContainerMark } from "../../model/ledger.ts";
import type { HostReader } from "../../model/ports.ts";
import { instant } from "../../model/time.ts";
import { mapBounded } from "../../model/values.ts";
import { isAbsent } from "../files.ts";

/** Pods read at once: 500 pods with 3 containers each take 10 ms. */
const CONCURRENCY = 16;

/**
 * `root`: the kubelet's; without a kubelet it is "/", whose /pods could belong to anything. Only directories of
 * new marks are read, because nearly all are old.
 */
export async function readContainerMarks(
  root: string,
  ...[pods, isNew]: Parameters<HostReader["containerMarks"]>
): ReturnType<HostReader["containerMarks"]> {
  const directory = join(root, "pods");
  const isReadable = await readdir(directory).then(
    () => root !== "/",
    () => false,
  );
  if (!isReadable) return { marks: [], unreadable: new Set(pods) };
  const marks: ContainerMark[] = [];
  const unreadable = new Set<PodUid>();
  await mapBounded(pods, CONCURRENCY, async (podUid) => {
    // A UID comes from a label, which must not lead to another directory.
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(podUid)) return;
    try {
      marks.push(...(await marksOf(join(directory, podUid, "containers"), podUid, isNew)));
    } catch {
      unreadable.add(podUid);
    }
  });
  return { marks, unreadable };
}

async function marksOf(
  directory: string,
  podUid: PodUid,
  isNew: (mark: ContainerMark) => boolean,
): Promise<readonly ContainerMark[]> {
  const marks: ContainerMark[] = [];
  for (const name of await orAbsent(readdir(directory), [])) {
    const path = join(directory, name);
    const found = await orAbsent(stat(path, { bigint: true }), null);
    if (found === null) continue;
    const mark = { podUid, name, at: instant(found.mtimeNs) };
    if (isNew(mark) && (await holdsFile(path))) marks.push(mark);
  }
  return marks;
}

const holdsFile = async (directory: string): Promise<boolean> =>
  (await orAbsent(readdir(directory, { withFileTypes: true }), [])).some((entry) => entry.isFile());

/** A missing path is not a mark; any other failure leaves the pod's marks unknown. */
const orAbsent = <T>(read: Promise<T>, absent: T): Promise<T> =>
  read.catch((thrown: unknown) => {
    if (isAbsent(thrown)) return absent;
    throw thrown;
  });
