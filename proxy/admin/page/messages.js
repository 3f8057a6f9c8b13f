// The messages of a queue: browse them by state, find some, see one whole, act on one, on the selected or on all that match.

import { ask, confirm, leftOut, login, openDialog, repeated } from "./ask.js";
import { count, fromNow, h, moment, plural, say, unknown } from "./dom.js";

const STATES = [
  ["ready", "Ready", "Sent as soon as a stream has room."],
  ["in_flight", "In flight", "Sent to a stream, which has not acknowledged them yet. They are ready again when their leases end."],
  ["scheduled", "Scheduled", "For later: at their own time, or for another attempt. The latest come first."],
  ["blocked", "Blocked", "Sent once the group that each waits for is done."],
  ["parked", "Parked", "Sent as often as vt_max_attempts says, or parked by a worker or here. They stay until you requeue them."],
  ["acked", "Acknowledged", "The latest of each shard. The purge deletes them when they are old enough."],
  ["all", "All", "Every row, in the order of the ids."],
];
const WORDS = { ...Object.fromEntries(STATES.map(([state, word]) => [state, word])), unknown: "In flight or scheduled" };

// What is done, the button, whom it fits, and what follows from it.
const ACTIONS = [
  ["retry", "Retry now", (state) => state !== "acked", "They are ready at once, with all their attempts before them. A stream that holds one now loses it, and the message is delivered again."],
  ["ack", "Acknowledge", (state) => state !== "acked", "They count as done and are never delivered again. The purge deletes them later."],
  ["park", "Park", (state) => state !== "acked" && state !== "parked", "They are not delivered until you retry or requeue them. A stream that holds one now loses it."],
  ["delete", "Delete", () => true, "Their rows are deleted at once, and nothing brings them back."],
];
// All at once would lock rows for long; a request that only finds looks at as many.
const AT_ONCE = 500;
const SELECTED_AT_ONCE = 200;
// A find goes on by itself until it has a page, or has asked so often.
const ROWS_WANTED = 20;
const REQUESTS_MAX = 20;
const PRETTY_MAX = 2 << 20;

