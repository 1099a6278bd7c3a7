"""Style sheet of the HTML card. It follows the light or dark theme of the system."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --panel: #ffffff; --text: #1b2330; --faint: #5c6675; --line: #e2e6ec; --code: #f2f4f7;
  --good: #1a7f4b; --fair: #9a6700; --bad: #c0362c; --a: #2457c5; --b: #b0501c;
  --model: #7a5af0; --template: #0f8a9d; --engine-parser: #d9622b; --transport: #c9397f; --client-request: #8a8f98;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #11151b; --panel: #191f28; --text: #e8ecf2; --faint: #9aa5b4; --line: #2b333f; --code: #11161d;
    --good: #4cc38a; --fair: #e2b341; --bad: #ff8078; --a: #7aa5ff; --b: #ffa26b;
    --model: #a48bff; --template: #4cc9dc; --engine-parser: #ff9a5e; --transport: #ff7fb8; --client-request: #a9b0ba;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; padding: 2rem 1rem 4rem; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
main { max-width: 60rem; margin: 0 auto; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .35rem; overflow-wrap: anywhere; }
main > h1 { margin: 0 0 1rem; }
h2 { font-size: 1.1rem; margin: 0 0 .75rem; }
p { margin: .25rem 0; }
.faint { color: var(--faint); }
.small { font-size: .875rem; }
.flag { white-space: nowrap; }
.panel {
  background: var(--panel); border: 1px solid var(--line); border-radius: 12px; padding: 1.25rem; margin: 1rem 0;
}
.head { display: grid; grid-template-columns: 1fr auto; gap: 1rem 2rem; align-items: center; }
.scores { display: flex; gap: 1.75rem; }
.score b { display: block; font-size: 2.4rem; line-height: 1.1; font-weight: 650; font-variant-numeric: tabular-nums; }
.score span { color: var(--faint); font-size: .875rem; }
.good { color: var(--good); } .fair { color: var(--fair); } .bad { color: var(--bad); }
.note { border-left: 4px solid var(--fair); padding-left: .75rem; margin-top: .75rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; color: var(--faint); font-size: .875rem; padding: .25rem .75rem .25rem 0; }
td { padding: .3rem .75rem .3rem 0; border-top: 1px solid var(--line); vertical-align: middle; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.plot { width: 42%; min-width: 9rem; }
td .meaning { display: block; color: var(--faint); font-size: .8rem; line-height: 1.3; }
svg { display: block; width: 100%; }
svg.interval { height: auto; max-height: 34px; }
svg.causes { height: 26px; }
svg .grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
svg .whisker { stroke-width: 3; stroke-linecap: round; opacity: .45; }
svg .tick { fill: var(--faint); font-size: 12px; font-family: inherit; }
svg .curve { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
.whisker.a, .curve.a { stroke: var(--a); } .point.a { fill: var(--a); }
.whisker.b, .curve.b { stroke: var(--b); } .point.b { fill: var(--b); }
.curve.c { stroke: var(--template); }
.curve.b2 { stroke: var(--b); stroke-dasharray: 6 4; } .curve.a2 { stroke: var(--a); stroke-dasharray: 6 4; }
.cause-right { fill: var(--line); background: var(--line); }
.cause-model { fill: var(--model); background: var(--model); }
.cause-template { fill: var(--template); background: var(--template); }
.cause-engine-parser { fill: var(--engine-parser); background: var(--engine-parser); }
.cause-transport { fill: var(--transport); background: var(--transport); }
.cause-client-request { fill: var(--client-request); background: var(--client-request); }
.key {
  display: inline-block; width: .8em; height: .8em; border-radius: 3px; margin-right: .45em; vertical-align: -.05em;
}
.key.a { background: var(--a); } .key.b { background: var(--b); } .key.c { background: var(--template); }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin-top: .6rem; font-size: .875rem; }
.cause { display: grid; grid-template-columns: 10.5rem 4rem 1fr; gap: .25rem 1rem; padding: .6rem 0;
  border-top: 1px solid var(--line); }
.cause:first-of-type { margin-top: .75rem; }
details { border-top: 1px solid var(--line); padding: .5rem 0; }
details details { margin-left: 1rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
summary:focus-visible { outline: 2px solid var(--a); outline-offset: 2px; border-radius: 4px; }
summary .count { font-variant-numeric: tabular-nums; font-weight: 600; }
pre {
  background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: .75rem; margin: .35rem 0 .75rem;
  overflow: auto; max-height: 22rem; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.45 ui-monospace,
  "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
ul { margin: .35rem 0; padding-left: 1.25rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: 0; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.pair .panel { margin: 0; }
@media (max-width: 40rem) {
  svg .tick { font-size: 19px; }
  body { padding: 1rem .6rem 3rem; }
  .panel { padding: .9rem; border-radius: 10px; }
  .head, .pair { grid-template-columns: 1fr; }
  .score b { font-size: 2rem; }
  .cause { grid-template-columns: 1fr auto; } .cause .what { grid-column: 1 / -1; }
  .rates thead { display: none; }
  .rates tr { display: grid; grid-template-columns: 1fr auto; border-top: 1px solid var(--line); padding: .4rem 0; }
  .rates td { border: 0; padding: .1rem 0; }
  .rates tr:has(> .value-b) { grid-template-columns: 1fr auto auto; column-gap: .9rem; }
  .rates td.plot:empty { display: none; }
  .rates td.plot { grid-column: 1 / -1; grid-row: 2; width: auto; }
  .rates td.interval, .rates td.count { color: var(--faint); font-size: .8rem; }
  .rates td.interval { text-align: left; }
  details details { margin-left: .35rem; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .35rem; }
}
@media print { body { background: none; padding: 0; } .panel { break-inside: avoid; } }
"""
