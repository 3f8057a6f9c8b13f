// Elements and words. What comes from the proxy becomes a text node or a property, never HTML.

export const byId = (id) => document.getElementById(id);

// h("td", {class: "num"}, "text", element): strings become text nodes.
export function h(tag, attributes = {}, ...children) {
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
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function classed(element, name) {
  if (element.className !== name) element.className = name;
}

// --- figures in words ----------------------------------------------------------------------

export const unknown = "–";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const count = (value) => (value == null ? unknown : whole.format(value));
export const rate = (value) => (value == null ? unknown : (value < 100 ? one : whole).format(value));
export const text = (value) => value || unknown;
export const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

export function seconds(value) {
  if (value == null) return unknown;
  if (value < 0.001) return `${Math.round(value * 1e6)} µs`;
  if (value < 1) return `${one.format(value * 1000)} ms`;
  if (value < 120) return `${one.format(value)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  if (value < 172800) return `${one.format(value / 3600)} h`;
  return `${one.format(value / 86400)} d`;
}

export function bytes(value) {
  for (const [size, unit] of [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"]]) {
    if (value >= size) return `${one.format(value / size)} ${unit}`;
  }
  return `${value} B`;
}

const date = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium", fractionalSecondDigits: undefined });

// Nanoseconds since 1970, in the text of an integer, as a time of this browser's zone; rows that are ready from the start have 0.
export function moment(ns) {
  const milliseconds = Number(BigInt(ns) / 1000000n);
  if (milliseconds <= 0) return "from the start";
  const at = new Date(milliseconds);
  return Number.isNaN(at.getTime()) ? ns : `${date.format(at)}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export function fromNow(ns) {
  const s = Number(BigInt(ns) / 1000000n) / 1000 - Date.now() / 1000;
  return s > 0 ? `in ${seconds(s)}` : `${seconds(-s)} ago`;
}

export const queueName = (each) => `${each.keyspace}.${each.queue}`;
export const queueHref = (each) => `#/queue/${encodeURIComponent(each.keyspace)}/${encodeURIComponent(each.queue)}`;
