// The status page. Whatever comes from the proxy becomes a text node or a property, never HTML.

const byId = (id) => document.getElementById(id);
const POLL_MS = 1000;
const CLOCK_OFF_S = 5;
const CERTIFICATE_SOON_S = 14 * 86400;
let session = null;
let timer = null;
let lastAnswer = 0;
let view = null;

// --- elements ------------------------------------------------------------------------------

// h("td", {class: "num"}, "text", element): strings become text nodes.
function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// What has not changed is not touched, so that focus, selection and layout stay.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function classed(element, name) {
  if (element.className !== name) element.className = name;
}

// --- figures in words ----------------------------------------------------------------------

const unknown = "–";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

const count = (value) => (value == null ? unknown : whole.format(value));
const rate = (value) => (value == null ? unknown : (value < 100 ? one : whole).format(value));

function seconds(value) {
  if (value == null) return unknown;
  if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${one.format(value * 1000)} ms`;
  if (value < 120) return `${one.format(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  if (value < 172800) return `${one.format(value / 3600)} h`;
  return `${one.format(value / 86400)} d`;
}

function bytes(value) {
  for (const [size, unit] of [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"]]) {
    if (value >= size) return `${one.format(value / size)} ${unit}`;
  }
  return `${value} B`;
}

// --- tables --------------------------------------------------------------------------------

// A table whose rows are kept by key and whose cells are changed in place; sorted by its headers' buttons.
// columns: {label, key, show, num, value, decorate}; *show* makes the text of a value.
class Table {
  constructor(label, columns, keyOf, { tone = () => "", sort = 0, down = false, empty }) {
    Object.assign(this, { columns, keyOf, tone, empty, sort, down, rows: new Map(), records: [] });
    this.heads = columns.map((column, index) => {
      if (column.make) return h("th", { scope: "col" }, h("span", {}, column.label));
      const button = h("button", { type: "button", onclick: () => this.sortBy(index) }, column.label);
      return h("th", { scope: "col", class: column.num ? "num" : null }, button);
    });
    this.body = h("tbody");
    this.none = h("p", { class: "note" }, empty);
    this.scroll = h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label },
      h("table", {}, h("caption", { hidden: true }, label), h("thead", {}, h("tr", {}, ...this.heads)), this.body));
    this.element = h("div", {}, this.scroll, this.none);
    this.mark();
  }

  sortBy(index) {
    this.down = this.sort === index ? !this.down : Boolean(this.columns[index].num);
    this.sort = index;
    this.mark();
    this.update(this.records);
  }

  mark() {
    this.heads.forEach((head, index) => {
      if (index === this.sort) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  order(a, b) {
    const column = this.columns[this.sort];
    const [x, y] = [a, b].map((each) => (column.value ? column.value(each) : each[column.key]));
    // What is not known stands last, whichever way.
    if (x == null || y == null) return (x == null) - (y == null);
    const way = typeof x === "string" ? x.localeCompare(y) : x - y;
    return (this.down ? -way : way) || this.keyOf(a).localeCompare(this.keyOf(b));
  }

  update(records) {
    this.records = records;
    this.scroll.hidden = !records.length;
    this.none.hidden = records.length > 0;
    const sorted = [...records].sort((a, b) => this.order(a, b));
    const gone = new Set(this.rows.keys());
    let before = null;
    for (const record of sorted) {
      const key = this.keyOf(record);
      gone.delete(key);
      let row = this.rows.get(key);
      if (!row) {
        row = h("tr", {}, ...this.columns.map((column, index) => {
          const kind = column.num ? "num" : column.text ? "text" : null;
          const cell = h(index ? "td" : "th", { class: kind, scope: index ? null : "row" });
          if (column.make) cell.append(column.make(record));
          return cell;
        }));
        this.rows.set(key, row);
      }
      classed(row, this.tone(record));
      this.columns.forEach((column, index) => {
        if (column.update) column.update(row.cells[index], record);
        else if (!column.make) say(row.cells[index], (column.show ?? String)(record[column.key] ?? null));
      });
      const place = before ? before.nextSibling : this.body.firstChild;
      if (place !== row) this.body.insertBefore(row, place);
      before = row;
    }
    for (const key of gone) {
      this.rows.get(key).remove();
      this.rows.delete(key);
    }
  }
}

const text = (value) => value || unknown;
const keyOfQueue = (each) => JSON.stringify([each.keyspace, each.queue]);

// --- what needs attention ------------------------------------------------------------------

// Worst first: what stands still, then what will. asked_s, answered_s: when, by this browser's clock.
function troubles(all, asked_s, answered_s) {
  const found = [];
  const add = (tone, sentence) => found.push({ tone, sentence });
  for (const shard of all.shards) {
    const name = `${shard.keyspace}/${shard.shard}`;
    if (!shard.is_up) add("bad", `Shard ${name} on ${shard.server} does not answer: ${shard.trouble}`);
    else if (shard.pool_waiting) add("warn", `${count(shard.pool_waiting)} statements wait for a connection to shard ${name}; its pool of ${shard.pool_size} is in use`);
  }
  for (const member of all.members) {
    if (member.is_stopping) add("bad", `Member ${member.member ?? "of this page"} is stopping`);
    else if (!member.is_answering) add("bad", `Member ${member.member} does not answer, and figures leave it out: ${member.error}`);
    const name = member.member ? `member ${member.member}` : "this proxy";
    const off_s = member.time_s == null ? 0 : Math.max(asked_s - member.time_s, 0) || Math.min(answered_s - member.time_s, 0);
    if (Math.abs(off_s) > CLOCK_OFF_S) add("bad", `The clock of ${name} is ${seconds(Math.abs(off_s))} ${off_s > 0 ? "behind" : "ahead of"} that of this browser: one of them is wrong, and messages are due by the first`);
    const left_s = member.certificate_ends_in_s;
    if (left_s != null && left_s < CERTIFICATE_SOON_S) add(left_s <= 0 ? "bad" : "warn", `The certificate of ${name} ${left_s <= 0 ? "has ended: clients that check it do not connect" : `ends in ${seconds(left_s)}`}`);
  }
  for (const queue of all.queues) {
    if (queue.parked) add("warn", `Queue ${queue.keyspace}.${queue.queue}: ${aboutParked(queue)} ${queue.parked === 1 ? "message is" : "messages are"} parked, and will not be delivered again until you revive ${queue.parked === 1 ? "it" : "them"}`);
  }
  for (const queue of all.queues) {
    const name = `${queue.keyspace}.${queue.queue}`;
    if (queue.error) add("bad", `Queue ${name} cannot be used: ${queue.error}`);
    else if (queue.is_paused) add("warn", `Queue ${name} is paused${queue.depth ? `; ${count(queue.depth)} messages wait` : ""}`);
    else if (queue.depth && !queue.streams) add("warn", `Queue ${name} has ${count(queue.depth)} messages and no stream`);
    else if (queue.oldest_due_s > 60) add("warn", `Queue ${name}: a message has been due for ${seconds(queue.oldest_due_s)}`);
    if (queue.set_aside) add("warn", `Queue ${name}: the server refuses to write ${count(queue.set_aside)} of its rows; SELECT * FROM streamfrom.set_aside lists them`);
    if (queue.partitions_held_back) add("warn", `Queue ${name}: ${count(queue.partitions_held_back)} of its partitions cannot be dropped or made; SHOW QUEUE PARTITIONS says why`);
  }
  const isAuto = (stream) => all.queues.some((queue) => queue.keyspace === stream.keyspace && queue.queue === stream.queue && queue.prefetch === null);
  for (const stream of all.streams) {
    if (stream.full_s > 60) add("warn", `Stream ${stream.connection_id} of ${stream.user} on ${stream.keyspace}.${stream.queue} holds ${count(stream.held)} messages and has acked none for ${seconds(stream.full_s)}${isAuto(stream) ? "; if it collects n messages before it acks them, write STREAM /*vt+ PREFETCH=n */, or take them with STREAM … LIMIT n" : ""}`);
  }
  return found.sort((a, b) => (a.tone === "warn") - (b.tone === "warn"));
}

class Verdict {
  constructor() {
    this.head = h("h1");
    this.list = h("ul");
    this.element = h("section", { class: "card verdict", "aria-live": "polite" }, this.head, this.list);
  }

  update(found) {
    classed(this.element, `card verdict ${found.length ? found[0].tone : ""}`.trim());
    say(this.head, found.length === 0 ? "All is well" : found.length === 1 ? "One thing needs attention" : `${found.length} things need attention`);
    while (this.list.childElementCount > found.length) this.list.lastChild.remove();
    while (this.list.childElementCount < found.length) this.list.append(h("li"));
    found.forEach((each, index) => {
      classed(this.list.children[index], each.tone);
      say(this.list.children[index], each.sentence);
    });
  }
}

// --- views ---------------------------------------------------------------------------------

function queueCell(cell, queue) {
  if (!cell.firstChild) {
    const page = `#/queue/${encodeURIComponent(queue.keyspace)}/${encodeURIComponent(queue.queue)}`;
    cell.append(queue.error ? h("span") : h("a", { href: page }), h("span", { class: "tag" }));
  }
  const [name, tag] = cell.children;
  say(name, `${queue.keyspace}.${queue.queue}`);
  const state = queue.error ? "cannot be used" : queue.is_paused ? "paused" : "";
  say(tag, state);
  tag.hidden = !state;
}

function depthCell(cell, queue) {
  say(cell, queue.depth == null ? unknown : `${queue.depth_is_exact ? "" : "≈ "}${count(queue.depth)}`);
}

// What a limit allows stands behind the figure that it limits.
const limited = (shown, most, show) => (most == null ? shown : `${shown} of ${show(most)}`);
const inFlight = (queue) => limited(count(queue.in_flight), queue.max_in_flight, count);
const sentRate = (queue) => limited(rate(queue.sent_per_s), queue.max_rate, rate);
const inFlightCell = (cell, queue) => say(cell, inFlight(queue));
const sentCell = (cell, queue) => say(cell, sentRate(queue));
const PARKED_COUNTED_MAX = 10000;
const aboutParked = (queue) => (queue.parked > PARKED_COUNTED_MAX ? `≈ ${count(queue.parked)}` : count(queue.parked));
const parkedCell = (cell, queue) => say(cell, aboutParked(queue));

function queueTable() {
  return new Table("Queues", [
    { label: "Queue", value: keyOfQueue, update: queueCell },
    { label: "Depth", key: "depth", num: true, update: depthCell },
    { label: "Due", key: "due", num: true, show: count },
    { label: "In flight", key: "in_flight", num: true, update: inFlightCell },
    { label: "Held", key: "held", num: true, show: count },
    { label: "Waiting", key: "waiting", num: true, show: count },
    { label: "Parked", key: "parked", num: true, update: parkedCell },
    { label: "Dead letters", key: "dead_lettered", num: true, show: count },
    { label: "Retries/s", key: "retried_per_s", num: true, show: rate },
    { label: "Oldest due", key: "oldest_due_s", num: true, show: seconds },
    { label: "In/s", key: "in_per_s", num: true, show: rate },
    { label: "Sent/s", key: "sent_per_s", num: true, update: sentCell },
    { label: "Acked/s", key: "out_per_s", num: true, show: rate },
    { label: "Due → sent p50", key: "due_to_sent_p50_s", num: true, show: seconds },
    { label: "p99", key: "due_to_sent_p99_s", num: true, show: seconds },
    { label: "Sent → acked p50", key: "sent_to_acked_p50_s", num: true, show: seconds },
    { label: "p99", key: "sent_to_acked_p99_s", num: true, show: seconds },
    { label: "Streams", key: "streams", num: true, show: count },
  ], keyOfQueue, {
    tone: (queue) => (queue.error ? "bad" : queue.is_paused || queue.oldest_due_s > 60 ? "warn" : ""),
    empty: "No queue here that you may see. CREATE QUEUE makes one.",
  });
}

function streamTable() {
  const act = {
    label: "Action",
    make: (each) => h("button", { type: "button", onclick: () => endStream(each), "aria-label": `End stream ${each.connection_id}` }, "End"),
  };
  return new Table("Streams", [
    { label: "Connection", key: "connection_id", num: true },
    { label: "Queue", value: keyOfQueue, update: (cell, each) => say(cell, `${each.keyspace}.${each.queue}`) },
    { label: "User", key: "user" },
    { label: "From", key: "host" },
    { label: "Shards", key: "shards", show: (value) => value ?? "all" },
    { label: "Open", key: "open_s", num: true, show: seconds },
    { label: "Sent", key: "sent", num: true, show: count },
    { label: "Holds", key: "held", num: true, show: count },
    { label: "of", key: "prefetch", num: true, show: (value) => (value ? count(value) : "no limit") },
    { label: "since", key: "held_s", num: true, show: seconds },
    { label: "Full since", key: "full_s", num: true, show: seconds },
    { label: "Member", key: "member", show: text },
    act,
  ], (each) => JSON.stringify([each.connection_id, each.keyspace, each.queue]), {
    tone: (each) => (each.full_s > 60 ? "warn" : ""),
    empty: "No stream is open that you may see.",
  });
}

function shardTable() {
  return new Table("Shards", [
    { label: "Shard", value: (each) => `${each.keyspace}/${each.shard}`, update: (cell, each) => say(cell, `${each.keyspace}/${each.shard}`) },
    { label: "State", key: "is_up", text: true, update: (cell, each) => say(cell, each.is_up ? "answers" : each.trouble ?? "down") },
    { label: "Server", key: "server" },
    { label: "Version", key: "version" },
    { label: "Pool in use", key: "pool_lent", num: true, show: count },
    { label: "open", key: "pool_open", num: true, show: count },
    { label: "of", key: "pool_size", num: true, show: count },
    { label: "Waiting for it", key: "pool_waiting", num: true, show: count },
    { label: "Seen by", key: "member", show: (value) => value ?? "this proxy" },
    { label: "Dispatched there", key: "is_dispatched", show: (value) => (value ? "yes" : "no") },
  ], (each) => JSON.stringify([each.keyspace, each.shard, each.member]), {
    tone: (each) => (each.is_up ? (each.pool_waiting ? "warn" : "") : "bad"),
    empty: "No shard that you may see.",
  });
}

function memberTable() {
  return new Table("Members", [
    { label: "Member", key: "member", show: (value) => value ?? "this proxy, alone" },
    { label: "Version", key: "version" },
    { label: "Up", key: "uptime_s", num: true, show: seconds },
    { label: "Clients", key: "connections", num: true, show: count },
    { label: "Streams", key: "streams", num: true, show: count },
    { label: "Statements", key: "questions", num: true, show: count },
    { label: "Address", key: "address", show: text },
    { label: "Dispatches", key: "dispatches", show: text },
    { label: "State", key: "is_answering", text: true, update: (cell, each) => say(cell, each.is_answering ? (each.is_stopping ? "stopping" : "serves") : each.error) },
  ], (each) => each.member ?? "", { tone: (each) => (each.is_answering ? "" : "bad"), empty: "No member." });
}

function limitTable() {
  const inWords = ({ key, value }) => {
    if (!value && /timeout$|_per_address$/.test(key)) return "no limit";
    if (/memory$|packet$/.test(key)) return bytes(value);
    return /^max_/.test(key) ? count(value) : seconds(value);
  };
  return new Table("Limits", [
    { label: "Setting of [server]", key: "key" },
    { label: "In force", num: true, value: (each) => each.value, update: (cell, each) => say(cell, inWords(each)) },
  ], (each) => each.key, { empty: "" });
}

class Overview {
  constructor() {
    this.verdict = new Verdict();
    this.tables = { queues: queueTable(), streams: streamTable(), shards: shardTable(), members: memberTable(), limits: limitTable() };
    const titles = { queues: "Queues", streams: "Streams", shards: "Shards", members: "Members", limits: "Limits" };
    this.element = h("div", {}, this.verdict.element,
      ...Object.entries(this.tables).flatMap(([name, table]) => [h("h2", { id: name, tabindex: -1 }, titles[name]), table.element]));
  }

  async poll() {
    const asked_s = Date.now() / 1000;
    const all = await ask("/api/overview");
    this.update(all, troubles(all, asked_s, Date.now() / 1000));
  }

  update(all, found) {
    this.verdict.update(found);
    for (const name of ["queues", "streams", "shards", "members"]) this.tables[name].update(all[name]);
    this.tables.limits.update(Object.entries(all.limits).map(([key, value]) => ({ key, value })));
    document.title = found.length ? `(${found.length}) streamfrom` : "streamfrom";
  }
}

// --- a queue's own page --------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
const HOUR_S = 3600;
const SAMPLES_MAX = 360;
const WIDTH = 600;
const HEIGHT = 150;

function svg(tag, attributes = {}) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// Lines over the last hour. lines: {key, label}; the first is drawn in colour a, then b and c.
class Chart {
  constructor(title, lines, show) {
    Object.assign(this, { title, lines, show, history: null });
    this.paths = lines.map((_, index) => svg("path", { class: `line ${"abc"[index]}` }));
    this.cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
    this.svg = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    this.svg.append(svg("line", { class: "base", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }), ...this.paths, this.cursor);
    this.top = h("span", { class: "top" });
    this.keys = lines.map(() => h("span"));
    this.when = h("span", { class: "when" }, "now");
    const legend = h("p", { class: "legend" }, this.when, ...lines.map((line, index) =>
      h("span", { class: "abc"[index] }, h("i"), `${line.label} `, this.keys[index])));
    // Arrow keys walk over the samples as the pointer does; a slider's value is read aloud.
    this.plot = h("div", { class: "plot", tabindex: 0, role: "slider", "aria-label": `${title}, the last hour`, "aria-valuemin": -HOUR_S, "aria-valuemax": 0, "aria-valuenow": 0,
      onpointermove: (event) => this.point(event), onpointerleave: () => this.choose(null), onblur: () => this.choose(null), onkeydown: (event) => this.walk(event) });
    this.plot.append(this.svg, this.top);
    this.element = h("figure", { class: "card chart" }, h("figcaption", {}, title), this.plot, legend,
      h("p", { class: "note ends" }, h("span", {}, "an hour ago"), h("span", {}, "now")));
    this.at = null;
  }

  x(index) {
    const moments = this.history.at_s;
    return WIDTH * (1 - (moments[moments.length - 1] - moments[index]) / HOUR_S);
  }

  update(history) {
    // The chosen sample moves to the left as time goes by.
    const chosen = this.at === null ? null : this.history.at_s[this.at];
    this.history = history;
    if (chosen !== null) this.at = history.at_s.indexOf(chosen) < 0 ? null : history.at_s.indexOf(chosen);
    const most = Math.max(...this.lines.flatMap((line) => history[line.key].map((value) => value ?? 0)), 0);
    say(this.top, most ? this.show(most) : "");
    this.lines.forEach((line, number) => {
      let path = "";
      let pen = "M";
      history[line.key].forEach((value, index) => {
        if (value == null) {
          pen = "M";
          return;
        }
        const y = HEIGHT - (most ? (value / most) * (HEIGHT - 6) : 0);
        path += `${pen}${this.x(index).toFixed(1)} ${y.toFixed(1)}`;
        pen = "L";
      });
      this.paths[number].setAttribute("d", path);
    });
    this.tell();
  }

  choose(index) {
    this.at = index;
    if (this.history) this.tell();
  }

  point(event) {
    if (!this.history?.at_s.length) return;
    const box = this.plot.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    let nearest = 0;
    this.history.at_s.forEach((_, index) => {
      if (Math.abs(this.x(index) - x) < Math.abs(this.x(nearest) - x)) nearest = index;
    });
    this.choose(nearest);
  }

  walk(event) {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 30, PageDown: -30, Home: -SAMPLES_MAX, End: SAMPLES_MAX }[event.key];
    const last = (this.history?.at_s.length ?? 0) - 1;
    if (!step || last < 0) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(last, (this.at ?? last) + step)));
  }

  tell() {
    const moments = this.history.at_s;
    const last = moments.length - 1;
    const index = this.at ?? last;
    this.cursor.setAttribute("visibility", this.at === null ? "hidden" : "visible");
    if (last < 0) {
      say(this.when, "no sample yet");
      return;
    }
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, this.x(index));
    const ago = moments[last] - moments[index];
    say(this.when, ago < 1 ? "now" : `${seconds(ago)} ago`);
    this.lines.forEach((line, number) => say(this.keys[number], this.show(this.history[line.key][index])));
    this.plot.setAttribute("aria-valuenow", -Math.round(ago));
    this.plot.setAttribute("aria-valuetext", [this.when.textContent, ...this.lines.map((line, number) => `${line.label} ${this.keys[number].textContent}`)].join(", "));
  }
}

