// Everything beside the chart and the map: tiles, tables, lists.

import { bar, byId, bytes, cell, fixed, head, make, percent, rate, say, span, table, time, whole } from "./format.js";
import { shade, traffic } from "./map.js";

const WORDS = { drift: "drift", refit: "re-fit", refit_failed: "failed", candidate: "candidate", swap: "swap", rollback: "rollback", promoted: "promoted", dropped: "dropped" };
const OUTCOMES = { joined: "labels that found their document", expired: "documents that waited in vain", orphan: "labels without a document", duplicate: "labels that came twice", changed: "labels that changed", superseded: "documents replaced while waiting" };
let announced = null, window_ = 0;

export function showStatus(status) {
  if (status.documents === undefined) return;
  const { served, champion, pending, dead_letters: dead } = status;
  say("loss", served.scored ? fixed(served.recent) : "–");
  window_ = status.window;
  say("champion", champion.model);
  say("champion-more", champion.since == null ? `${whole(champion.version)} documents learned` : `since labelled document ${whole(champion.since)}`);
  say("speed", rate(status.documents_per_second));
  say("documents", `${whole(status.documents)} documents so far`);
  say("pending", whole(pending.documents));
  say("labelled", `${whole(status.labelled)} labelled so far`);
  const letters = Object.values(dead).reduce((sum, number) => sum + number, 0);
  say("dead", whole(letters));
  say("dead-more", letters ? `${percent(letters / (letters + status.documents), 2)} of the stream` : "none so far");
  byId("lag-tile").hidden = !status.lag.length;
  say("lag", whole(status.lag.reduce((sum, { records }) => sum + records, 0)));
  models(status);
  depths(status.by_depth.served);
  letterTable(status, letters);
  operation(status);
}

export function showTrend({ points }) {
  const losses = points.served.recent, ends = losses.length - 1;
  if (ends < 0) return;
  const before = losses[Math.max(0, ends - Math.max(2, Math.round(ends / 10)))], change = before ? losses[ends] / before - 1 : 0;
  const tile = byId("trend");
  const word = Math.abs(change) < 0.02 ? "→ steady" : change > 0 ? `▲ ${percent(change)} worse` : `▼ ${percent(-change)} better`;
  tile.className = change >= 0.02 ? "bad" : change <= -0.02 ? "good" : "quiet";
  const scored = whole(Math.min(window_, points.labelled[ends]));
  say("trend", `${ends < 4 ? "" : `${word}; `}last ${scored}; ${fixed(points.served.mean[ends])} from the start`);
}

function models({ models: all, champion, previous, candidates, refit, served }) {
  const best = all[champion.model];
  const rows = Object.entries(all).sort(([a, one], [b, other]) => (b === champion.model) - (a === champion.model) || one.recent - other.recent);
  table("models", [["model"], ["latest", "n"], ["ever", "n"], ["scored", "n more"], ["memory", "n more"], ["role"]], rows.map(([name, own]) => [
    head(name), cell(own.scored ? fixed(own.recent) : "–", "n"), cell(own.scored ? fixed(own.mean) : "–", "n"), cell(whole(own.scored), "n more"), cell(bytes(own.bytes), "n more"),
    cell(role(name, champion, previous, candidates, own, best)),
  ]));
  const { running, progress, last, outcomes, enabled } = refit;
  const ended = Object.entries(outcomes).map(([name, number]) => `${number} ${name}`).join(", ");
  let text = enabled ? "Re-fits: " + (ended || "none so far") : "Re-fits are switched off.";
  if (last) text += `; the last took ${span(last.seconds)}` + (last.problem ? `: ${last.problem}` : "");
  if (running) text += progress ? `; one is under way, epoch ${progress.epoch}` : "; one is under way";
  say("refit", text);
}

function role(name, champion, previous, candidates, own, best) {
  if (name === champion.model) return make("span", { class: "badge champion" }, "champion");
  const word = candidates.includes(name) ? "challenger" : name === previous ? "before" : "learns";
  const lead = own.scored && best.scored && best.recent ? own.recent / best.recent - 1 : null;
  return make("span", { class: "badge" }, lead == null ? word : `${word}, ${lead < 0 ? "−" : "+"}${percent(Math.abs(lead))}`);
}

