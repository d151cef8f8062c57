// The taxonomy as a map: area is traffic, colour is error. Cells are buttons; the arrow keys go from one to the next.

import { byId, make, percent, whole } from "./format.js";

const HEADER = 22; // pixels for the name of a topic above those inside it
const LEAST = 14; // pixels: smaller cells are left out
const MOST = 400; // cells

const view = { nodes: null, names: new Map(), children: new Map(), root: null, chosen: null, choose: null, drawn: "" };

export function setUpMap(choose) {
  view.choose = choose;
  new ResizeObserver(() => layOut(true)).observe(byId("map"));
  byId("map").addEventListener("keydown", walk);
}

export function showNodes(nodes) {
  view.nodes = nodes;
  view.names = new Map(nodes.map((node) => [node.name, node]));
  view.children = new Map([[null, []]]);
  for (const node of nodes) {
    const parent = node.parents[0] ?? null; // in a DAG a topic is drawn below the first one it belongs to
    if (!view.children.has(parent)) view.children.set(parent, []);
    view.children.get(parent).push(node);
  }
  if (view.root !== null && !view.names.has(view.root)) view.root = null;
  layOut(false);
}

export const traffic = ({ recent }) => recent.support + recent.predicted - recent.hits;
export const inside = (name) => view.children.get(name) ?? [];
export const shade = (error) => (error == null ? "en" : `e${Math.min(9, Math.floor(error * 10))}`);

export function mark(name) {
  view.chosen = name;
  for (const cell of byId("map").children) cell.setAttribute("aria-pressed", String(cell.dataset.name === name));
}

export function zoom(name) {
  view.root = name;
  layOut(true);
  (byId("map").querySelector(".cell") ?? byId("map")).focus({ preventScroll: true });
}

export function lineage(name) {
  const found = [];
  for (let at = view.names.get(name); at; at = view.names.get(at.parents[0])) found.unshift(at.name);
  return found;
}

function layOut(anew) {
  if (!view.nodes) return;
  const box = byId("map"), width = box.clientWidth, height = box.clientHeight;
  const cells = [];
  place(inside(view.root), { x: 0, y: 0, width, height }, 0, cells);
  const state = JSON.stringify(cells.map(({ node, area, deep }) => [node.name, Math.round(area.x), Math.round(area.y), Math.round(area.width), deep]));
  if (anew || state !== view.drawn) {
    view.drawn = state;
    redraw(box, cells);
  } else { // only the colours and numbers: whoever is there with the keyboard stays there
    cells.forEach(({ node, area, deep }, number) => paint(box.children[number], node, area, deep));
  }
  crumbs();
}

function redraw(box, cells) {
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  const buttons = cells.map(({ node, area, deep }, number) => {
    const button = make("button", { type: "button", tabindex: number ? "-1" : "0", "aria-pressed": String(node.name === view.chosen) }, make("span", {}), make("small", {}));
    button.dataset.name = node.name;
    button.addEventListener("click", () => { stop(button); view.choose(node.name); });
    button.addEventListener("dblclick", () => { if (inside(node.name).length) zoom(node.name); });
    paint(button, node, area, deep);
    return button;
  });
  box.replaceChildren(...buttons);
  const again = buttons.find((button) => button.dataset.name === focused);
  if (again) { stop(again); again.focus({ preventScroll: true }); }
}

function paint(button, node, area, deep) {
  const { error } = node.recent;
  button.className = `cell ${deep ? "parent" : ""} ${shade(error)}`;
  Object.assign(button.style, { left: `${area.x}px`, top: `${area.y}px`, width: `${area.width}px`, height: `${area.height}px` });
  const [name, more] = button.children;
  name.textContent = area.width > 26 && area.height > 15 ? node.name : "";
  more.textContent = !deep && area.height > 36 && area.width > 66 ? `${percent(error)} wrong` : "";
  const told = `${node.name}: ${error == null ? "no documents lately" : `${percent(error)} of ${whole(traffic(node))} documents wrong`}`;
  button.setAttribute("aria-label", told);
  button.title = told;
}

// Puts topics side by side so that their cells are nearly square (Bruls, Huizing and van Wijk, 2000).
function place(nodes, area, depth, cells) {
  const weighed = nodes.map((node) => [node, traffic(node) + 0.001]).sort((a, b) => b[1] - a[1]);
  let left = weighed.reduce((sum, [, weight]) => sum + weight, 0);
  let { x, y, width, height } = area;
  let begin = 0;
  while (begin < weighed.length && cells.length < MOST) {
    const short = Math.min(width, height), scale = (width * height) / left;
    let end = begin + 1, sum = weighed[begin][1];
    while (end < weighed.length && worst(weighed, begin, end + 1, sum + weighed[end][1], short, scale) <= worst(weighed, begin, end, sum, short, scale)) {
      sum += weighed[end][1];
      end += 1;
    }
    const across = width < height, thick = (sum * scale) / short;
    let along = across ? x : y;
    for (const [node, weight] of weighed.slice(begin, end)) {
      const long = (weight * scale) / thick;
      const own = across ? { x: along, y, width: long, height: thick } : { x, y: along, width: thick, height: long };
      along += long;
      put(node, own, depth, cells);
    }
    if (across) { y += thick; height -= thick; } else { x += thick; width -= thick; }
    left -= sum;
    begin = end;
  }
}

function worst(weighed, begin, end, sum, short, scale) {
  const squared = (sum * scale) ** 2, largest = weighed[begin][1] * scale, smallest = weighed[end - 1][1] * scale;
  return Math.max((short ** 2 * largest) / squared, squared / (short ** 2 * smallest));
}

function put(node, area, depth, cells) {
  if (area.width < LEAST || area.height < LEAST) return;
  const below = inside(node.name);
  const deep = depth < 1 && below.length > 0 && area.height > 3 * HEADER && area.width > 60;
  cells.push({ node, area, deep });
  if (deep) {
    place(below, { x: area.x + 3, y: area.y + HEADER, width: area.width - 6, height: area.height - HEADER - 3 }, depth + 1, cells);
  }
}

function stop(button) { // one cell is reached by Tab, the others from there
  for (const cell of byId("map").children) cell.tabIndex = cell === button ? 0 : -1;
}

function walk(event) {
  const cells = [...byId("map").children], at = cells.indexOf(document.activeElement);
  if (at < 0) return;
  const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: cells.length - 1 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    const cell = cells[Math.min(cells.length - 1, Math.max(0, to))];
    stop(cell);
    cell.focus();
  } else if (event.key === "Escape" && view.root !== null) {
    zoom(lineage(view.root).at(-2) ?? null);
  }
}

function crumbs() {
  const names = view.root === null ? [] : lineage(view.root), state = names.join("\n");
  const nav = byId("crumbs");
  if (nav.dataset.state === state && nav.childElementCount) return;
  nav.dataset.state = state;
  nav.replaceChildren(...[null, ...names].map((name) => {
    const here = name === view.root;
    return make("button", { type: "button", "aria-current": here ? "location" : null, on: { click: () => zoom(name) } }, name ?? "all topics");
  }));
}