function queueShardTable() {
  return new Table("Shards of the queue", [
    { label: "Shard", key: "shard" },
    { label: "Depth", key: "depth", num: true, update: depthCell },
    { label: "Parked", key: "parked", num: true, update: parkedCell },
    { label: "Due", key: "due", num: true, show: count },
    { label: "In flight", key: "in_flight", num: true, show: count },
    { label: "Waiting", key: "waiting", num: true, show: count },
    { label: "Oldest due", key: "oldest_due_s", num: true, show: seconds },
    { label: "Streams", key: "streams", num: true, show: count },
  ], (each) => each.shard, { empty: "No shard." });
}

function settingTable() {
  const inWords = ({ key, value }) => {
    if (value === true) return "on";
    if (value === false) return "off";
    if (value == null) return "none";
    return typeof value === "number" && /wait|after|interval|backoff|delay/.test(key) ? seconds(value) : String(value);
  };
  return new Table("Settings", [
    { label: "Setting", key: "key" },
    { label: "In force", num: true, value: (each) => String(each.value), update: (cell, each) => say(cell, inWords(each)) },
  ], (each) => each.key, { empty: "" });
}

const FIGURES = [
  ["Depth", (queue) => `${queue.depth_is_exact ? "" : "≈ "}${count(queue.depth)}`],
  ["Due", (queue) => count(queue.due)],
  ["In flight", inFlight],
  ["Held by a group", (queue) => count(queue.held)],
  ["Oldest due", (queue) => seconds(queue.oldest_due_s)],
  ["In/s", (queue) => rate(queue.in_per_s)],
  ["Sent/s", sentRate],
  ["Acked/s", (queue) => rate(queue.out_per_s)],
  ["Retries/s", (queue) => rate(queue.retried_per_s)],
  ["Streams", (queue) => count(queue.streams)],
  ["Sent", (queue) => count(queue.sent)],
  ["Retried", (queue) => count(queue.retried)],
  ["Acked", (queue) => count(queue.acked)],
  ["Deleted", (queue) => count(queue.deleted)],
  ["Released", (queue) => count(queue.released)],
  ["Parked", aboutParked],
  ["Dead letters", (queue) => count(queue.dead_lettered)],
  ["Parked in total", (queue) => count(queue.parked_total)],
  ["Dead letters in total", (queue) => count(queue.dead_lettered_total)],
  ["Purged", (queue) => count(queue.purged)],
];

