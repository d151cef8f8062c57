// Names of models and their looks: a learner keeps its colour; fitted models, which come and go, share one.

const FIT = /^(.+)-(\d+)$/;
const order = [];

export const family = (name) => (FIT.test(name) ? name.replace(FIT, "$1") : name);

export function style(name) {
  if (name === "served") return "served";
  const own = family(name);
  if (!order.includes(own)) order.push(own);
  return `k${order.indexOf(own) % 8}`;
}

export const dashes = (name) => (name === "served" || order.indexOf(family(name)) < 1
  ? "" : ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 3", "12 3", "6 2 1 2"][order.indexOf(family(name)) % 8]);

export const called = (name) => (name === "served" ? "served" : name);
