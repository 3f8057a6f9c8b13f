// Lines over the last hour, drawn by uPlot (uplot.js, a copy of its release; https://github.com/leeoniya/uPlot, MIT).

import { h, say, seconds } from "./dom.js";

const HOUR_S = 3600;
const HEIGHT = 190;
const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 30, PageDown: -30, Home: -Infinity, End: Infinity };
const DASHES = [[], [5, 3], [2, 3]];
const dark = matchMedia("(prefers-color-scheme: dark)");

// lines: {key, label} of the history; *show* makes the text of a value.
export class Chart {
  constructor(title, lines, show) {
    Object.assign(this, { lines, show, data: [[], ...lines.map(() => [])], at: null });
    // Arrow keys walk over the samples as the pointer does; a slider's value is read aloud.
    this.plot = h("div", { class: "plot", tabindex: 0, role: "slider", "aria-label": `${title}, the last hour`, "aria-valuemin": -HOUR_S, "aria-valuemax": 0, "aria-valuenow": 0,
      onkeydown: (event) => this.walk(event), onblur: () => this.choose(null) });
    this.element = h("figure", { class: "card chart" }, h("figcaption", {}, title), this.plot, h("p", { class: "note" }));
    new ResizeObserver(() => this.fit()).observe(this.plot);
    dark.addEventListener("change", () => this.draw());
  }

  fit() {
    if (!this.plot.clientWidth) return;
    if (this.drawn) this.drawn.setSize({ width: this.plot.clientWidth, height: HEIGHT });
    else this.draw();
  }

  draw() {
    this.drawn?.destroy();
    if (!this.plot.isConnected) return;
    const colours = getComputedStyle(document.body);
    const colour = (name) => colours.getPropertyValue(`--${name}`);
    const axis = { stroke: colour("soft"), font: "12px system-ui", grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
    this.drawn = new uPlot({
      width: this.plot.clientWidth, height: HEIGHT, ms: 1,
      scales: { x: { range: (_, low, high) => [(high ?? 0) - HOUR_S, high ?? 0] }, y: { range: (_, low, high) => [0, high || 1] } },
      axes: [{ ...axis, size: 26, values: (_, at) => at.map((one) => new Date(one * 1000).toTimeString().slice(0, 5)) },
        { ...axis, size: 64, values: (_, at) => at.map((one) => this.show(one)) }],
      series: [{ label: "at", value: (_, at) => this.ago(at) },
        ...this.lines.map(({ label }, index) => ({ label, stroke: colour("abc"[index]), dash: DASHES[index], width: 1.8, points: { show: false },
          value: (_, value, series, at) => this.show(at == null ? this.data[series].at(-1) : value) }))],
      cursor: { drag: { x: false, y: false }, y: false },
      hooks: { setLegend: [() => this.tell()] },
    }, this.data, this.plot);
    this.tell();
  }

  ago(at) {
    const [moments] = this.data;
    const ago = moments.length && at != null ? moments.at(-1) - at : 0;
    return !moments.length ? "no sample yet" : ago < 1 ? "now" : `${seconds(ago)} ago`;
  }

  update(history) {
    if (this.data[0].length && this.data[0].at(-1) === history.at_s.at(-1)) return;
    this.data = [history.at_s, ...this.lines.map(({ key }) => history[key])];
    this.drawn?.setData(this.data);
    this.tell();
  }

  walk(event) {
    const last = this.data[0].length - 1;
    if (!(event.key in STEPS) || last < 0) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(last, (this.at ?? last) + STEPS[event.key])));
  }

  choose(at) {
    this.at = at;
    const left = at === null ? -10 : this.drawn?.valToPos(this.data[0][at], "x");
    this.drawn?.setCursor({ left, top: at === null ? -10 : HEIGHT / 3 });
  }

  tell() {
    const at = this.drawn?.cursor.idx ?? this.data[0].length - 1;
    const when = this.ago(this.data[0][at]);
    const values = this.lines.map(({ label }, index) => `${label} ${this.show(this.data[index + 1][at])}`);
    this.plot.setAttribute("aria-valuenow", at < 0 ? 0 : Math.round(this.data[0][at] - this.data[0].at(-1)));
    this.plot.setAttribute("aria-valuetext", [when, ...values].join(", "));
    say(this.element.lastChild, this.data[0].length ? "" : "The first sample comes within 20 seconds.");
    this.element.lastChild.hidden = this.data[0].length > 0;
  }
}