const STATES = [
  ["due", "Due", "What is due is sent as soon as a stream has room. A message that was sent a moment ago stands here too, until its lease is written."],
  ["waiting", "Waiting or in flight", "Due later: scheduled, or sent (epoch above 0) and not acknowledged yet. The latest first."],
  ["held", "Held by a group", "Sent once the group that each waits for is done."],
  ["parked", "Parked", "Sent as often as vt_max_attempts says, and never again until somebody revives them."],
  ["acked", "Acked", "The latest acks of each shard."],
];

// A look at some messages; read when asked for, not each second.
class Messages {
  constructor(keyspace, queue) {
    Object.assign(this, { keyspace, queue, asked: 0, state: STATES[0] });
    this.buttons = STATES.map((state) => h("button", { type: "button", "aria-pressed": "false", onclick: () => this.show(state, "") }, state[1]));
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.show(this.state, this.next) }, "Next page");
    this.revive = h("button", { type: "button", hidden: true, onclick: () => reviveParked(this) }, "Revive all…");
    this.note = h("p", { class: "note", role: "status" }, "Choose which to look at.");
    this.missing = h("p", { class: "refusal", role: "alert", hidden: true });
    this.head = h("tr");
    this.body = h("tbody");
    this.scroll = h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Messages", hidden: true },
      h("table", {}, h("thead", {}, this.head), this.body));
    this.element = h("div", {}, h("div", { class: "buttons states", role: "group", "aria-label": "State of the messages" }, ...this.buttons), this.note, this.missing, this.scroll, this.revive, this.more);
  }

  async show(state, cursor) {
    const number = ++this.asked;
    this.state = state;
    this.buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(STATES[index] === state)));
    try {
      const query = new URLSearchParams({ keyspace: this.keyspace, queue: this.queue, state: state[0], cursor });
      const page = await ask(`/api/messages?${query}`);
      if (number === this.asked) this.update(page, cursor);
    } catch (error) {
      if (number !== this.asked) return;
      say(this.missing, error.message || "no answer");
      this.missing.hidden = false;
    }
  }

  update({ columns, rows, missing, next }, cursor) {
    this.next = next;
    this.head.replaceChildren(...["shard", ...columns].map((name) => h("th", { scope: "col" }, h("span", {}, name))));
    this.body.replaceChildren(...rows.map(({ shard, values }) => h("tr", {}, h("th", { scope: "row" }, shard),
      ...values.map((value) => h("td", { class: "text" }, value ?? "NULL")))));
    this.scroll.hidden = !rows.length;
    this.more.hidden = !next;
    this.revive.hidden = !(rows.length && this.state[0] === "parked");
    say(this.note, `${this.state[2]} ${rows.length ? `${rows.length} here${next ? ", and more may follow" : ""}.` : cursor || next ? "None on this page." : "There is none."}`);
    say(this.missing, missing.map((each) => `Without shard ${each.shard}: ${each.reason}`).join("; "));
    this.missing.hidden = !missing.length;
  }
}

