// One topic: how often it is right, and its latest mistakes.

import { byId, fixed, make, percent, whole } from "./format.js";
import { inside, lineage, zoom } from "./map.js";

export function showNode({ node, mistakes }) {
  const { recent, all } = node;
  const above = lineage(node.name).slice(0, -1);
  const parts = [make("h3", { id: "node-name" }, node.name)];
  if (above.length) parts.push(make("p", { class: "quiet" }, `in ${above.join(" › ")}`));
  parts.push(make("dl", { class: "figures" },
    figure("precision", "Precision", percent(recent.precision, 1), `${percent(all.precision, 1)} ever`),
    figure("recall", "Recall", percent(recent.recall, 1), `${percent(all.recall, 1)} ever`),
    figure("support", "Documents", whole(recent.support), `${whole(all.support)} ever`),
    figure("predicted", "Filed here", whole(recent.predicted), `${whole(all.predicted)} ever`),
    figure("error", "Wrong", percent(recent.error, 1), `${percent(all.error, 1)} ever`)));
  if (inside(node.name).length) {
    parts.push(make("button", { type: "button", class: "act", on: { click: () => zoom(node.name) } }, `Look inside: ${inside(node.name).length} topics`));
  }
  parts.push(make("p", { class: "quiet" }, mistakes.length ? "Latest mistakes, newest first" : "No mistake among the latest documents"));
  parts.push(make("ul", { class: "mistakes", tabindex: "0", "aria-label": "Latest mistakes" }, ...mistakes.map(mistake)));
  const box = byId("node"), scrolled = box.querySelector(".mistakes")?.scrollTop ?? 0;
  const same = box.dataset.name === node.name, focused = same && box.contains(document.activeElement) ? document.activeElement.className : null;
  box.dataset.name = node.name;
  // Heard when it is chosen, not once more every other second.
  box.setAttribute("aria-live", same ? "off" : "polite");
  box.replaceChildren(...parts);
  if (same) box.querySelector(".mistakes").scrollTop = scrolled;
  if (focused) box.getElementsByClassName(focused)[0]?.focus({ preventScroll: true });
}

function figure(id, name, value, more) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, make("span", { id: `node-${id}` }, value), make("small", {}, more)));
}

function mistake({ id, kind, predicted, true: right, model, loss }) {
  const names = (list) => (list.length ? list.join(", ") : "nothing");
  const word = kind === "missed" ? "missed" : "filed here";
  return make("li", {},
    make("span", { class: `badge ${kind}` }, word), " ", make("code", {}, id),
    make("div", {}, make("span", { class: "quiet" }, "filed under "), names(predicted)),
    make("div", {}, make("span", { class: "quiet" }, "belongs to "), names(right)),
    make("div", { class: "quiet" }, `${model}, H-loss ${fixed(loss, 2)}`));
}
