// Requests to the proxy, and the questions before an action.

import { byId, h, say } from "./dom.js";

// The session of the page; *over* is called when it has ended, *acted* when something was changed.
export const login = { session: null, over: () => {}, acted: () => {} };

export async function ask(path, body) {
  const options = { credentials: "same-origin", cache: "no-store", redirect: "error" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json", "X-CSRF-Token": login.session?.csrf ?? "" };
  }
  const answer = await fetch(path, options).catch(() => { throw new Error("no answer from the proxy"); });
  if (answer.status === 401 && path !== "/api/login") login.over();
  if (!answer.ok) throw Object.assign(new Error((await answer.text()).trim()), { status: answer.status });
  return answer.status === 204 ? null : answer.json();
}

// A dialog; the browser keeps the focus inside, and Escape closes it.
export function openDialog(title, ...children) {
  const dialog = h("dialog", { "aria-labelledby": "question" }, h("h2", { id: "question" }, title), ...children);
  dialog.addEventListener("close", () => dialog.remove());
  byId("main").append(dialog);
  dialog.showModal();
  return dialog;
}

// Ask before *act*, which gets {say, rate, stopped}; why it failed is shown in the same place.
// paced: whether a rate is asked for.
export function confirm(question, detail, word, act, { paced = false } = {}) {
  const refusal = h("p", { class: "refusal", role: "alert" });
  const progress = h("p", { role: "status" });
  const pace = h("input", { type: "number", min: 1, step: 1, inputmode: "numeric", id: "pace" });
  const go = h("button", { type: "button", class: "go" }, word);
  const back = h("button", { type: "button" }, "Cancel");
  const state = { stopped: false };
  const dialog = openDialog(question, h("p", {}, detail),
    h("p", { hidden: !paced }, h("label", { for: "pace" }, "At most a second (empty: as fast as it goes) "), pace),
    progress, refusal, h("div", { class: "buttons" }, back, go));
  back.addEventListener("click", () => {
    state.stopped = true;
    if (!go.disabled) dialog.close();
  });
  dialog.addEventListener("close", () => { state.stopped = true; });
  go.addEventListener("click", async () => {
    // What is no rate must not mean as fast as it goes.
    if (paced && !pace.reportValidity()) return;
    go.disabled = true;
    state.stopped = false;
    if (paced) say(back, "Stop");
    say(refusal, "");
    try {
      // A proxy that was started meanwhile has another token.
      login.session = await ask("/api/session");
      const rate = paced && pace.value ? Number(pace.value) : null;
      await act({ rate, say: (words) => say(progress, words), stopped: () => state.stopped });
      dialog.close();
    } catch (error) {
      say(refusal, error.message || "no answer");
      say(back, "Close");
    } finally {
      go.disabled = false;
      login.acted();
    }
  });
  back.focus();
}

// Ask again and again, *limit* messages at a time, until *step* returns null or it is stopped; keeps to a rate.
// Throws what is to be known about the shards that were left out.
export async function repeated({ rate, stopped, say: tell }, most, step) {
  const missing = new Map();
  let done = 0;
  let following = "";
  while (following !== null && !stopped()) {
    const begun = Date.now();
    const answer = await step(Math.min(most, rate ?? most), following);
    done += answer.done;
    following = answer.next;
    for (const each of answer.missing ?? []) missing.set(each.shard, each.reason);
    tell(`${done.toLocaleString("en")} done so far. They stay done if you stop or close the page.`);
    const left = rate && answer.done ? (answer.done / rate) * 1000 - (Date.now() - begun) : 0;
    if (following !== null && left > 0) await new Promise((go) => { setTimeout(go, left); });
  }
  if (missing.size) throw new Error(leftOut(missing));
  return done;
}

// missing: the reason by shard.
export const leftOut = (missing) => [...missing].map(([shard, reason]) => `Without shard ${shard}: ${reason}`).join("; ");