class QueuePage {
  constructor(keyspace, queue) {
    Object.assign(this, { keyspace, queue, history: null });
    this.name = `${keyspace}.${queue}`;
    this.tag = h("span", { class: "tag" });
    this.switch = h("button", { type: "button", onclick: () => setPaused(this, !this.paused) });
    this.values = FIGURES.map(() => h("dd"));
    this.charts = [
      new Chart("Depth", [{ key: "depth", label: "unacked" }, { key: "in_flight", label: "in flight" }, { key: "parked", label: "parked" }], count),
      new Chart("Messages a second", [{ key: "in_per_s", label: "in" }, { key: "sent_per_s", label: "sent" }, { key: "out_per_s", label: "acked" }], rate),
      new Chart("Latency, p99", [{ key: "due_to_sent_p99_s", label: "due → sent" }, { key: "sent_to_acked_p99_s", label: "sent → acked" }], seconds),
    ];
    this.tables = { streams: streamTable(), shards: queueShardTable(), settings: settingTable() };
    this.missing = h("p", { class: "refusal", role: "alert", hidden: true });
    this.messages = new Messages(keyspace, queue);
    this.element = h("div", {},
      h("p", {}, h("a", { href: "#/" }, "← All queues")),
      h("div", { class: "titled" }, h("h1", { id: "title", tabindex: -1 }, this.name), this.tag, this.switch),
      this.missing,
      h("dl", { class: "figures card" }, ...FIGURES.map(([label], index) => h("div", {}, h("dt", {}, label), this.values[index]))),
      h("h2", {}, "The last hour"), h("div", { class: "charts" }, ...this.charts.map((chart) => chart.element)),
      h("h2", { id: "streams", tabindex: -1 }, "Streams"), this.tables.streams.element,
      h("h2", { id: "messages", tabindex: -1 }, "Messages"), this.messages.element,
      h("h2", { id: "shards", tabindex: -1 }, "Shards"), this.tables.shards.element,
      h("h2", {}, "Settings"), this.tables.settings.element);
  }