function depths({ all, recent }) {
  const most = Math.max(...all, ...recent, 1e-9);
  table("depths", [["depth"], ["latest", "n"], ["ever", "n"], ["share of the H-loss"]], all.map((ever, depth) => [
    head(depth ? String(depth) : "0, roots"), cell(fixed(recent[depth]), "n"), cell(fixed(ever), "n"),
    cell(make("span", { class: "pair" }, bar(recent[depth] / most, recent[depth] > 1.1 * ever ? "worse" : ""), bar(ever / most, "before")), "bar"),
  ]));
}

function letterTable({ dead_letters: dead, labels }, letters) {
  const reasons = Object.entries(dead).sort(([, a], [, b]) => b - a);
  const rows = reasons.map(([reason, number]) => [head(reason.replaceAll("_", " ")), cell(whole(number), "n"), cell(bar(number / letters, "worse"), "bar")]);
  const all = Object.values(labels).reduce((sum, number) => sum + number, 0);
  const became = Object.entries(labels).map(([name, number]) => [head(OUTCOMES[name] ?? name), cell(whole(number), "n"), cell(bar(number / all), "bar")]);
  if (!rows.length) rows.push([head("no dead letters"), cell("0", "n"), cell("", "bar")]);
  table("letters", [["what became of records"], ["number", "n"], [""]], [...rows, ...became]);
}

function operation(status) {
  const { snapshots, now, started, lag, version, costs, pending, label_requests: asked } = status;
  const facts = [["Running for", span(now - started)], ["Documents so far", whole(status.documents)],
    ["Last snapshot", snapshots.last_success ? `${span(now - snapshots.last_success)} ago` : "none yet"]];
  if (snapshots.failed) facts.push(["Snapshots that failed", whole(snapshots.failed)]);
  if (pending.labels) facts.push(["Labels before their document", whole(pending.labels)]);
  if (asked) facts.push(["Labels asked for", whole(asked)]);
  for (const { topic, partition, records } of lag) facts.push([`Lag of ${topic}, ${partition}`, `${whole(records)} records`]);
  facts.push(["Costs of a mistake", costs], ["Version", version]);
  byId("rest").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

export function showWorst({ nodes, recent_labelled: n }, choose) {
  const worst = nodes.filter(({ recent }) => recent.charged).sort((a, b) => b.recent.charged * b.cost - a.recent.charged * a.cost).slice(0, 12);
  const loss = (node) => (node.recent.charged * node.cost) / Math.max(n, 1), most = worst.length ? loss(worst[0]) : 1;
  const list = byId("worst"), focused = [...list.querySelectorAll("button")].indexOf(document.activeElement);
  list.replaceChildren(...worst.map((node) => make("li", {}, make("button", { type: "button", on: { click: () => choose(node.name, true) } },
    make("span", {}, node.name), make("span", { class: "quiet" }, `${fixed(loss(node))} of the H-loss, ${percent(node.recent.error)} of ${whole(traffic(node))} wrong`),
    bar(loss(node) / most, shade(node.recent.error) > "e4" ? "worse" : "")))));
  if (!worst.length) list.replaceChildren(make("li", { class: "quiet" }, "No mistakes lately."));
  if (focused >= 0) list.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
}

export function showEvents(events) {
  const list = byId("events"), newest = events.at(-1);
  if (list.dataset.last === `${events.length} ${newest?.labelled} ${newest?.what}`) return;
  list.dataset.last = `${events.length} ${newest?.labelled} ${newest?.what}`;
  const shown = events.slice(-60).reverse().map((event) => make("li", {},
    make("span", {}, make("time", { datetime: new Date(1000 * event.time).toISOString() }, time(event.time)), make("br"), make("span", { class: "quiet" }, whole(event.labelled))),
    make("span", {}, make("span", { class: "badge" }, WORDS[event.what] ?? event.what), " ", event.sentence)));
  list.replaceChildren(...(shown.length ? shown : [make("li", { class: "quiet" }, "Nothing yet.")]));
  const loud = events.filter(({ what }) => ["drift", "swap", "rollback", "promoted"].includes(what)).at(-1);
  if (loud && announced !== null && announced !== loud.sentence) say("announcer", loud.sentence);
  announced = loud?.sentence ?? "";
}
