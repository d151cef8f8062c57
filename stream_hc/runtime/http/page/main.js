// Asks for the numbers every other second while somebody looks, and hands them to those who show them.

import { Refused, ask, hasToken, keepToken } from "./api.js";
import { setUpChart, showSeries } from "./chart.js";
import { byId, say, time } from "./format.js";
import { mark, setUpMap, showNodes } from "./map.js";
import { showNode } from "./node.js";
import { showEvents, showStatus, showTrend, showWorst } from "./panels.js";

const EVERY = { status: 1000, series: 2000, nodes: 3000 }; // milliseconds
const LONGEST = 15000;

let chosen = null, failures = 0, asked = {};

async function round() {
  const now = performance.now();
  try {
    if (due("status", now)) {
      const status = await ask("api/status");
      showStatus(status);
      state(status.ready ? "live" : "soon", status.ready ? "live" : "starting");
      say("clock", time(status.now));
    }
    if (due("series", now)) {
      const series = await ask("api/series");
      showSeries(series);
      showTrend(series);
      showEvents(series.events);
    }
    if (due("nodes", now)) {
      const table = await ask("api/nodes");
      showNodes(table.nodes);
      showWorst(table, choose);
      if (chosen !== null) await look(chosen);
    }
    failures = 0;
  } catch (error) {
    if (error instanceof Refused) {
      askForToken();
      return;
    }
    failures += 1;
    asked = {};
    state("gone", "no answer: the job has ended, or cannot be reached");
  }
  setTimeout(wake, Math.min(LONGEST, 500 * 2 ** Math.min(failures, 5)));
}

function wake() {
  if (document.hidden) document.addEventListener("visibilitychange", round, { once: true });
  else round();
}

function due(what, now) {
  if (asked[what] !== undefined && now - asked[what] < EVERY[what]) return false;
  asked[what] = now;
  return true;
}

function state(kind, text) {
  byId("state").className = `pill ${kind}`;
  say("state", text);
}

async function look(name) {
  const found = await ask(`api/node?name=${encodeURIComponent(name)}`);
  if (name === chosen) showNode(found);
}

function choose(name, scroll = false) {
  chosen = name;
  mark(name);
  look(name).then(() => {
    if (scroll) byId("node").scrollIntoView({ block: "nearest" });
  }, () => {});
}

function askForToken() {
  const form = byId("token-form");
  say("token-wrong", hasToken() ? "That was not the token." : "");
  form.hidden = false;
  state("soon", "a token is needed");
  byId("token").focus();
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(byId("token").value.trim());
  byId("token").value = "";
  byId("token-form").hidden = true;
  asked = {};
  round();
});

setUpChart();
setUpMap(choose);
round();