  async poll() {
    const query = new URLSearchParams({ keyspace: this.keyspace, queue: this.queue, after: this.history?.at_s.at(-1) ?? 0 });
    try {
      this.update(await ask(`/api/queue?${query}`));
    } catch (error) {
      if (error.status !== 404) throw error;
      say(this.missing, error.message);
      this.missing.hidden = false;
    }
  }

  update({ queue, shards, streams, settings, history }) {
    this.missing.hidden = true;
    this.paused = queue.is_paused;
    say(this.tag, "paused");
    this.tag.hidden = !queue.is_paused;
    say(this.switch, queue.is_paused ? "Resume…" : "Pause…");
    FIGURES.forEach(([, show], index) => say(this.values[index], show(queue)));
    for (const [name, values] of Object.entries(history)) {
      history[name] = [...(this.history?.[name] ?? []), ...values].slice(-SAMPLES_MAX);
    }
    this.history = history;
    for (const chart of this.charts) chart.update(history);
    this.tables.streams.update(streams);
    this.tables.shards.update(shards);
    this.tables.settings.update(settings);
    document.title = `${this.name} · streamfrom`;
  }
}

// --- actions -------------------------------------------------------------------------------

// Ask before; what went wrong is told in the same place. The browser keeps the focus inside.
function confirm(question, detail, word, act) {
  const refusal = h("p", { class: "refusal", role: "alert" });
  const go = h("button", { type: "button", class: "go" }, word);
  const back = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const dialog = h("dialog", { "aria-labelledby": "question" }, h("h2", { id: "question" }, question), h("p", {}, detail), refusal,
    h("div", { class: "buttons" }, back, go));
  dialog.addEventListener("close", () => dialog.remove());
  go.addEventListener("click", async () => {
    go.disabled = true;
    try {
      await act();
      dialog.close();
      poll();
    } catch (error) {
      say(refusal, error.message || "no answer");
    } finally {
      go.disabled = false;
    }
  });
  byId("main").append(dialog);
  dialog.showModal();
  back.focus();
}

