// The running H-loss as lines, what happened as marks, who answered as a strip below; readable by keyboard, too.

import { byId, cell, draw, fixed, head, make, say, table, time, whole } from "./format.js";
import { called, dashes, family, style } from "./models.js";

const PAD = { left: 42, right: 14, top: 22, bottom: 46 };
const GLYPHS = { drift: "M0-6 5 4H-5Z", swap: "M0-5 5 0 0 5-5 0Z", promoted: "M0-5 5 0 0 5-5 0Z", rollback: "M-4-4H4V4H-4Z" };
const WORDS = { drift: "drift", refit: "re-fit", refit_failed: "re-fit failed", swap: "swap", promoted: "promoted", rollback: "rollback" };
const RARE = ["drift", "swap", "promoted", "rollback"]; // these get a line and a word
const ROWS_IN_TABLE = 40;

const view = { series: null, measure: "recent", along: "labelled", hidden: new Set(), at: null, frame: null };

export function setUpChart() {
  press("by-recent", "by-mean", () => { view.measure = "recent"; });
  press("by-mean", "by-recent", () => { view.measure = "mean"; });
  press("by-documents", "by-time", () => { view.along = "labelled"; });
  press("by-time", "by-documents", () => { view.along = "time"; });
  const chart = byId("chart");
  new ResizeObserver(redraw).observe(chart);
  chart.addEventListener("pointermove", (event) => point(event.clientX - chart.getBoundingClientRect().left));
  chart.addEventListener("pointerleave", () => { view.at = null; redraw(); });
  chart.addEventListener("keydown", walk);
}

function press(id, other, change) {
  byId(id).addEventListener("click", () => {
    change();
    byId(id).setAttribute("aria-pressed", "true");
    byId(other).setAttribute("aria-pressed", "false");
    redraw();
  });
}

export function showSeries(series) {
  view.series = series;
  redraw();
}

function lines() {
  const { points } = view.series;
  const models = {};
  Object.keys(points.models).sort().forEach(style); // colours do not depend on who happens to answer
  for (const name of Object.keys(points.models).sort()) {
    const own = family(name);
    models[own] ??= [];
    models[own].push([name, points.models[name][view.measure]]);
  }
  return { served: [["served", points.served[view.measure]]], ...models };
}

function redraw() {
  if (!view.series || !view.series.points.labelled.length) return;
  const { points, events } = view.series;
  const box = byId("chart"), width = box.clientWidth, height = box.clientHeight;
  if (!width) return;
  const all = lines(), xs = points[view.along];
  const shown = Object.entries(all).filter(([own]) => !view.hidden.has(own));
  const values = shown.flatMap(([, parts]) => parts.flatMap(([, losses]) => losses)).filter((value) => value != null);
  const first = view.along === "labelled" ? 0 : xs[0], last = Math.max(xs.at(-1), first + 1e-9);
  const step = nice(Math.max(...values, 0.01) / (height < 300 ? 3 : 5)), top = step * Math.ceil(Math.max(...values, 0.01) / step + 0.05);
  const x = (value) => PAD.left + ((value - first) / (last - first)) * (width - PAD.left - PAD.right);
  const y = (value) => height - PAD.bottom - (value / top) * (height - PAD.top - PAD.bottom);
  view.frame = { x, y, xs, width };
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  for (let value = 0; value <= top + step / 2; value += step) {
    svg.append(draw("line", { class: "grid", x1: PAD.left, x2: width - PAD.right, y1: y(value), y2: y(value) }));
    svg.append(draw("text", { x: PAD.left - 7, y: y(value) + 4, "text-anchor": "end" }, String(+value.toFixed(6))));
  }
  for (const value of ticks(first, last, width)) {
    const label = view.along === "labelled" ? whole(value) : time(value);
    svg.append(draw("text", { x: x(value), y: height - 6, "text-anchor": "middle" }, label));
  }
  svg.append(strip(points, x, height), ...marks(events, points, x, y, height, width));
  for (const [own, parts] of shown.reverse()) {
    for (const [name, losses] of parts) {
      svg.append(draw("path", { class: `line ${style(name)}`, d: path(xs, losses, x, y), "stroke-dasharray": own === "served" ? null : dashes(name) }));
    }
  }
  if (view.at != null) svg.append(...crosshair(shown, height));
  box.replaceChildren(svg);
  legend(all);
  describe(all, xs);
  asTable(points);
}

function path(xs, losses, x, y) {
  let text = "", pen = "M";
  losses.forEach((loss, place) => {
    if (loss == null) { pen = "M"; return; }
    text += `${pen}${x(xs[place]).toFixed(1)} ${y(loss).toFixed(1)}`;
    if (pen === "M" && losses[place + 1] == null) text += "h.1"; // a point alone is a dot
    pen = "L";
  });
  return text;
}

function strip(points, x, height) {
  const group = draw("g", {});
  const xs = points[view.along], names = points.champion;
  let begin = 0;
  names.forEach((name, place) => {
    if (place === names.length - 1 || names[place + 1] !== name) {
      const from = begin ? x(xs[begin - 1]) : x(view.along === "labelled" ? 0 : xs[0]), until = x(xs[place]);
      const part = draw("rect", { class: `answered ${style(name)}`, x: from, width: Math.max(1, until - from), y: height - PAD.bottom + 10, height: 7, rx: 2 });
      part.append(draw("title", {}, `${name} answered`));
      group.append(part);
      begin = place + 1;
    }
  });
  return group;
}

