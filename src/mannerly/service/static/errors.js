// Errors by kind and host, with their URLs, and "retry these".

import { call, get } from "./api.js";
import { $, button, fill, h, outside } from "./dom.js";
import { clock, many, middle, whole } from "./format.js";
import { icon } from "./icons.js";

let base, ask, known = null;
const open = new Set(), urls = new Map(); // kinds that are unfolded; URLs of "kind host" that are shown

export function startErrors(root, confirm) { [base, ask] = [root, confirm]; }

export async function refreshErrors() {
  const found = await get(`${base}/errors`).catch(() => null);
  if (!found) return;
  const key = JSON.stringify(found);
  if (key !== known) { known = key; draw(found); }
}

function draw(found) {
  $("errors-count").textContent = found.urls ? `${many(found.urls, "URL")}, ${many(found.kinds.length, "kind")}` : "0";
  if (!found.kinds.length) return fill($("errors"), h("tbody", {}, h("tr", {}, h("td", { class: "empty" }, "No errors so far."))));
  const again = () => draw(found);
  const heads = [["Kind", ""], ["Hosts", "hosts"], ["URLs", "n"], ["Last", "n last"], ["Example", "cut"], ["", "n act"]];
  fill($("errors"), h("thead", {}, h("tr", {}, heads.map(([label, kind]) => h("th", { scope: "col", class: kind }, label || h("span", { class: "sr-only" }, "Action"))))),
    h("tbody", {}, found.kinds.flatMap((kind) => [row(kind, again), ...(open.has(kind.code) ? kind.hosts.flatMap((host) => hostRows(kind, host, again)) : [])])));
}

function row(kind, again) {
  const isOpen = open.has(kind.code), only = kind.hosts.length === 1 ? middle(kind.hosts[0].host, 30) : many(kind.hosts.length, "host");
  const fold = () => { if (!open.delete(kind.code)) open.add(kind.code); again(); };
  return h("tr", {}, h("td", { class: "kind" }, button({ class: "fold", "aria-expanded": String(isOpen) }, fold, icon(isOpen ? "closed" : "open"), kind.words)),
    h("td", { class: "hosts", title: kind.hosts.length === 1 ? kind.hosts[0].host : null }, only), h("td", { class: "n" }, whole(kind.urls)), h("td", { class: "n last" }, clock(kind.last)),
    h("td", { class: "cut", title: kind.example }, kind.example), h("td", { class: "n act" }, kind.can_retry ? retry(kind.hosts.map((host) => host.host), kind.urls) : null));
}

function hostRows(kind, host, again) {
  const key = `${kind.code} ${host.host}`, shown = urls.get(key);
  const show = async () => {
    if (!urls.delete(key)) {
      const found = await get(`${base}/errors?code=${encodeURIComponent(kind.code)}&host=${encodeURIComponent(host.host)}`).catch(() => ({ urls: [] }));
      urls.set(key, found.urls);
    }
    again();
  };
  const label = shown ? "Hide URLs" : host.urls > 20 ? `Show the last 20 of ${whole(host.urls)} URLs` : `Show ${many(host.urls, "URL")}`;
  return [h("tr", { class: "sub" }, h("td", { class: "kind" }), h("td", { class: "hosts", title: host.host }, middle(host.host, 30)), h("td", { class: "n" }, whole(host.urls)), h("td", { class: "n last" }, clock(host.last)),
    h("td", { class: "cut" }, button({ class: "text" }, show, label)), h("td", { class: "n act" }, kind.can_retry ? retry([host.host], host.urls) : null)),
  ...(shown || []).map((url) => h("tr", { class: "sub url" }, h("td", { colspan: 6, class: "cut wide" }, outside(url))))];
}

function retry(hosts, count) {
  const words = `Queue again: ${hosts.length === 1 ? `all URLs of ${hosts[0]}` : `all URLs of ${hosts.length} hosts`} that failed without an answer or were given up`;
  return button({ class: "text", title: words }, async () => {
    try {
      for (const host of hosts) await call("POST", `${base}/retry`, { host });
    } catch (problem) {
      ask(problem.message, null);
    }
    setTimeout(refreshErrors, 800);
  }, `Retry ${whole(count)}`);
}
