/** The style of the HTML report: one column that fits a phone, light or dark, printable. */

import { Html } from "./html.ts";

export const style = new Html(`
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --text: #1b1f24; --soft: #57606a; --line: #d4d9df;
  --used: #1667c7; --high: #c4281c; --low: #8a5d00; --freed: #1a7f4b;
  --bar: #9aa7b6; --note: #fff4d6; --note-line: #b98900; --alarm: #fdeceb;
  --tile-kept: #cfe1f7; --tile-removable: #f6dc9a; --tile-shared: #e2e6ea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #101418; --card: #181d23; --text: #e7ebef; --soft: #a5afba; --line: #323a43;
    --used: #6cb1ff; --high: #ff8078; --low: #e3b341; --freed: #56d08d;
    --bar: #5c6a79; --note: #2d2611; --note-line: #e3b341; --alarm: #35191a;
    --tile-kept: #1d3f66; --tile-removable: #594713; --tile-shared: #2a323b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; overflow-wrap: anywhere;
}
header, main, footer { max-width: 60rem; margin: 0 auto; padding: 1rem; }
header { padding-bottom: 0; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 0 0 .5rem; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; }
p { margin: .25rem 0 .75rem; }
.soft, footer, figcaption, caption { color: var(--soft); font-size: .9rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 0 0 1rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.75rem, 1fr)); gap: .75rem; margin: 0; }
.facts div { border-left: 3px solid var(--line); padding-left: .75rem; }
.facts dt { color: var(--soft); font-size: .9rem; }
.facts dd { margin: 0; font-size: 1.35rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.facts small { display: block; font-size: .85rem; font-weight: 400; color: var(--soft); }
.notice { border-left: 4px solid var(--note-line); background: var(--note); padding: .5rem .75rem; border-radius: .25rem; margin: 0 0 .75rem; }
.notice.alarm { border-color: var(--high); background: var(--alarm); }
figure { margin: 0 0 1.25rem; }
.plot { position: relative; height: 14rem; margin: .75rem 0 0 2.75rem; }
.plot svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.plot .tick { position: absolute; right: 100%; padding-right: .5rem; transform: translateY(-50%); color: var(--soft); font-size: .8rem; white-space: nowrap; font-variant-numeric: tabular-nums; }
.plot .level { position: absolute; right: .25rem; white-space: nowrap; font-size: .8rem; font-weight: 600; line-height: 1.2; text-shadow: 0 0 2px var(--card), 0 0 2px var(--card), 0 0 4px var(--card), 0 0 4px var(--card); }
.plot .level.high { color: var(--high); transform: translateY(-110%); }
.plot .level.low { color: var(--low); transform: translateY(10%); }
.strip { height: 3.5rem; }
.times { position: relative; height: 1.4rem; margin: .25rem 0 .5rem 2.75rem; color: var(--soft); font-size: .8rem; font-variant-numeric: tabular-nums; }
.times span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
.times span::before { content: ""; position: absolute; left: 50%; top: -.25rem; height: .25rem; border-left: 1px solid var(--line); }
.marks { position: relative; height: 1.25rem; margin: .25rem 0 0 2.75rem; }
.mark { position: absolute; top: .2rem; width: .8rem; height: .8rem; margin-left: -.4rem; border-radius: 50%; background: var(--freed); border: 2px solid var(--card); }
.mark.failed { background: var(--high); border-radius: 0; } .mark.event { background: none; border-color: transparent; }
.mark.event::before { content: ""; position: absolute; inset: 0; background: var(--note-line); border-radius: .15rem; rotate: 45deg; }
.legend { list-style: none; display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .1rem 1rem; padding: 0; margin: 0 0 .75rem; font-size: .9rem; }
.key { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; border-radius: .15rem; border: 1px solid var(--line); }
.map { position: relative; height: 24rem; margin: .75rem 0; }
.family { position: absolute; border: 2px solid var(--card); }
.tile { position: absolute; overflow: hidden; border: 1px solid var(--card); border-radius: .2rem; container-type: size; font-size: .8rem; line-height: 1.2; }
.tile span { display: block; max-width: fit-content; padding: .15rem .3rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; background: inherit; }
.tile small { display: block; overflow: hidden; text-overflow: ellipsis; font-size: 100%; }
.tile-kept { background: var(--tile-kept); } .tile-removable { background: var(--tile-removable); }
.tile-partly { background: linear-gradient(135deg, var(--tile-kept) 50%, var(--tile-removable) 50%) var(--tile-kept); }
.tile-shared { background: repeating-linear-gradient(45deg, var(--bar) 0 1px, transparent 1px 7px) var(--tile-shared); }
.tile-shared span { background: var(--tile-shared); }
@container (width < 3.5rem) or (height < 2.3rem) { .tile small { display: none; } }
@container (width < 2.5rem) or (height < 1.4rem) { .tile span { display: none; } }
code.id { display: inline-block; max-width: 11rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; vertical-align: bottom; user-select: all; color: var(--soft); font-size: .8rem; }
svg .grid { stroke: var(--line); } svg .used { stroke: var(--used); fill: none; stroke-width: 2; }
svg .high, svg .low { fill: none; } svg .high { stroke: var(--high); stroke-width: 1.5; stroke-dasharray: 6 4; }
svg .low { stroke: var(--low); stroke-width: 1.5; stroke-dasharray: 2 4; }
svg .freed { fill: var(--freed); }
svg line, svg path { vector-effect: non-scaling-stroke; }
table { width: 100%; border-collapse: collapse; font-size: .95rem; }
caption { text-align: left; padding-bottom: .25rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 600; font-size: .85rem; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tr.soft td { color: var(--soft); font-size: inherit; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; }
summary:focus-visible { outline: 2px solid var(--used); outline-offset: 2px; }
details ul { margin: .5rem 0; padding-left: 1.25rem; }
details li { margin: 0 0 .5rem; }
.share { display: block; height: .5rem; margin-top: .3rem; border-radius: .25rem; background: var(--bar); min-width: 2px; }
.share.freed { background: var(--freed); }
time { white-space: nowrap; }
@media (max-width: 40rem) {
  .times span:nth-child(even) { display: none; }
  table thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, table caption, table tbody, table tr, table td { display: block; }
  table tr { border-top: 1px solid var(--line); padding: .5rem 0; }
  table td { border: 0; padding: .1rem 0; text-align: left; white-space: normal; }
  table td[data-label] { display: grid; grid-template-columns: 5.5rem 1fr; gap: .5rem; }
  table td[data-label]::before { content: attr(data-label); color: var(--soft); font-size: .85rem; font-weight: 400; }
}
@page { margin: 12mm; }
@media print {
  :root { color-scheme: light; }
  html { font-size: 10px; }
  body { background: none; font-size: 1.05rem; line-height: 1.3; } header, main, footer { max-width: none; padding: .25rem 0; }
  section { border: 0; border-top: 1px solid #999; border-radius: 0; padding: .5rem 0; margin: 0; }
  h1 { font-size: 1.4rem; } h2, h3 { break-after: avoid; } figure, tr, li, .facts div, .map, .legend { break-inside: avoid; }
  .map { height: 15rem; } .family, .tile { border-color: #fff; }
  .plot { height: 11rem; } .strip { height: 3rem; } code.id { display: none; } figure { margin-bottom: .5rem; }
  th, td { padding: .15rem .5rem .15rem 0; } details li, li { margin: 0; }
  .tile, .key, .mark, .mark::before, .share { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  details:not([open]) > :not(summary) { display: none; }
  tbody tr:nth-child(n + 13), section > ul:not(.legend) > li:nth-child(n + 9) { display: none; }
}
`);