function marks(events, points, x, y, height, width) {
  const found = [], floor = height - PAD.bottom;
  let free = 0;
  const known = events.filter(({ what }) => what in WORDS);
  const is = ({ what }) => RARE.includes(what);
  for (const event of [...known.filter((each) => !is(each)), ...known.filter(is)]) { // rare ones lie above
    const place = x(view.along === "labelled" ? event.labelled : event.time);
    if (place < PAD.left - 1 || place > width - PAD.right + 1) continue;
    const title = draw("title", {}, `${whole(event.labelled)}: ${event.sentence}`);
    if (!is(event)) {
      found.push(draw("circle", { class: `mark ${event.what}`, cx: place, cy: floor, r: 3.5 }, title));
      continue;
    }
    const line = draw("line", { class: `mark ${event.what}`, x1: place, x2: place, y1: PAD.top - 4, y2: floor });
    const glyph = draw("path", { class: `mark ${event.what}`, d: GLYPHS[event.what], transform: `translate(${place} ${floor})` });
    found.push(draw("g", {}, title, line, glyph));
    const word = WORDS[event.what];
    if (place > free) {
      const ends = place > width - 70;
      found.push(draw("text", { class: `word ${event.what}`, x: place + (ends ? 3 : -3), y: PAD.top - 9, "text-anchor": ends ? "end" : "start" }, word));
      free = place + 8 * word.length + 6;
    }
  }
  return found;
}

function crosshair(shown, height) {
  const { x, y, xs } = view.frame, place = view.at, found = [];
  found.push(draw("line", { class: "cross", x1: x(xs[place]), x2: x(xs[place]), y1: PAD.top, y2: height - PAD.bottom }));
  for (const [, parts] of shown) {
    for (const [name, losses] of parts) {
      if (losses[place] != null) found.push(draw("circle", { class: `dot ${style(name)}`, cx: x(xs[place]), cy: y(losses[place]), r: 4.5 }));
    }
  }
  return found;
}

function point(left) {
  if (!view.frame) return;
  const { x, xs } = view.frame;
  let best = 0;
  xs.forEach((value, place) => { if (Math.abs(x(value) - left) < Math.abs(x(xs[best]) - left)) best = place; });
  move(best);
}

function walk(event) {
  if (!view.frame) return;
  const end = view.frame.xs.length - 1, at = view.at ?? end;
  const far = Math.max(1, Math.round(end / 20));
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - far, PageDown: at + far, Home: 0, End: end }[event.key];
  if (event.key === "Escape") { view.at = null; redraw(); }
  if (to === undefined) return;
  event.preventDefault();
  move(Math.min(end, Math.max(0, to)));
}

function move(place) {
  view.at = place;
  redraw();
  const { points } = view.series;
  const losses = Object.values(lines()).flat().filter(([, own]) => own[place] != null)
    .map(([name, own]) => `${called(name)} ${fixed(own[place])}`);
  const when = `${whole(points.labelled[place])} labelled, ${time(points.time[place])}`;
  say("reading", `${when}: ${losses.join(", ")}; ${points.champion[place]} answers`);
}

function legend(all) {
  const names = Object.keys(all);
  const list = byId("legend");
  if (list.dataset.names !== names.join("\n")) {
    list.dataset.names = names.join("\n");
    list.replaceChildren(...names.map((own) => {
      const sample = draw("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" },
        draw("path", { class: `line ${style(own)}`, d: "M1 5H21", "stroke-dasharray": own === "served" ? null : dashes(own) }));
      const button = make("button", { type: "button", "aria-pressed": "true", title: `Show or hide ${own}` }, sample, make("span", {}, called(own)), make("b", {}));
      button.addEventListener("click", () => {
        const hide = !view.hidden.has(own);
        if (hide) view.hidden.add(own); else view.hidden.delete(own);
        button.setAttribute("aria-pressed", String(!hide));
        redraw();
      });
      return make("li", {}, button);
    }));
  }
  names.forEach((own, place) => {
    const ends = all[own].map(([, losses]) => losses.at(-1)).filter((value) => value != null);
    list.children[place].querySelector("b").textContent = ends.length ? fixed(ends.at(-1)) : "–";
  });
}

function describe(all, xs) {
  const ends = Object.values(all).flat().filter(([, losses]) => losses.at(-1) != null)
    .map(([name, losses]) => `${called(name)} ${fixed(losses.at(-1))}`);
  const which = view.measure === "recent" ? "over the latest documents" : "from the start";
  byId("chart").setAttribute("aria-label", `Mean H-loss ${which}, ${xs.length} points so far. Now: ${ends.join(", ")}`);
}

function asTable(points) {
  const box = byId("chart-table").closest("details");
  if (!box.open) return;
  const names = ["served", ...Object.keys(points.models)];
  const skip = Math.max(1, Math.ceil(points.labelled.length / ROWS_IN_TABLE));
  const places = [...points.labelled.keys()].filter((place) => (points.labelled.length - 1 - place) % skip === 0).reverse();
  const losses = (name) => (name === "served" ? points.served : points.models[name])[view.measure];
  table("chart-table", [["labelled", "n"], ["time"], ...names.map((name) => [name, "n"])], places.map((place) => [
    head(whole(points.labelled[place])), cell(time(points.time[place])), ...names.map((name) => cell(fixed(losses(name)[place]), "n")),
  ]));
}

function nice(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough);
}

function ticks(first, last, width) {
  const wanted = Math.max(2, Math.floor(width / (view.along === "labelled" ? 110 : 130)));
  if (view.along === "time") return [...Array(wanted).keys()].map((k) => first + ((k + 0.5) * (last - first)) / wanted);
  const step = Math.max(1, nice((last - first) / wanted)), found = [];
  for (let value = Math.ceil(first / step) * step; value <= last; value += step) found.push(value);
  return found;
}
