// Asks the server that this page came from; a token, where one is needed, stays in this tab.

const KEY = "stream-hc token";

export class Refused extends Error {}

export async function ask(path) {
  const token = sessionStorage.getItem(KEY);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store", credentials: "omit", redirect: "error" });
  if (answer.status === 401) throw new Refused();
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

export const hasToken = () => sessionStorage.getItem(KEY) !== null;
export const keepToken = (token) => sessionStorage.setItem(KEY, token);
