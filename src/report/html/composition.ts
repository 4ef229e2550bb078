/** What fills the disk now, and when images were last used, as stacked bars with a legend. */

import type { DiskUsage, ImagePlan } from "../../model/plan.ts";
import type { Image } from "../../model/snapshot.ts";
import { type Duration, duration, hours, type Instant, since } from "../../model/time.ts";
import { smaller } from "../../model/values.ts";
import { counted, humanBytes, humanDuration } from "../bytes.ts";
import { imageKeep } from "../image-reasons.ts";
import { type Html, html } from "./text.ts";

interface Part {
  readonly name: string;
  /** Of the style: `c0` … `c6`, `removable`, `else`, `free`. */
  readonly colour: string;
  readonly bytes: bigint;
  readonly count: number | null;
}

const COLOURS = 7;

/** The image filesystem in parts: images in use, kept by each rule, removable, everything else, free. */
export function compositionSection(plan: ImagePlan): Html | null {
  const usage = plan.usage.find(({ filesystem }) => filesystem.roles.includes("imagefs"));
  if (usage === undefined) return null;
  const parts = partsOf(plan, usage).filter(({ bytes }) => bytes > 0n);
  const whole = usage.filesystem.capacityBytes;
  return html`<section aria-labelledby="composition">
    <h2 id="composition">What fills the disk</h2>
    <div
      class="stack"
      role="img"
      aria-label="${parts.map((part) => `${part.name} ${humanBytes(part.bytes)}`).join(", ")}"
    >
      ${parts.map((part) => html`<span class="${part.colour}" style="width:${share(part.bytes, whole)}%" title="${part.name}: ${humanBytes(part.bytes)}"></span>`)}
    </div>
    <ul class="legend">
      ${parts.map((part) => html`<li><span class="key ${part.colour}"></span>${part.name}: <strong>${humanBytes(part.bytes)}</strong>${part.count === null ? "" : `, ${counted(part.count, "image")}`}</li>`)}
    </ul>
    <p class="soft">
      The total of images is an upper bound from the runtime's figures, divided among them by
      reported size, so shared layers count for each image.
    </p>
  </section>`;
}

function partsOf(plan: ImagePlan, { filesystem }: DiskUsage): readonly Part[] {
  const used = filesystem.capacityBytes - filesystem.availableBytes;
  const kept = Array.from(Map.groupBy(plan.kept, ({ reason }) => reason.kind)).map(
    ([kind, members]) => ({ kind, images: members.map(({ image }) => image) }),
  );
  const groups = [
    ...kept.filter(({ kind }) => kind === "in-use"),
    ...kept.filter(({ kind }) => kind !== "in-use"),
  ].map(({ kind, images }, index) => ({
    name: imageKeep.title(kind),
    colour: `c${index % COLOURS}`,
    images,
  }));
  const removable = {
    name: "removable",
    colour: "removable",
    images: plan.candidates.map(({ image }) => image),
  };
  const all = [...groups, removable];
  const reported = all.reduce((sum, { images }) => sum + sizeOf(images), 0n);
  const measured = plan.futility.find((it) => it.filesystem === filesystem.path)?.breakdown;
  // containerd's figure excludes the compressed blobs, whose sizes it reports.
  const stored = filesystem.imageUsedBytes ?? 0n;
  const most = stored + smaller(stored, reported);
  const images = smaller(measured?.imagesBytes ?? (most > reported ? most : reported), used);
  return [
    ...all.map(({ name, colour, images: members }) => ({
      name,
      colour,
      bytes: reported === 0n ? 0n : (sizeOf(members) * images) / reported,
      count: members.length,
    })),
    { name: "everything else", colour: "else", bytes: used - images, count: null },
    { name: "free", colour: "free", bytes: filesystem.availableBytes, count: null },
  ];
}

const sizeOf = (images: readonly Image[]): bigint =>
  images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
const share = (bytes: bigint, whole: bigint): string =>
  whole === 0n ? "0" : (Number((bytes * 10_000n) / whole) / 100).toFixed(2);

/** Upper bounds of the columns; anything used earlier has its own column. */
const AGES = [1, 6, 24, 3 * 24, 7 * 24, 14 * 24, 30 * 24, 90 * 24].map(hours);

interface Used {
  readonly image: Image;
  readonly age: Duration | null;
  readonly removable: boolean;
}

/** When images were used last, from now to long ago, in columns that grow with the age. */
export function lastUseSection(plan: ImagePlan): Html | null {
  const images: readonly Used[] = [
    ...plan.kept
      .filter(({ reason }) => reason.kind !== "in-use")
      .map((it) => ({ ...it, removable: false })),
    ...plan.candidates.map((it) => ({ ...it, removable: true })),
  ].map(({ image, record, removable }) => ({
    image,
    age: ageOf(record.lastUsedAt, plan.now),
    removable,
  }));
  if (images.length === 0) return null;
  const inUse = plan.kept
    .filter(({ reason }) => reason.kind === "in-use")
    .map(({ image }) => image);
  const columns = [
    { name: "in use", kept: inUse, removable: [] },
    ...AGES.map((bound, index) => ({
      name: `< ${humanDuration(bound)}`,
      ...split(
        images.filter(({ age }) => age !== null && age < bound && age >= (AGES[index - 1] ?? 0n)),
      ),
    })),
    {
      name: "longer",
      ...split(images.filter(({ age }) => age !== null && age >= (AGES.at(-1) ?? 0n))),
    },
    { name: "never used", ...split(images.filter(({ age }) => age === null)) },
  ];
  const most = columns.reduce((one, { kept, removable }) => {
    const bytes = sizeOf(kept) + sizeOf(removable);
    return bytes > one ? bytes : one;
  }, 1n);
  return html`<section aria-labelledby="last-use">
    <h2 id="last-use">When images were last used</h2>
    <div class="ages">
      ${columns.map(({ name, kept, removable }) => ageColumn({ name, kept, removable, most }))}
    </div>
    <p class="soft">
      <span class="key removable"></span>removable <span class="key c0"></span>in use or kept by a
      rule. Bars show the sizes that the runtime reports.
    </p>
  </section>`;
}

function ageOf(usedAt: Instant | null, now: Instant): Duration | null {
  if (usedAt === null) return null;
  const age = since(now, usedAt);
  return age < 0n ? duration(0n) : age;
}

const split = (
  used: readonly Used[],
): { readonly kept: readonly Image[]; readonly removable: readonly Image[] } => ({
  kept: used.filter(({ removable }) => !removable).map(({ image }) => image),
  removable: used.filter(({ removable }) => removable).map(({ image }) => image),
});

function ageColumn(it: {
  readonly name: string;
  readonly kept: readonly Image[];
  readonly removable: readonly Image[];
  readonly most: bigint;
}): Html {
  const { name, kept, removable, most } = it;
  const count = kept.length + removable.length;
  const bytes = sizeOf(kept) + sizeOf(removable);
  const words = `${name}: ${counted(count, "image")}, ${humanBytes(bytes)}, ${removable.length} removable`;
  return html`<div class="age" tabindex="0" role="img" aria-label="${words}" title="${words}">
    <span class="column">
      <span class="removable" style="--size:${share(sizeOf(removable), most)}%"></span
      ><span class="c0" style="--size:${share(sizeOf(kept), most)}%"></span>
    </span>
    <strong>${count === 0 ? "" : count}</strong>
    <span>${name}</span>
  </div>`;
}
