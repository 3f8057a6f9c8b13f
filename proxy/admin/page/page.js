// The status page. Whatever comes from the proxy becomes a text node or a property, never HTML.

const byId = (id) => document.getElementById(id);
const POLL_MS = 1000;
let session = null;
let timer = null;
let lastAnswer = 0;
let overview = null;

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

const text = (value) => value ?? unknown;
const keyOfQueue = (each) => JSON.stringify([each.keyspace, each.queue]);

// --- what needs attention ------------------------------------------------------------------

// Worst first: what stands still, then what will.
function troubles(all) {
  const found = [];
  const add = (tone, sentence) => found.push({ tone, sentence });
  for (const shard of all.shards) {
    const name = `${shard.keyspace}/${shard.shard}`;
    if (!shard.is_up) add("bad", `Shard ${name} on ${shard.server} does not answer: ${shard.trouble}`);
    else if (shard.pool_waiting) add("warn", `${count(shard.pool_waiting)} statements wait for a connection to shard ${name}; its pool of ${shard.pool_size} is in use`);
  }
  for (const member of all.members) {
    if (member.is_stopping) add("bad", "This proxy is stopping");
  }
  for (const queue of all.queues) {
    const name = `${queue.keyspace}.${queue.queue}`;
    if (queue.error) add("bad", `Queue ${name} cannot be used: ${queue.error}`);
    else if (queue.paused) add("warn", `Queue ${name} is paused${queue.depth ? `; ${count(queue.depth)} messages wait` : ""}`);
    else if (queue.depth && !queue.streams) add("warn", `Queue ${name} has ${count(queue.depth)} messages and no stream`);
    else if (queue.oldest_due_s > 60) add("warn", `Queue ${name}: a message has been due for ${seconds(queue.oldest_due_s)}`);
  }
  for (const stream of all.streams) {
    if (stream.full_s > 60) add("warn", `Stream ${stream.connection_id} of ${stream.user} on ${stream.keyspace}.${stream.queue} holds ${count(stream.held)} messages and has acked none for ${seconds(stream.full_s)}`);
  }
  return found.sort((a, b) => (a.tone === "warn") - (b.tone === "warn"));
}

class Verdict {
  constructor() {
    this.head = h("h1");
    this.list = h("ul");
    this.element = h("section", { class: "card verdict", "aria-live": "polite" }, this.head, this.list);
  }

  update(all) {
    const found = troubles(all);
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
  if (!cell.firstChild) cell.append(h("span"), h("span", { class: "tag" }));
  const [name, tag] = cell.children;
  say(name, `${queue.keyspace}.${queue.queue}`);
  const state = queue.error ? "cannot be used" : queue.paused ? "paused" : "";
  say(tag, state);
  tag.hidden = !state;
}

function depthCell(cell, queue) {
  say(cell, queue.depth == null ? unknown : `${queue.depth_is_exact ? "" : "≈ "}${count(queue.depth)}`);
}

function queueTable() {
  return new Table("Queues", [
    { label: "Queue", value: keyOfQueue, update: queueCell },
    { label: "Depth", key: "depth", num: true, update: depthCell },
    { label: "Due", key: "due", num: true, show: count },
    { label: "In flight", key: "in_flight", num: true, show: count },
    { label: "Waiting", key: "waiting", num: true, show: count },
    { label: "Retries/s", key: "retried_per_s", num: true, show: rate },
    { label: "Oldest due", key: "oldest_due_s", num: true, show: seconds },
    { label: "In/s", key: "in_per_s", num: true, show: rate },
    { label: "Sent/s", key: "sent_per_s", num: true, show: rate },
    { label: "Acked/s", key: "out_per_s", num: true, show: rate },
    { label: "Due → sent p50", key: "due_to_sent_p50_s", num: true, show: seconds },
    { label: "p99", key: "due_to_sent_p99_s", num: true, show: seconds },
    { label: "Sent → acked p50", key: "sent_to_acked_p50_s", num: true, show: seconds },
    { label: "p99", key: "sent_to_acked_p99_s", num: true, show: seconds },
    { label: "Streams", key: "streams", num: true, show: count },
  ], keyOfQueue, {
    tone: (queue) => (queue.error ? "bad" : queue.paused || queue.oldest_due_s > 60 ? "warn" : ""),
    empty: "No queue here that you may see. CREATE QUEUE makes one.",
  });
}

function streamTable() {
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
  ], (each) => JSON.stringify([each.keyspace, each.shard]), {
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
    { label: "State", key: "is_stopping", show: (value) => (value ? "stopping" : "serves") },
  ], (each) => each.member ?? "", { empty: "No member." });
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

  update(all) {
    this.verdict.update(all);
    for (const name of ["queues", "streams", "shards", "members"]) this.tables[name].update(all[name]);
    this.tables.limits.update(Object.entries(all.limits).map(([key, value]) => ({ key, value })));
    const found = troubles(all).length;
    document.title = found ? `(${found}) streamfrom` : "streamfrom";
  }
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
    const all = await ask("/api/overview");
    if (!session) return;
    lastAnswer = Date.now();
    overview.update(all);
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
  overview = new Overview();
  byId("view").replaceChildren(overview.element);
  lastAnswer = Date.now();
  await poll();
}

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  say(byId("refusal"), "");
  try {
    await ask("/api/login", { user: byId("name").value, password: byId("password").value });
    byId("password").value = "";
    await begin();
    byId("main").focus();
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
