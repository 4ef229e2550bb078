/** The style of the HTML report: one column that fits a phone, light and dark by the reader's setting, fit for printing. */

import { Html } from "./text.ts";

export const style = new Html(`
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --text: #1b1f24; --soft: #57606a; --line: #d4d9df;
  --used: #1667c7; --used-area: #1667c71f; --high: #c4281c; --low: #8a5d00; --freed: #1a7f4b;
  --bar: #9aa7b6; --note: #fff4d6; --note-line: #b98900; --alarm: #fdeceb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #101418; --card: #181d23; --text: #e7ebef; --soft: #a5afba; --line: #323a43;
    --used: #6cb1ff; --used-area: #6cb1ff29; --high: #ff8078; --low: #e3b341; --freed: #56d08d;
    --bar: #5c6a79; --note: #2d2611; --note-line: #e3b341; --alarm: #35191a;
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
.plot .mark { position: absolute; left: .25rem; white-space: nowrap; font-size: .8rem; font-weight: 600; line-height: 1.2; text-shadow: 0 0 2px var(--card), 0 0 2px var(--card), 0 0 4px var(--card), 0 0 4px var(--card); }
.plot .mark.high { color: var(--high); transform: translateY(-110%); }
.plot .mark.low { color: var(--low); transform: translateY(10%); }
.strip { height: 3.5rem; }
.times { display: flex; justify-content: space-between; gap: .5rem; margin: .25rem 0 .5rem 2.75rem; color: var(--soft); font-size: .8rem; font-variant-numeric: tabular-nums; }
.times span:nth-child(2) { text-align: center; } .times span:last-child { text-align: right; }
svg .grid { stroke: var(--line); } svg .used { stroke: var(--used); fill: none; stroke-width: 2; }
svg .area { fill: var(--used-area); stroke: none; }
svg .high { stroke: var(--high); stroke-width: 1.5; stroke-dasharray: 6 4; }
svg .low { stroke: var(--low); stroke-width: 1.5; stroke-dasharray: 2 4; }
svg .freed { fill: var(--freed); }
svg line, svg path { vector-effect: non-scaling-stroke; }
table { width: 100%; border-collapse: collapse; font-size: .95rem; }
caption { text-align: left; padding-bottom: .25rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-top: 1px solid var(--line); }
thead th { border-top: 0; color: var(--soft); font-weight: 600; font-size: .85rem; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tr.stop td { color: var(--used); font-weight: 600; border-top: 2px solid var(--used); }
tr.behind { color: var(--soft); }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; }
summary:focus-visible { outline: 2px solid var(--used); outline-offset: 2px; }
details ul { margin: .5rem 0; padding-left: 1.25rem; }
details li { margin: 0 0 .5rem; }
.share { display: block; height: .5rem; margin-top: .3rem; border-radius: .25rem; background: var(--bar); min-width: 2px; }
.share.freed { background: var(--freed); }
time { white-space: nowrap; }
@media (max-width: 40rem) {
  table.cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table.cards, table.cards caption, table.cards tbody, table.cards tr, table.cards td { display: block; }
  table.cards tr { border-top: 1px solid var(--line); padding: .5rem 0; }
  table.cards tr.stop { border-top: 2px solid var(--used); }
  table.cards td, table.cards tr.stop td { border: 0; padding: .1rem 0; text-align: left; white-space: normal; }
  table.cards td[data-label] { display: grid; grid-template-columns: 5.5rem 1fr; gap: .5rem; }
  table.cards td[data-label]::before { content: attr(data-label); color: var(--soft); font-size: .85rem; font-weight: 400; }
}
@media print {
  body { background: none; } section { break-inside: avoid; border-color: #999; }
}
`);
