// What needs attention: one line for each kind of trouble, worst first.

import { classed, count, h, plural, queueHref, queueName, say, seconds } from "./dom.js";

const CLOCK_OFF_S = 5;
const CERTIFICATE_SOON_S = 14 * 86400;
const OLD_S = 60;
const NAMED_MAX = 5;

const shardName = (each) => `${each.keyspace}/${each.shard}`;
const memberName = (each) => each.member ?? "this proxy";
const parkedMany = (queue) => `${queue.parked > 10000 ? "≈ " : ""}${count(queue.parked)}`;

function clockOff({ asked_s, answered_s }, member) {
  if (member.clock_unix_s == null) return 0;
  return Math.max(asked_s - member.clock_unix_s, 0) || Math.min(answered_s - member.clock_unix_s, 0);
}

function isAuto(all, stream) {
  return all.queues.some((queue) => queue.keyspace === stream.keyspace && queue.queue === stream.queue && queue.prefetch === null);
}

// tone, which records of what it concerns, its words for so many, and what stands behind the name of each.
const KINDS = [
  ["bad", "shards", (each) => !each.is_up, (n) => (n === 1 ? "A shard does not answer" : `${n} shards do not answer`), (each) => `${each.server}: ${each.last_error}`],
  ["bad", "members", (each) => each.is_stopping, (n) => (n === 1 ? "A member is stopping" : `${n} members are stopping`), () => ""],
  ["bad", "members", (each) => !each.is_stopping && !each.is_answering, (n) => `${n === 1 ? "A member does" : `${n} members do`} not answer, and figures leave ${n === 1 ? "it" : "them"} out`, (each) => each.error],
  ["bad", "members", (each, all) => Math.abs(clockOff(all, each)) > CLOCK_OFF_S,
    (n) => `${n === 1 ? "A clock differs" : `${n} clocks differ`} from this browser's: one of them is wrong, and messages are due by the members' clocks`,
    (each, all) => `${seconds(Math.abs(clockOff(all, each)))} ${clockOff(all, each) > 0 ? "behind" : "ahead"}`],
  ["bad", "members", (each) => each.certificate_expires_in_s != null && each.certificate_expires_in_s <= 0, (n) => `${n === 1 ? "A certificate has" : `${n} certificates have`} expired: clients that check ${n === 1 ? "it" : "them"} do not connect`, () => ""],
  ["bad", "queues", (each) => each.error, (n) => `${n === 1 ? "A queue" : `${n} queues`} cannot be used`, (each) => each.error],
  ["warn", "queues", (each) => each.parked, (n, all, found) => `${plural(found.reduce((sum, each) => sum + each.parked, 0), "message")} parked in ${n === 1 ? "a queue" : `${n} queues`}, not delivered again until you requeue ${found[0].parked === 1 && n === 1 ? "it" : "them"}`, parkedMany],
  ["warn", "queues", (each) => each.dead_lettered, (n, all, found) => `${plural(found.reduce((sum, each) => sum + each.dead_lettered, 0), "dead letter")} of ${n === 1 ? "a queue" : `${n} queues`}`, (each) => count(each.dead_lettered)],
  ["warn", "queues", (each) => each.set_aside, (n) => `The server refuses to write rows of ${n === 1 ? "a queue" : `${n} queues`}: SELECT * FROM streamfrom.set_aside lists them`, (each) => count(each.set_aside)],
  ["warn", "queues", (each) => !each.error && each.is_paused, (n) => (n === 1 ? "A queue is paused" : `${n} queues are paused`), (each) => (each.depth ? `${count(each.depth)} unacked` : "")],
  ["warn", "queues", (each) => !each.error && !each.is_paused && each.depth && !each.streams, (n) => (n === 1 ? "A queue has messages and no stream" : `${n} queues have messages and no stream`), (each) => count(each.depth)],
  ["warn", "queues", (each) => !each.error && !each.is_paused && each.streams && each.oldest_ready_age_s > OLD_S, (n) => `Messages of ${n === 1 ? "a queue" : `${n} queues`} have been ready for over a minute`, (each) => `the oldest for ${seconds(each.oldest_ready_age_s)}`],
  ["warn", "streams", (each) => each.stalled_s > OLD_S,
    (n, all, found) => `${n === 1 ? "A stream has" : `${n} streams have`} stalled: ${n === 1 ? "it holds" : "they hold"} all that ${n === 1 ? "it" : "they"} may, and acknowledged nothing for over a minute${found.some((each) => isAuto(all, each)) ? ". If a client collects n messages before it acknowledges them, write STREAM /*vt+ PREFETCH=n */, or take them with STREAM … LIMIT n" : ""}`,
    (each) => `${each.user}, ${count(each.unacked)} unacked for ${seconds(each.stalled_s)}`],
  ["warn", "shards", (each) => each.is_up && each.pool_waiters, (n) => `Statements wait for a connection to ${n === 1 ? "a shard" : `${n} shards`}, whose pool is in use`, (each) => `${count(each.pool_waiters)} wait, ${count(each.pool_size)} in use`],
  ["warn", "members", (each) => each.certificate_expires_in_s > 0 && each.certificate_expires_in_s < CERTIFICATE_SOON_S, (n) => (n === 1 ? "A certificate expires soon" : `${n} certificates expire soon`), (each) => `in ${seconds(each.certificate_expires_in_s)}`],
  ["warn", "queues", (each) => each.partitions_overdue, (n) => `Partitions of ${n === 1 ? "a queue" : `${n} queues`} are overdue: the log says why they can be neither dropped nor made`, (each) => count(each.partitions_overdue)],
];

const NAMES = {
  shards: [shardName, () => "#shards"],
  members: [memberName, () => "#members"],
  queues: [queueName, (each) => (each.error ? "#queues" : queueHref(each))],
  streams: [(each) => `${queueName(each)} (connection ${each.connection_id})`, queueHref],
};

// all: the overview, with asked_s and answered_s, when it was asked for and came, by this browser's clock.
export function attention(all) {
  return KINDS.flatMap(([tone, what, fits, words, detail]) => {
    const found = all[what].filter((each) => fits(each, all));
    if (!found.length) return [];
    const [name, href] = NAMES[what];
    const named = found.slice(0, NAMED_MAX).map((each) => ({ name: name(each), href: href(each), detail: detail(each, all) }));
    return [{ tone, words: words(found.length, all, found), named, more: found.length - named.length, table: `#${what}` }];
  });
}

export class Verdict {
  constructor() {
    this.head = h("h1");
    this.list = h("ul");
    this.shown = [];
    this.element = h("section", { class: "card verdict", "aria-live": "polite" }, this.head, this.list);
  }

  update(found) {
    classed(this.element, `card verdict ${found.length ? found[0].tone : ""}`.trim());
    say(this.head, found.length === 0 ? "All is well" : found.length === 1 ? "One thing needs attention" : `${found.length} things need attention`);
    while (this.list.childElementCount > found.length) this.list.lastChild.remove();
    found.forEach((each, index) => {
      const key = JSON.stringify(each);
      if (this.shown[index] === key && this.list.children[index]) return;
      this.shown[index] = key;
      const line = h("li", { class: each.tone }, `${each.words}: `,
        ...each.named.flatMap(({ name, href, detail }, at) => [at ? ", " : "", h("a", { href }, name), detail ? ` (${detail})` : ""]),
        ...(each.more ? [", and ", h("a", { href: each.table }, `${count(each.more)} more`)] : []));
      if (this.list.children[index]) this.list.children[index].replaceWith(line);
      else this.list.append(line);
    });
  }
}
