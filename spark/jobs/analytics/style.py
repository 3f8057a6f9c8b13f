"""How the report looks, by day and by night. One style sheet, no font or image from elsewhere."""

from typing import Final


STYLE: Final = """
:root {
  color-scheme: light dark;
  --page: #f6f5f1; --card: #ffffff; --edge: #e4e1d8; --ink: #22252b; --soft: #6b6f78; --faint: #9a9da5;
  --grid: #ebe8e0; --p50: #12877d; --p90: #d18a15; --p99: #c8374f; --band: rgba(200, 55, 79, .07);
  --warn: #fdf3dc; --warn-edge: #e8c778; --warn-ink: #6b4c06; --hover: rgba(40, 45, 60, .07); --shade: rgba(40, 45, 60, .16);
  --s0: #3f5bd4; --s1: #22a3b8; --s2: #8a63d2; --s3: #e08a3c; --s4: #4c9f61; --s5: #d1588c; --s6: #7c8594; --s7: #b09a2e;
  --ready: #c8374f; --ready-again: #d18a15; --parked: #8a63d2; --in_flight: #3f5bd4; --scheduled: #22a3b8; --blocked: #7c8594;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14161b; --card: #1c1f26; --edge: #2c3039; --ink: #e8e9ec; --soft: #a0a5b0; --faint: #747a87;
    --grid: #282c35; --p50: #3cc4b6; --p90: #eab04a; --p99: #f26d83; --band: rgba(242, 109, 131, .09);
    --warn: #2f2815; --warn-edge: #6e5717; --warn-ink: #f0d590; --hover: rgba(255, 255, 255, .07); --shade: rgba(0, 0, 0, .55);
    --s0: #7c93f5; --s1: #4cc3d6; --s2: #b193ef; --s3: #f0a765; --s4: #78c48b; --s5: #ec86b3; --s6: #a5adba; --s7: #d3bf5d;
    --ready: #f26d83; --ready-again: #eab04a; --parked: #b193ef; --in_flight: #7c93f5; --scheduled: #4cc3d6; --blocked: #a5adba;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 40px 28px 56px; }
header { display: flex; flex-wrap: wrap; align-items: flex-end; justify-content: space-between; gap: 8px 32px; margin-bottom: 26px; }
h1 { font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -.02em; margin: 0; overflow-wrap: anywhere; }
h1 small { display: block; font-size: 13px; font-weight: 500; letter-spacing: .02em; color: var(--soft); margin-bottom: 5px; }
header p { margin: 0; color: var(--soft); text-align: right; }
header p b { color: var(--ink); font-weight: 600; }
h2 { font-size: 16px; font-weight: 640; letter-spacing: -.005em; margin: 0; }
.card { background: var(--card); border: 1px solid var(--edge); border-radius: 12px; padding: 20px 22px 16px; margin-bottom: 18px; min-width: 0; }
.top { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline; gap: 2px 20px; margin-bottom: 10px; }
.sub { color: var(--soft); font-size: 13px; margin: 0 0 12px; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 0 18px; }
/* Charts next to each other stand at the same height, however many lines are above them. */
.two .card { display: flex; flex-direction: column; } .two .roomy, .two .narrow { margin-top: auto; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(175px, 1fr)); gap: 14px; margin-bottom: 18px; }
.figure { background: var(--card); border: 1px solid var(--edge); border-radius: 12px; padding: 15px 18px 14px; }
.figure span { display: block; font-size: 13px; color: var(--soft); }
.figure strong { display: block; font-size: 24px; line-height: 1.4; font-weight: 640; letter-spacing: -.02em; font-variant-numeric: tabular-nums; white-space: nowrap; }
.figure em { display: block; font-style: normal; font-size: 13px; color: var(--soft); }
.warn { background: var(--warn); border: 1px solid var(--warn-edge); color: var(--warn-ink); border-radius: 12px; padding: 12px 18px; margin-bottom: 18px; }
.warn p { margin: 3px 0; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
.grid { stroke: var(--grid); stroke-width: 1; fill: none; }
.tick { fill: var(--faint); font-size: 11.5px; text-anchor: end; font-variant-numeric: tabular-nums; }
.time { text-anchor: middle; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.point { stroke-width: 5; }
.band { fill: var(--band); stroke: none; }
.hover { fill: transparent; } .hover:hover { fill: var(--hover); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; color: var(--soft); margin: 0; padding: 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: 6px; }
.legend i { width: 11px; height: 11px; border-radius: 3px; flex: none; }
.legend i.stroke { height: 3px; width: 16px; border-radius: 2px; }
.shares { height: 20px; border-radius: 6px; margin: 4px 0 16px; }
.narrow { display: none; }
.scroll { overflow-x: auto; margin: 0 -22px; padding: 0 22px;
  /* A shadow at the side where a table goes on; the card's colour moves along and covers it at the end. */
  background:
    linear-gradient(90deg, var(--card) 40%, transparent) left / 44px 100% local,
    linear-gradient(270deg, var(--card) 40%, transparent) right / 44px 100% local,
    linear-gradient(90deg, var(--shade), transparent) left / 16px 100% scroll,
    linear-gradient(270deg, var(--shade), transparent) right / 16px 100% scroll var(--card);
  background-repeat: no-repeat; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th { text-align: right; font-weight: 500; font-size: 12.5px; color: var(--soft); padding: 5px 0 7px 18px; border-bottom: 1px solid var(--edge); white-space: nowrap; vertical-align: bottom; }
td { text-align: right; padding: 7px 0 7px 18px; border-bottom: 1px solid var(--grid); white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
th:first-child, td:first-child, .text { text-align: left; }
th:first-child, td:first-child { padding-left: 0; }
td.name { max-width: 260px; overflow: hidden; text-overflow: ellipsis; font-weight: 550; }
td .meter { display: inline-block; width: 90px; height: 8px; border-radius: 4px; background: var(--grid); margin-left: 10px; overflow: hidden; vertical-align: 1px; }
td .meter i { display: block; height: 100%; background: var(--s0); }
.dot { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 8px; }
.hot { color: var(--p99); font-weight: 620; }
.none { color: var(--soft); margin: 4px 0 10px; }
dl { display: grid; grid-template-columns: minmax(120px, 190px) 1fr; gap: 6px 20px; margin: 0; font-size: 14px; }
dt { font-weight: 600; } dd { margin: 0; color: var(--soft); }
footer { color: var(--faint); font-size: 12.5px; margin-top: 22px; }
.p50 { --c: var(--p50); } .p90 { --c: var(--p90); } .p99 { --c: var(--p99); }
.s0 { --c: var(--s0); } .s1 { --c: var(--s1); } .s2 { --c: var(--s2); } .s3 { --c: var(--s3); }
.s4 { --c: var(--s4); } .s5 { --c: var(--s5); } .s6 { --c: var(--s6); } .s7 { --c: var(--s7); } .ink { --c: var(--ink); }
.ready { --c: var(--ready); } .ready-again { --c: var(--ready-again); } .parked { --c: var(--parked); }
.in_flight { --c: var(--in_flight); } .scheduled { --c: var(--scheduled); } .blocked { --c: var(--blocked); }
.bar, .legend .key { fill: var(--c); } .line { stroke: var(--c); } i.fill { background: var(--c); }
@media (max-width: 640px) {
  .roomy { display: none; } .narrow { display: block; } .tick { font-size: 13px; }
  main { padding: 22px 12px 36px; } .card { padding: 16px 16px 12px; } .scroll { margin: 0 -16px; padding: 0 16px; }
  h1 { font-size: 24px; } header p { text-align: left; }
  .figures { grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; } .figure { padding: 12px 14px; } .figure strong { font-size: 21px; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 8px; }
}
@media print { body { background: none; } .card, .figure { break-inside: avoid; } }
"""