function setPaused(page, pause) {
  const detail = pause
    ? "Nothing is sent from it until somebody resumes it. Messages still come in, and what was sent can be acknowledged."
    : "Its messages are sent again, the oldest due first.";
  confirm(`${pause ? "Pause" : "Resume"} ${page.name}?`, detail, pause ? "Pause" : "Resume",
    () => ask(pause ? "/api/pause" : "/api/resume", { keyspace: page.keyspace, queue: page.queue }));
}

function reviveParked(messages) {
  confirm(`Revive the parked messages of ${messages.keyspace}.${messages.queue}?`,
    "They are due at once, and may be sent vt_max_attempts times again. What made them fail should be mended first.",
    "Revive", async () => {
      const { revived } = await ask("/api/revive", { keyspace: messages.keyspace, queue: messages.queue });
      await messages.show(messages.state, "");
      say(messages.note, `Revived: ${count(revived)}.`);
    });
}

function endStream(stream) {
  confirm(`End stream ${stream.connection_id}?`,
    `${stream.user} from ${stream.host} gets an error, and may stream ${stream.keyspace}.${stream.queue} again. What it holds is due again later.`,
    "End", () => ask("/api/end-stream", { connection_id: stream.connection_id }));
}

// --- asking --------------------------------------------------------------------------------

