// Numbers and times as people read them; elements without a single line of HTML, so that data stays data.

export const fixed = (value, digits = 3) => (value == null ? "–" : value.toFixed(digits));
export const whole = (value) => (value == null ? "–" : Math.round(value).toLocaleString("en"));
export const percent = (value, digits = 0) => (value == null ? "–" : `${(100 * value).toFixed(digits)} %`);
export const time = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");

export function rate(value) {
  return value == null ? "–" : value >= 100 ? whole(value) : value.toFixed(value >= 10 ? 1 : 2);
}

export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let place = 0;
  while (value >= 1000 && place < units.length - 1) { value /= 1000; place += 1; }
  return `${value.toFixed(place && value < 100 ? 1 : 0)} ${units[place]}`;
}

export function span(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} days`;
}

export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.setAttribute("class", value);
    else if (name === "on") for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null)); // a string becomes a text node
  return element;
}

export const byId = (id) => document.getElementById(id);

export function say(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

export function bar(share, kind = "") {
  const filled = make("span", { class: `fill ${kind}` });
  filled.style.width = `${100 * Math.min(1, Math.max(0, share || 0))}%`;
  return make("span", { class: "track", "aria-hidden": "true" }, filled);
}

// Replaces the rows of a table, but leaves it alone where nothing has changed.
export function table(id, head, rows) {
  const body = make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells)));
  const row = make("tr", {}, ...head.map(([name, kind]) => make("th", { scope: "col", class: kind || "" }, name)));
  byId(id).replaceChildren(make("thead", {}, row), body);
}
export const cell = (content, kind = "") => make("td", { class: kind }, content);
export const head = (content) => make("th", { scope: "row" }, content);
