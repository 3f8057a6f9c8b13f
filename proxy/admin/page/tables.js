// The tables of the page: their columns, and what each means.

import { ask, confirm, login } from "./ask.js";
import { bytes, count, h, queueHref, queueName, rate, say, seconds, text, unknown } from "./dom.js";
import { Table } from "./table.js";

const keyOfQueue = (each) => JSON.stringify([each.keyspace, each.queue]);

function queueCell(cell, queue) {
  if (!cell.firstChild) cell.append(queue.error ? h("span") : h("a", { href: queueHref(queue) }), h("span", { class: "tag" }));
  const [name, tag] = cell.children;
  say(name, queueName(queue));
  const state = queue.error ? "cannot be used" : queue.is_paused ? "paused" : "";
  say(tag, state);
  tag.hidden = !state;
}

// What a limit allows stands behind the figure that it limits.
const limited = (shown, most, show) => (most == null ? shown : `${shown} of ${show(most)}`);
const PARKED_COUNTED_MAX = 10000;
const latency = (name) => (each) => (each[`${name}_p99_s`] == null ? unknown : `${seconds(each[`${name}_p50_s`])} / ${seconds(each[`${name}_p99_s`])}`);
const cell = (show) => (element, each) => say(element, show(each));

// How figures are shown that are more than a number in a unit.
const SHOWS = {
  depth: (each) => (each.depth == null ? unknown : `${each.depth_is_exact ? "" : "≈ "}${count(each.depth)}`),
  in_flight: (each) => limited(count(each.in_flight), each.max_in_flight, count),
  parked: (each) => `${each.parked > PARKED_COUNTED_MAX ? "≈ " : ""}${count(each.parked)}`,
  delivery_latency_p99_s: latency("delivery_latency"),
  ack_latency_p99_s: latency("ack_latency"),
  delivered_per_s: (each) => limited(rate(each.delivered_per_s), each.max_rate, rate),
};
const UNITS = { count, total: count, seconds, rate };
// What the page alone knows, as it has a history.
const RATES = [
  { name: "in_per_s", unit: "rate", label: "In/s", help: "Messages inserted or made ready a second, over about ten seconds." },
  { name: "delivered_per_s", unit: "rate", label: "Delivered/s", help: "Messages delivered to streams a second, and the most that vt_max_rate allows." },
  { name: "out_per_s", unit: "rate", label: "Acked/s", help: "Messages acknowledged or deleted a second." },
];
const REDELIVERED = { name: "redelivered_per_s", unit: "rate", label: "Redelivered/s", help: "Messages delivered again a second." };
const columnOf = ({ name, unit, label, help }) => {
  const show = SHOWS[name] ?? ((each) => UNITS[unit](each[name]));
  return { label, key: name, help, num: true, wrap: name.includes("latency"), show, update: cell(show) };
};

// The figures of a queue, which the proxy lists with the session; totals, since the start, are shown on its own page alone.
export function figuresOfQueue() {
  const isTotal = ({ unit }) => unit === "total";
  const { figures } = login.session;
  return {
    now: [...figures.filter((each) => !isTotal(each)), ...RATES].map(columnOf),
    totals: [REDELIVERED, ...figures.filter(isTotal)].map(columnOf),
  };
}

export function queueTable() {
  return new Table("Queues", [
    { label: "Queue", value: queueName, update: queueCell, help: "Keyspace and queue. The link leads to its charts, messages, streams and settings." },
    ...figuresOfQueue().now,
  ], keyOfQueue, {
    tone: (queue) => (queue.error ? "bad" : queue.is_paused || queue.oldest_ready_age_s > 60 || queue.parked ? "warn" : ""),
    empty: "No queue here that you may see. CREATE QUEUE makes one.",
  });
}

function endStream(stream) {
  confirm(`Disconnect stream ${stream.connection_id}?`,
    `${stream.user} from ${stream.host} gets an error, and may stream ${queueName(stream)} again. What it holds is ready again later.`,
    "Disconnect", () => ask("/api/end-stream", { connection_id: stream.connection_id }));
}