// JSON with line breaks; digits stay as they are, which JSON.parse would round.
function pretty(value) {
  try {
    if (!/^\s*[[{]/.test(value) || value.length > PRETTY_MAX) return value;
    JSON.parse(value);
  } catch {
    return value;
  }
  const parts = [];
  let depth = 0;
  const line = () => parts.push("\n", "  ".repeat(depth));
  const tokens = value.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  tokens.forEach((token, index) => {
    if (token === "}" || token === "]") {
      depth -= 1;
      if (!"[{".includes(tokens[index - 1])) line();
    }
    parts.push(token);
    if (token === ":") parts.push(" ");
    if (token === ",") line();
    if ((token === "{" || token === "[") && !"]}".includes(tokens[index + 1])) {
      depth += 1;
      line();
    } else if (token === "{" || token === "[") depth += 1;
  });
  return parts.join("");
}

function when(row) {
  if (row.state === "acked") return row.time_acked == null ? unknown : moment(row.time_acked);
  if (row.state === "in_flight") return `lease ends ${fromNow(row.held_until)}`;
  if (row.state === "parked" || row.state === "blocked") return unknown;
  return moment(row.time_next ?? "0");
}

export class Messages {
  constructor(keyspace, queue) {
    Object.assign(this, { keyspace, queue, asked: 0, state: STATES[0], match: {}, selected: new Map(), next: null, columns: [], rows: [] });
    this.buttons = STATES.map((state) => h("button", { type: "button", "aria-pressed": "false", onclick: () => this.show(state) }, state[1]));
    this.column = h("select", { id: "column" });
    this.how = h("select", { id: "how", "aria-label": "How it matches" }, h("option", { value: "is" }, "is"), h("option", { value: "contains" }, "contains"));
    this.value = h("input", { id: "value", "aria-label": "Value", autocomplete: "off", spellcheck: "false" });
    this.form = h("form", { class: "find", onsubmit: (event) => this.find(event) },
      h("label", { for: "column" }, "Where"), this.column, this.how, this.value,
      h("button", { type: "submit" }, "Find"), h("button", { type: "button", onclick: () => this.clear() }, "Clear"));
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.read(this.next) }, "Next page");
    this.note = h("p", { class: "note", role: "status" }, "Choose which to look at. Nothing is taken from the streams.");
    this.missing = h("p", { class: "refusal", role: "alert", hidden: true });
    this.whom = h("select", { "aria-label": "Act on", onchange: () => this.fit() }, h("option", { value: "selected" }), h("option", { value: "all" }, "all that match"));
    this.acts = ACTIONS.map((action) => h("button", { type: "button", onclick: () => this.act(action) }, `${action[1]}…`));
    this.toolbar = h("div", { class: "buttons states", role: "group", "aria-label": "Actions", hidden: true }, this.whom, ...this.acts);
    this.every = h("input", { type: "checkbox", "aria-label": "Select all on this page", onchange: () => this.selectAll(this.every.checked) });
    this.head = h("tr");
    this.body = h("tbody");
    this.scroll = h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Messages", hidden: true },
      h("table", {}, h("caption", { hidden: true }, "Messages"), h("thead", {}, this.head), this.body));
    this.element = h("div", {}, h("div", { class: "buttons states", role: "group", "aria-label": "State of the messages" }, ...this.buttons),
      this.form, this.note, this.missing, this.toolbar, this.scroll, this.more);
  }

  get place() {
    return { keyspace: this.keyspace, queue: this.queue };
  }

  // The columns that can be looked for.
  know(columns) {
    if (this.column.childElementCount) return;
    this.column.append(...columns.map((name) => h("option", { value: name }, name)));
  }

  show(state) {
    this.state = state;
    this.selected.clear();
    this.buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(STATES[index] === state)));
    return this.read("");
  }

  find(event) {
    event.preventDefault();
    this.match = this.value.value ? { column: this.column.value, how: this.how.value, value: this.value.value } : {};
    // What is looked for by its value is mostly wanted in whatever state it is.
    const untouched = this.buttons.every((button) => button.getAttribute("aria-pressed") === "false");
    return this.show(untouched ? STATES.at(-1) : this.state);
  }

  clear() {
    this.value.value = "";
    this.match = {};
    return this.show(this.state);
  }

  async read(cursor) {
    const number = ++this.asked;
    const rows = [];
    const missing = new Map();
    let looked = 0;
    let following = cursor;
    try {
      for (let request = 0; request < REQUESTS_MAX && following !== null && rows.length < ROWS_WANTED; request += 1) {
        const query = new URLSearchParams({ ...this.place, state: this.state[0], ...this.match, cursor: following });
        const page = await ask(`/api/messages?${query}`);
        if (number !== this.asked) return;
        rows.push(...page.rows);
        for (const each of page.missing) missing.set(each.shard, each.reason);
        looked += page.looked_at;
        following = page.next;
        this.columns = page.columns;
        if (!this.match.column) break;
        say(this.note, `Looked at ${plural(looked, "message")}, found ${count(rows.length)}…`);
      }
      this.next = following;
      this.update(rows, missing, looked, cursor);
    } catch (error) {
      if (number !== this.asked) return;
      say(this.missing, error.message || "no answer");
      this.missing.hidden = false;
    }
  }

  update(rows, missing, looked, cursor) {
    this.rows = rows;
    const heads = ["Id", "State", "Attempts", "When", "Shard", ...this.columns];
    this.head.replaceChildren(h("th", { scope: "col" }, this.every), ...heads.map((name) => h("th", { scope: "col" }, h("span", {}, name))));
    this.body.replaceChildren(...rows.map((row) => this.line(row)));
    this.scroll.hidden = !rows.length;
    this.more.hidden = !this.next;
    say(this.more, this.match.column ? "Search on" : "Next page");
    const found = rows.length ? `${count(rows.length)} here${this.next ? ", and more may follow" : ""}.` : cursor || this.next ? "None on this page." : "There is none.";
    const scanned = this.match.column ? `Looked at ${plural(looked, "message")}${this.next ? "; there are more" : ""}. ` : "";
    say(this.note, `${this.state[2]} ${scanned}${found}`);
    say(this.missing, leftOut(missing));
    this.missing.hidden = !missing.size;
    this.fit();
  }

  line(row) {
    const key = JSON.stringify([row.shard, row.key]);
    const box = h("input", { type: "checkbox", "aria-label": `Select ${row.id}`, checked: this.selected.has(key), onchange: () => this.select(key, row, box.checked) });
    row.box = box;
    return h("tr", {}, h("td", {}, box),
      h("th", { scope: "row" }, h("button", { type: "button", class: "link", onclick: () => this.open(row) }, row.id)),
      h("td", {}, WORDS[row.state]), h("td", { class: "num" }, count(row.attempts)), h("td", {}, when(row)), h("td", {}, row.shard),
      ...row.values.map((value) => h("td", { class: "text" }, value ?? "NULL")));
  }

  select(key, row, on) {
    if (on) this.selected.set(key, { shard: row.shard, key: row.key });
    else this.selected.delete(key);
    this.fit();
  }

  selectAll(on) {
    for (const row of this.rows) {
      row.box.checked = on;
      this.select(JSON.stringify([row.shard, row.key]), row, on);
    }
  }

  fit() {
    const chosen = this.selected.size;
    this.toolbar.hidden = !this.rows.length && !chosen;
    say(this.whom.options[0], `the ${count(chosen)} selected`);
    const none = this.whom.value === "selected" && !chosen;
    this.acts.forEach((button, index) => {
      button.disabled = none;
      button.hidden = !ACTIONS[index][2](this.state[0]);
    });
    const drawn = this.rows.map((row) => row.box.checked);
    this.every.checked = drawn.length > 0 && drawn.every(Boolean);
    this.every.indeterminate = drawn.some(Boolean) && !this.every.checked;
  }

  act(action) {
    if (this.whom.value === "all") this.actOnAll(action);
    else this.actOn(action, [...this.selected.values()], plural(this.selected.size, "message"));
  }

  actOn([action, word, , consequence], messages, which) {
    confirm(`${word}: ${which}?`, consequence, word, async (run) => {
      let at = 0;
      const done = await repeated(run, SELECTED_AT_ONCE, async (limit) => {
        const answer = await ask("/api/act", { ...this.place, action, messages: messages.slice(at, at += limit) });
        return { ...answer, next: at < messages.length ? "" : null };
      });
      this.selected.clear();
      await this.read("");
      say(this.note, `${word}: ${count(done)} of ${count(messages.length)} done. ${this.note.textContent}`);
    });
  }

  actOnAll([action, word, , consequence]) {
    const { column, how, value } = this.match;
    const which = `${this.state[0] === "all" ? "all messages" : `all messages that are ${this.state[1].toLowerCase()}`}${column ? ` and whose ${column} ${how} “${value}”` : ""}`;
    confirm(`${word}: ${which}?`, consequence, word, async (run) => {
      const done = await repeated(run, AT_ONCE, (limit, cursor) =>
        ask("/api/act", { ...this.place, action, state: this.state[0], ...this.match, limit, cursor }));
      await this.read("");
      say(this.note, `${word}: ${count(done)} done. ${this.note.textContent}`);
    }, { paced: true });
  }

  async open(row) {
    let found;
    try {
      const query = new URLSearchParams({ ...this.place, shard: row.shard, key: row.key });
      found = await ask(`/api/message?${query}`);
    } catch (error) {
      say(this.missing, error.message || "no answer");
      this.missing.hidden = false;
      return;
    }
    const time = (ns) => (ns == null ? "none" : ns === "0" ? "0: ready from the start" : `${moment(ns)} (${fromNow(ns)})`);
    const next = found.state === "parked" ? "never: parked" : found.state === "blocked" ? "once its group is done" : time(found.time_next);
    const holder = login.streams?.find((one) => one.connection_id === found.held_by);
    const facts = [
      ["State", WORDS[found.state]], ["Attempts", count(found.attempts)], ["Priority", found.priority ?? unknown],
      ["Next delivery (time_next)", found.state === "acked" ? "none" : next], ["Acknowledged (time_acked)", time(found.time_acked)],
      ...(found.state === "in_flight" ? [["Held by", `${found.held_by == null ? "a stream that is gone" : `connection ${found.held_by}`}${holder ? `, ${holder.user} from ${holder.host}` : ""}, until ${moment(found.held_until)} (${fromNow(found.held_until)})`]] : []),
      ["Shard", found.shard],
    ];
    const close = h("button", { type: "button" }, "Close");
    const dialog = openDialog(`Message ${found.id}`,
      h("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))])),
      ...found.values.flatMap(({ name, value }) => [h("h3", {}, name), value == null ? h("p", { class: "note" }, "NULL")
        : h("pre", { tabindex: 0, role: "region", "aria-label": name, class: name === "last_error" ? "refusal" : null }, pretty(value))]),
      h("div", { class: "buttons" }, ...ACTIONS.filter((action) => action[2](found.state)).map((action) =>
        h("button", { type: "button", onclick: () => { dialog.close(); this.actOn(action, [{ shard: row.shard, key: row.key }], `message ${found.id}`); } }, `${action[1]}…`)), close));
    dialog.classList.add("wide");
    close.addEventListener("click", () => dialog.close());
    close.focus();
  }
}
