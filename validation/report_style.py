"""The style sheet of the report: readable in light and dark, on paper, and on a narrow window."""

STYLE = """\
:root { --ink: #22262b; --soft: #5b6470; --paper: #ffffff; --line: #d9dee4; --tile: #f4f6f8;
  --yes: #17705a; --no: #b3371c; --open: #8a5a00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --soft: #a3acb7; --paper: #14171b; --line: #343b44; --tile: #1d2228;
    --yes: #5ccfae; --no: #ff8f73; --open: #f0b84a; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 54rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .8rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; }
small, .note { color: var(--soft); font-size: .85rem; }
small { display: block; }
.alert { border-left: 4px solid var(--open); padding-left: .7rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .8rem; }
.tile { background: var(--tile); border-radius: .4rem; padding: .7rem .9rem; display: flex; flex-direction: column; }
.tile span { color: var(--soft); font-size: .85rem; }
.tile strong { font-size: 1.6rem; line-height: 1.3; }
.tile em { color: var(--no); font-style: normal; font-size: .85rem; }
.use { font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .7rem .4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
ul { padding-left: 1.2rem; }
.verdicts th:nth-child(1) { width: 14%; }
.verdicts th:nth-child(3) { width: 48%; }
td p { margin: 0 0 .4rem; }
.chip { border: 1px solid var(--soft); color: var(--soft); border-radius: .8rem; padding: 0 .5rem; font-size: .85rem;
  white-space: nowrap; }
.supported, .favoured { border-color: var(--yes); color: var(--yes); }
.not-supported, .disfavoured { border-color: var(--no); color: var(--no); }
.inconclusive { border-color: var(--open); color: var(--open); }
figure { margin: 0 0 2rem; }
figcaption { font-size: .95rem; }
svg { width: 100%; height: auto; display: block; color: var(--ink); }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
pre { background: var(--tile); padding: .7rem .9rem; overflow-x: auto; border-radius: .4rem; font-size: .85rem; }
summary { cursor: pointer; }
@media (max-width: 40rem) {
  table { font-size: .8rem; }
  th, td { padding-right: .4rem; }
  .verdicts table, .verdicts tbody, .verdicts tr, .verdicts td { display: block; }
  .verdicts thead { display: none; }
  .verdicts td { border-bottom: 0; padding-right: 0; font-size: .95rem; }
  .verdicts tr { border-bottom: 1px solid var(--line); }
}
@media print { figure, tr { break-inside: avoid; } }
"""