export function streamTable() {
  return new Table("Streams", [
    { label: "Connection", key: "connection_id", num: true, help: "The id that KILL takes." },
    { label: "Queue", value: keyOfQueue, update: cell(queueName), help: "What it streams." },
    { label: "User", key: "user", help: "The user that has logged in." },
    { label: "From", key: "host", help: "The client's address." },
    { label: "Shards", key: "shards", show: (value) => value ?? "all", help: "The shards that the stream is narrowed to." },
    { label: "Open", key: "open_s", num: true, show: seconds, help: "For how long it has been open." },
    { label: "Delivered", key: "delivered", num: true, show: count, help: "Messages delivered to it so far." },
    { label: "Unacked", key: "unacked", num: true, show: count, help: "Messages that it holds and has not acknowledged." },
    { label: "Prefetch", key: "prefetch", num: true, show: (value) => (value ? count(value) : "no limit"), help: "How many unacknowledged messages it may hold." },
    { label: "Oldest unacked", key: "oldest_unacked_age_s", num: true, show: seconds, help: "For how long it has held the first of these." },
    { label: "Stalled for", key: "stalled_s", num: true, show: seconds, help: "For how long it has held all that it may without an acknowledgement." },
    { label: "Member", key: "member", show: text, help: "The proxy that the client is connected to." },
    { label: "Action", help: "Disconnect the stream. Its client gets an error and stays connected.",
      make: (each) => h("button", { type: "button", onclick: () => endStream(each), "aria-label": `Disconnect stream ${each.connection_id}` }, "Disconnect…") },
  ], (each) => JSON.stringify([each.connection_id, each.keyspace, each.queue]), {
    tone: (each) => (each.stalled_s > 60 ? "warn" : ""),
    empty: "No stream is open that you may see.",
  });
}

export function shardTable() {
  const name = (each) => `${each.keyspace}/${each.shard}`;
  return new Table("Shards", [
    { label: "Shard", value: name, update: cell(name), help: "Keyspace and shard." },
    { label: "State", key: "is_up", text: true, update: cell((each) => (each.is_up ? "answers" : each.last_error ?? "down")), help: "Whether the primary answers, or why not." },
    { label: "Server", key: "server", help: "The primary's address." },
    { label: "Version", key: "version", help: "What the server says it is." },
    { label: "Pool in use", key: "pool_in_use", num: true, show: count, help: "Connections that sessions use now." },
    { label: "Pool open", key: "pool_open", num: true, show: count, help: "Connections that are open." },
    { label: "Pool size", key: "pool_size", num: true, show: count, help: "How many there may be: pool_size." },
    { label: "Pool waiters", key: "pool_waiters", num: true, show: count, help: "Statements that wait for a connection." },
    { label: "Seen by", key: "member", show: (value) => value ?? "this proxy", help: "The member whose view this is." },
    { label: "Dispatched there", key: "is_dispatched", show: (value) => (value ? "yes" : "no"), help: "Whether that member sends the shard's messages." },
  ], (each) => JSON.stringify([each.keyspace, each.shard, each.member]), {
    tone: (each) => (each.is_up ? (each.pool_waiters ? "warn" : "") : "bad"),
    empty: "No shard that you may see.",
  });
}

export function memberTable() {
  return new Table("Members", [
    { label: "Member", key: "member", show: (value) => value ?? "this proxy, alone", help: "The proxies that share the shards." },
    { label: "Version", key: "version", help: "Of streamfrom." },
    { label: "Up", key: "uptime_s", num: true, show: seconds, help: "Since its start." },
    { label: "Clients", key: "connections", num: true, show: count, help: "Connections of clients." },
    { label: "Streams", key: "streams", num: true, show: count, help: "Open streams of these." },
    { label: "Statements", key: "questions", num: true, show: count, help: "Statements since its start." },
    { label: "Address", key: "address", show: text, help: "Where the other members reach it." },
    { label: "Dispatches", key: "dispatches", show: text, help: "The shards whose messages it sends." },
    { label: "State", key: "is_answering", text: true, update: cell((each) => (each.is_answering ? (each.is_stopping ? "stopping" : "serves") : each.error)), help: "Whether it answers, or why not." },
  ], (each) => each.member ?? "", { tone: (each) => (each.is_answering ? "" : "bad"), empty: "No member." });
}

export function limitTable() {
  const inWords = ({ key, value }) => {
    if (!value && /timeout$|_per_address$/.test(key)) return "no limit";
    if (/memory$|packet$/.test(key)) return bytes(value);
    return /^max_/.test(key) ? count(value) : seconds(value);
  };
  return new Table("Limits", [
    { label: "Setting of [server]", key: "key", help: "As the configuration calls it." },
    { label: "In force", num: true, value: (each) => each.value, update: cell(inWords), help: "Its value now, after the last reload." },
  ], (each) => each.key, { empty: "" });
}

export function queueShardTable() {
  return new Table("Shards of the queue", [
    { label: "Shard", key: "shard", help: "A part of the keyspace, on a server of its own." },
    ...figuresOfQueue().now.filter(({ key }) => !key.includes("_per_s")),
  ], (each) => each.shard, { empty: "No shard." });
}

export function settingTable() {
  const inWords = ({ key, value }) => {
    if (value === true) return "on";
    if (value === false) return "off";
    if (value == null) return "none";
    return typeof value === "number" && /wait|after|interval|backoff|delay/.test(key) ? seconds(value) : String(value);
  };
  return new Table("Settings", [
    { label: "Setting", key: "key", help: "A key of the table's comment. ALTER QUEUE … SET changes it." },
    { label: "In force", num: true, value: (each) => String(each.value), update: cell(inWords), help: "Its value now." },
  ], (each) => each.key, { empty: "" });
}
