// A random life on a simulated node: pods come and go, images are pulled, others write and delete, things break.

import type { Sandbox } from "../../src/model/snapshot.ts";
import { MIB } from "../support/build/values.ts";
import { available, imageOf, inodesFree, type Layer, type Release } from "./node.ts";
import { HOUR, MINUTE, SECOND, type Simulation } from "./simulation.ts";

export interface Character {
  /** Minutes between two pods, on average. */
  readonly podMinutes: number;
  /** Share of an image's layers that it shares with others. */
  readonly shared: number;
  /** MiB that others write in one go at most. */
  readonly writesMib: number;
  readonly breaks: boolean;
}

export class Walk {
  readonly #sim: Simulation;
  readonly #character: Character;
  readonly releases: readonly Release[];
  #pods = 0;
  #on = true;

  constructor(sim: Simulation, character: Character) {
    this.#sim = sim;
    this.#character = character;
    this.releases = releasesOf(sim, character);
  }

  begin(): void {
    const { random, node } = this.#sim;
    for (const release of this.releases) if (random.chance(0.6)) node.pull(release);
    this.#every(this.#character.podMinutes * MINUTE, () => void this.#pod());
    this.#every(3 * MINUTE, () => this.#write());
    this.#every(20 * MINUTE, () => this.#smallFiles());
    this.#every(5 * MINUTE, () => this.#prefetch());
    if (!this.#character.breaks) return;
    this.#every(40 * MINUTE, () => void this.#runtimeRestarts());
    this.#every(HOUR, () => this.#processDies());
    this.#every(2 * HOUR, () => this.#reboot());
    this.#every(HOUR, () => void this.#hold());
    this.#every(HOUR, () => void this.#badRules());
    this.#every(HOUR, () => {
      node.wallOffset += BigInt(random.between(-100, 100)) * 3_600_000_000_000n;
    });
    this.#every(2 * HOUR, () => {
      if (node.images.size > 0) this.#sim.weather.ghosts.add(random.pick([...node.images.keys()]));
    });
  }

  /** Nothing changes any more, and what was broken is whole again. */
  end(): void {
    this.#on = false;
  }

  #every(meanMs: number, work: () => void): void {
    const { clock, random } = this.#sim;
    const next = (): void =>
      clock.after(random.next() * 2 * meanMs, () => {
        if (!this.#on) return;
        work();
        next();
      });
    next();
  }

  async #pod(): Promise<void> {
    const { node, weather, clock, random } = this.#sim;
    const release = random.pick(this.releases);
    const boot = weather.bootId;
    const id = imageOf(release);
    const sandbox = node.addSandbox(`pod${(this.#pods += 1)}`, id);
    if (!node.images.has(id)) {
      await clock.sleep(random.between(1, 40) * SECOND);
      if (!node.pull(release)) return this.#endPod(sandbox);
    }
    // Before the kubelet looks for the image lie volumes and networks.
    await clock.sleep(random.between(0, 60) * SECOND);
    if (weather.bootId !== boot) return;
    if (!node.images.has(id)) return this.#endPod(sandbox);
    node.mark(sandbox);
    await clock.sleep(random.pick([300, 3 * SECOND, 40 * SECOND]));
    if (weather.bootId !== boot) return;
    if (!node.images.has(id)) return this.#endPod(sandbox);
    node.addContainer(sandbox, id);
    await clock.sleep(random.pick([5 * SECOND, MINUTE, 10 * MINUTE, 60 * MINUTE]));
    if (weather.bootId === boot) await this.#endPod(sandbox);
  }

  /** Somebody brings images beside the kubelet, for later. */
  #prefetch(): void {
    const { node, random } = this.#sim;
    for (let count = random.between(1, 4); count > 0; count -= 1)
      node.pull(random.pick(this.releases));
  }

  async #endPod(sandbox: Sandbox): Promise<void> {
    const { node, clock, random } = this.#sim;
    node.endPod(sandbox);
    await clock.sleep(random.between(0, 10) * MINUTE);
    node.pods.delete(sandbox.podUid);
  }

  #write(): void {
    const { node, random } = this.#sim;
    const disk = random.pick(node.disks);
    const room = available(node, disk);
    const amount = BigInt(random.between(0, this.#character.writesMib)) * MIB;
    if (random.chance(0.5)) disk.others += amount < room ? amount : room;
    else disk.others -= amount < disk.others ? amount : disk.others;
  }

  #smallFiles(): void {
    const { node, random } = this.#sim;
    const disk = random.pick(node.disks);
    const room = inodesFree(node, disk);
    const amount = BigInt(random.between(0, 600_000));
    if (random.chance(0.5)) disk.othersInodes += amount < room ? amount : room;
    else disk.othersInodes -= amount < disk.othersInodes ? amount : disk.othersInodes;
  }

  async #runtimeRestarts(): Promise<void> {
    const { weather, clock, random } = this.#sim;
    weather.runtimeIsAway = true;
    await clock.sleep(random.between(1, 180) * SECOND);
    weather.runtimeIsAway = false;
  }

  #processDies(): void {
    const { clock, random } = this.#sim;
    this.#sim.kill();
    clock.after(random.between(1, 600) * SECOND, () => this.#sim.start());
  }

  #reboot(): void {
    const { node, clock, random } = this.#sim;
    this.#sim.kill();
    node.reboot();
    // Whatever filled the disk may have been the reason.
    if (random.chance(0.7)) {
      const disk = node.imageDisk();
      disk.others += (available(node, disk) * 9n) / 10n;
    }
    clock.after(random.between(1, 60) * SECOND, () => this.#sim.start());
  }

  async #hold(): Promise<void> {
    const { weather, clock, random } = this.#sim;
    weather.hold = { kind: "held", until: null, since: null, reason: "an upgrade" };
    await clock.sleep(random.between(1, 10) * MINUTE);
    weather.hold = { kind: "none" };
  }

  async #badRules(): Promise<void> {
    const { weather, clock, random } = this.#sim;
    const { keep } = weather;
    weather.keep = { ...keep, problems: [{ source: "base.list:1", message: "it is empty" }] };
    await clock.sleep(random.between(1, 10) * MINUTE);
    weather.keep = keep;
  }
}

/** Images that share the layers of a few bases. */
function releasesOf({ random }: Simulation, { shared }: Character): readonly Release[] {
  const layer = (id: string, mib: number): Layer => ({
    id,
    bytes: BigInt(mib) * MIB,
    inodes: BigInt(random.between(10, 20_000)),
  });
  const bases = Array.from({ length: 4 }, (_, base) =>
    [0, 1, 2].map((part) => layer(`base${base}-${part}`, random.between(50, 1_500))),
  );
  const reported = random.pick([0.3, 1, 1]);
  const largestMib = random.pick([1_000, 6_000]);
  return Array.from({ length: random.between(15, 40) }, (_, at) => ({
    name: `image${at}`,
    layers: [
      ...(random.chance(shared) ? random.pick(bases) : []),
      layer(`own${at}`, random.between(10, largestMib)),
    ],
    reported,
    pinned: at === 0,
  }));
}
