// A queue's own page: its figures, the last hour, its messages, streams, shards and settings.

import { ask, confirm, login, repeated } from "./ask.js";
import { Chart } from "./chart.js";
import { count, h, rate, say, seconds } from "./dom.js";
import { Messages } from "./messages.js";
import { figuresOfQueue, queueShardTable, settingTable, streamTable } from "./tables.js";

const SAMPLES_MAX = 360;
// Of one transaction; see `ALTER QUEUE … REQUEUE`.
const REQUEUED_AT_ONCE = 500;

export class QueuePage {
  constructor(keyspace, queue) {
    Object.assign(this, { keyspace, queue, history: null });
    this.name = `${keyspace}.${queue}`;
    this.tag = h("span", { class: "tag" });
    this.switch = h("button", { type: "button", onclick: () => this.setPaused(!this.paused) });
    this.requeues = {
      parked: h("button", { type: "button", hidden: true, onclick: () => this.requeue("parked", "parked messages") }, "Requeue parked…"),
      dead: h("button", { type: "button", hidden: true, onclick: () => this.requeue("dead", "dead letters") }, "Requeue dead letters…"),
    };
    const { now, totals } = figuresOfQueue();
    this.figures = [...now, ...totals];
    this.values = this.figures.map(() => h("dd"));
    this.charts = [
      new Chart("Messages", [{ key: "depth", label: "unacked" }, { key: "in_flight", label: "in flight" }, { key: "parked", label: "parked" }], count),
      new Chart("Messages a second", [{ key: "in_per_s", label: "in" }, { key: "delivered_per_s", label: "delivered" }, { key: "out_per_s", label: "acked" }], rate),
      new Chart("Latency, p99", [{ key: "delivery_latency_p99_s", label: "delivery" }, { key: "ack_latency_p99_s", label: "ack" }], seconds),
    ];
    this.tables = { streams: streamTable(), shards: queueShardTable(), settings: settingTable() };
    this.missing = h("p", { class: "refusal", role: "alert", hidden: true });
    this.note = h("p", { class: "note", role: "status" });
    this.messages = new Messages(keyspace, queue);
    const help = h("details", { class: "note" }, h("summary", {}, "What these figures mean"),
      h("dl", {}, ...this.figures.flatMap(({ label, help: meaning }) => [h("dt", {}, label), h("dd", {}, meaning)])));
    this.element = h("div", {},
      h("p", {}, h("a", { href: "#/" }, "← All queues")),
      h("div", { class: "titled" }, h("h1", { id: "title", tabindex: -1 }, this.name), this.tag, this.switch, ...Object.values(this.requeues)),
      this.missing, this.note,
      h("dl", { class: "figures card" }, ...this.figures.map(({ label, help: meaning }, index) => h("div", { title: meaning }, h("dt", {}, label), this.values[index]))), help,
      h("h2", {}, "The last hour"), h("div", { class: "charts" }, ...this.charts.map((chart) => chart.element)),
      h("h2", { id: "messages", tabindex: -1 }, "Messages"), this.messages.element,
      h("h2", { id: "streams", tabindex: -1 }, "Streams"), this.tables.streams.element,
      h("h2", { id: "shards", tabindex: -1 }, "Shards"), this.tables.shards.element,
      h("h2", {}, "Settings"), this.tables.settings.element);
  }

  get place() {
    return { keyspace: this.keyspace, queue: this.queue };
  }

  async poll() {
    const query = new URLSearchParams({ ...this.place, after: this.history?.at_s.at(-1) ?? 0 });
    try {
      this.update(await ask(`/api/queue?${query}`));
    } catch (error) {
      if (error.status !== 404) throw error;
      say(this.missing, error.message);
      this.missing.hidden = false;
    }
  }

  update({ queue, shards, streams, settings, columns, history }) {
    this.missing.hidden = true;
    this.paused = queue.is_paused;
    say(this.tag, "paused");
    this.tag.hidden = !queue.is_paused;
    say(this.switch, queue.is_paused ? "Resume…" : "Pause…");
    this.requeues.parked.hidden = !queue.parked;
    this.requeues.dead.hidden = !queue.dead_lettered;
    this.figures.forEach(({ show }, index) => say(this.values[index], show(queue)));
    for (const [name, values] of Object.entries(history)) {
      history[name] = [...(this.history?.[name] ?? []), ...values].slice(-SAMPLES_MAX);
    }
    this.history = history;
    for (const chart of this.charts) chart.update(history);
    login.streams = streams;
    this.messages.know(columns);
    this.tables.streams.update(streams);
    this.tables.shards.update(shards);
    this.tables.settings.update(settings);
    document.title = `${this.name} · streamfrom`;
  }

  setPaused(pause) {
    const detail = pause
      ? "Nothing is delivered from it until you resume it. Messages still come in, and delivered messages can be acknowledged."
      : "Its messages are delivered again, the oldest first.";
    confirm(`${pause ? "Pause" : "Resume"} ${this.name}?`, detail, pause ? "Pause" : "Resume",
      () => ask(pause ? "/api/pause" : "/api/resume", this.place));
  }

  requeue(source, what) {
    confirm(`Requeue the ${what} of ${this.name}?`,
      "They are ready at once, with all their attempts before them. Fix what made them fail first, or set a rate that your workers can take.",
      "Requeue", async (run) => {
        const done = await repeated(run, REQUEUED_AT_ONCE, async (limit) => {
          const answer = await ask("/api/requeue", { ...this.place, source, limit });
          return { ...answer, next: answer.done < limit ? null : "" };
        });
        say(this.note, `Requeued: ${count(done)}.`);
      }, { paced: true });
  }
}