async function ask(path, body) {
  const options = { credentials: "same-origin", cache: "no-store", redirect: "error" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json", "X-CSRF-Token": session?.csrf ?? "" };
  }
  const answer = await fetch(path, options);
  if (answer.status === 401 && path !== "/api/login") showLogin();
  if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim()), { status: answer.status });
  return answer.status === 204 ? null : answer.json();
}

async function poll() {
  clearTimeout(timer);
  try {
    const shown = view;
    await shown.poll();
    if (!session || shown !== view) return;
    lastAnswer = Date.now();
    live("live", "live");
  } catch (error) {
    if (!session) return;
    const silent = Math.round((Date.now() - lastAnswer) / 1000);
    // Who reads old figures must know that they are old.
    live(`No figures for ${silent} s: ${error.message || "no answer"}`, "live bad");
  }
  timer = setTimeout(poll, document.hidden ? POLL_MS * 10 : POLL_MS);
}

function live(words, kind) {
  say(byId("live"), words);
  classed(byId("live"), kind);
}

function showLogin() {
  session = null;
  clearTimeout(timer);
  live("", "live");
  byId("view").replaceChildren();
  byId("view").hidden = byId("who").hidden = byId("nav").hidden = true;
  byId("login").hidden = false;
  byId("name").focus();
}

