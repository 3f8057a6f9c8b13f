// The status page: who is logged in, which view is shown, and a look each second.

import { ask, login } from "./ask.js";
import { attention, Verdict } from "./attention.js";
import { byId, classed, h, say } from "./dom.js";
import { QueuePage } from "./queue.js";
import { limitTable, memberTable, queueTable, shardTable, streamTable } from "./tables.js";

const POLL_MS = 1000;
let timer = null;
let lastAnswer = 0;
let view = null;

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
    this.update(all, attention({ ...all, asked_s, answered_s: Date.now() / 1000 }));
  }

  update(all, found) {
    this.verdict.update(found);
    for (const name of ["queues", "streams", "shards", "members"]) this.tables[name].update(all[name]);
    this.tables.limits.update(Object.entries(all.limits).map(([key, value]) => ({ key, value })));
    document.title = found.length ? `(${found.length}) streamfrom` : "streamfrom";
  }
}

async function poll() {
  clearTimeout(timer);
  try {
    const shown = view;
    await shown.poll();
    if (!login.session || shown !== view) return;
    lastAnswer = Date.now();
    live("live", "live");
  } catch (error) {
    if (!login.session) return;
    const silent = Math.round((Date.now() - lastAnswer) / 1000);
    // A reader of old figures must know that they are old.
    live(`No figures for ${silent} s: ${error.message || "no answer"}`, "live bad");
  }
  timer = setTimeout(poll, document.hidden ? POLL_MS * 10 : POLL_MS);
}

function live(words, kind) {
  say(byId("live"), words);
  classed(byId("live"), kind);
}

function showLogin() {
  login.session = null;
  clearTimeout(timer);
  live("", "live");
  // They may show a message, and keep the focus from the login.
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  byId("view").replaceChildren();
  byId("view").hidden = byId("who").hidden = byId("nav").hidden = true;
  byId("login").hidden = false;
  byId("name").focus();
}

async function begin() {
  try {
    login.session = await ask("/api/session");
  } catch (error) {
    if (error.status !== 401) {
      live(error.message || "no answer", "live bad");
      timer = setTimeout(begin, POLL_MS * 3);
    }
    return;
  }
  byId("login").hidden = true;
  byId("view").hidden = byId("nav").hidden = false;
  byId("who").hidden = login.session.is_open;
  say(byId("user"), login.session.user);
  lastAnswer = Date.now();
  await route();
}

// #/ is the overview, #/queue/<keyspace>/<queue> a queue's page; any other name a place on the page.
async function route() {
  if (!login.session) return;
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

login.over = showLogin;
login.acted = poll;
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
  if (!document.hidden && login.session) poll();
});

begin();