async function begin() {
  try {
    session = await ask("/api/session");
  } catch (error) {
    if (error.status !== 401) {
      live(error.message || "no answer", "live bad");
      timer = setTimeout(begin, POLL_MS * 3);
    }
    return;
  }
  byId("login").hidden = true;
  byId("view").hidden = byId("nav").hidden = false;
  byId("who").hidden = session.is_open;
  say(byId("user"), session.user);
  lastAnswer = Date.now();
  await route();
}

// #/ is the overview, #/queue/<keyspace>/<queue> a queue's page; any other name a place on the page.
async function route() {
  if (!session) return;
  const [, kind, ...names] = location.hash.split("/");
  let wanted = [];
  try {
    if (kind === "queue" && names.length === 2) wanted = names.map(decodeURIComponent);
  } catch {
    // An address that was cut: the overview.
  }
  const isShown = view && view.element.isConnected && view.keyspace === wanted[0] && view.queue === wanted[1];
  const isPlace = location.hash.length > 1 && !location.hash.startsWith("#/");
  if (isPlace && view?.element.isConnected && byId(location.hash.slice(1))) return;
  if (!isShown) {
    view = wanted.length ? new QueuePage(...wanted) : new Overview();
    byId("view").replaceChildren(view.element);
    await poll();
    byId(wanted.length ? "title" : "main").focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  if (isPlace) byId(location.hash.slice(1))?.scrollIntoView();
}

window.addEventListener("hashchange", route);

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  say(byId("refusal"), "");
  try {
    await ask("/api/login", { user: byId("name").value, password: byId("password").value });
    byId("password").value = "";
    await begin();
  } catch (error) {
    say(byId("refusal"), error.message || "no answer");
    byId("password").focus();
  } finally {
    button.disabled = false;
  }
});

byId("logout").addEventListener("click", async () => {
  try {
    await ask("/api/logout", {});
  } finally {
    showLogin();
  }
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && session) poll();
});

begin();
