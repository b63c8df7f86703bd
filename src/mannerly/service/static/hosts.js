// The table of hosts. The server sorts, filters and pages; values change, but rows do not move until sorted again.

import { get } from "./api.js";
import { $, button, fill, h, paceLegend } from "./dom.js";
import { NONE, middle, rate, span, whole } from "./format.js";
import { openHost, openedHost } from "./host_panel.js";
import { HOST_STATES } from "./host_states.js";
import { hostState, icon } from "./icons.js";
import { sparkline } from "./small_charts.js";

// label, unit, sort, class
const COLUMNS = [
  ["State", "", "state", "state"], ["Host", "", "host", "name"], ["Next request in", "", "next", "n next"], ["Waiting for", "", null, "why"],
  ["Pace and limit, 1 h", "", null, "trace"], ["Pace", "/s", "pace", "n pace"], ["Limit", "/s", "limit", "n limit"],
  ["Queue", "", "queued", "n queued"], ["Fetched", "", "fetched", "n fetched"], ["Refused", "", "refused", "n refused-count"],
];
const view = { sort: "queued", order: "desc", state: "", filter: "", after: 0, limit: 20, shown: [], matching: 0, asked: 0, isBusy: false };
let base;

export function startHosts(root) {
  base = root;
  let typing;
  $("host-filter").addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => show({ filter: event.target.value.trim() }), 200);
  });
  $("sort-again").addEventListener("click", () => show({}));
  refreshHosts();
}

// Show other hosts, or the same in a new order.
export function show(changes) {
  Object.assign(view, { after: 0 }, changes, { shown: [] });
  return refreshHosts();
}

// The host before or after another one in the table: for the arrows of the panel.
export const neighbour = (host, by) => view.shown[view.shown.indexOf(host) + by];
export const place = (host) => view.after + view.shown.indexOf(host) + 1;
export const matching = () => view.matching;

export async function refreshHosts(isTimer = false) {
  if (isTimer && view.isBusy) return; // a slow answer must not be overtaken for ever
  const query = new URLSearchParams({ sort: view.sort, order: view.order, limit: view.limit, after: view.after });
  if (view.state) query.set("state", view.state);
  if (view.filter) query.set("filter", view.filter);
  for (const host of view.shown) query.append("keep", host);
  const number = ++view.asked;
  view.isBusy = true;
  let page;
  try {
    page = await get(`${base}/hosts?${query}`);
    if (number !== view.asked) return; // something else was asked for since
    view.isBusy = false;
  } catch (problem) {
    view.isBusy = false;
    if (!view.shown.length) fill($("hosts"), h("tbody", {}, h("tr", {}, h("td", { class: "empty" }, problem.message))));
    return;
  }
  view.shown = page.hosts.map((host) => host.host);
  view.matching = page.matching;
  $("sort-again").classList.toggle("hidden", !page.is_moved);
  $("hosts-count").textContent = view.filter || view.state ? `${whole(page.matching)} of ${whole(page.all)}` : whole(page.all);
  filters(page.states, page.all);
  if (!page.hosts.length) return empty();
  draw(page);
}

function empty() {
  const why = view.filter ? `No host matches “${view.filter}”. ` : view.state ? `No host is ${hostState(view.state)[2]} now. ` : "No hosts yet. ";
  const clear = button({ class: "text" }, () => { $("host-filter").value = ""; show({ filter: "", state: "" }); }, "Clear filter");
  fill($("hosts"), h("tbody", {}, h("tr", {}, h("td", { class: "empty" }, why, view.filter || view.state ? clear : null))));
  fill($("hosts-pager"));
}

function draw(page) {
  const focused = document.activeElement?.dataset?.host, sorted = document.activeElement?.dataset?.sort;
  fill($("hosts"), h("thead", {}, h("tr", {}, COLUMNS.map(column))), h("tbody", {}, page.hosts.map(row)));
  const again = focused ? `tr[data-host="${CSS.escape(focused)}"]` : sorted ? `[data-sort="${sorted}"]` : null;
  if (again) $("hosts").querySelector(again)?.focus({ preventScroll: true });
  const turn = (by) => () => show({ after: Math.max(0, view.after + by) });
  fill($("hosts-pager"), h("span", {}, `${whole(view.after + 1)}–${whole(view.after + page.hosts.length)} of ${whole(page.matching)}`),
    h("span", { class: "chart-legend" }, paceLegend()),
    h("span", { class: "buttons" }, button({ disabled: view.after === 0 }, turn(-view.limit), "Previous"), button({ disabled: page.next === null }, turn(view.limit), "Next")));
}

function column([label, unit, sort, kind]) {
  const words = [label, unit ? h("span", { class: "unit" }, ` ${unit}`) : null];
  if (!sort) return h("th", { class: kind, scope: "col" }, words);
  const isSorted = view.sort === sort, isAscending = view.order === "asc";
  const choose = () => show({ sort, order: isSorted ? (isAscending ? "desc" : "asc") : ["host", "state", "next"].includes(sort) ? "asc" : "desc" });
  return h("th", { class: kind, scope: "col", "aria-sort": isSorted ? (isAscending ? "ascending" : "descending") : "none" },
    button({ "data-sort": sort }, choose, isSorted ? h("span", { class: "arrow", "aria-hidden": "true" }, isAscending ? "↑ " : "↓ ") : null, words));
}

const LIMITS = { robots: "robots.txt", max: "max rate", "": NONE };
const count = (value, kind) => h("td", { class: `n ${kind}${value ? "" : " zero"}` }, whole(value));

function row(host) {
  const open = () => openHost(host.host), [shape, words, , tone] = hostState(host.state);
  const isIdle = host.next_in_s === null || (host.state === "waiting" && host.next_in_s < 0.05);
  const next = isIdle ? NONE : host.next_in_s < 0.05 ? "now" : span(host.next_in_s);
  const isQuiet = host.state === "done" || host.state === "given_up", isDue = next !== NONE && host.state !== "fetching"; // it waits, and says until when
  return h("tr", { "data-host": host.host, class: `${host.state}${openedHost() === host.host ? " open" : ""}`, tabindex: 0, "aria-selected": String(openedHost() === host.host),
    on: { click: open, keydown: (event) => { if (event.key === "Enter") { event.preventDefault(); open(); } } } },
  h("td", { class: `state tone-${tone}` }, icon(shape), ` ${words}`),
  h("td", { class: "name", title: host.host }, middle(host.host)),
  h("td", { class: `n next${next === NONE ? " zero" : ""}${isDue ? " due" : ""}` }, next),
  h("td", { class: `why${host.because ? "" : " none"}`, title: host.because || null }, host.because || NONE),
  h("td", { class: "trace" }, sparkline(host.trace, Date.now() / 1000)),
  h("td", { class: "n pace" }, isQuiet ? NONE : rate(host.pace)),
  h("td", { class: "n limit", title: host.known_limits.map((known) => known.words).join("; ") || null }, LIMITS[host.limited_by] ?? (host.limit ? rate(host.limit) : NONE)),
  count(host.queued, "queued"), count(host.fetched, "fetched"), count(host.refused, "refused-count"));
}

function filters(states, all) {
  const one = (state, label, number) => button({ "aria-pressed": String(view.state === state), "data-state": state }, () => show({ state }), `${label} `, h("span", {}, whole(number)));
  const focused = document.activeElement?.dataset?.state;
  fill($("host-filters"), one("", "All", all), Object.keys(HOST_STATES).filter((state) => states[state] || state === view.state).map((state) => one(state, hostState(state)[1], states[state] || 0)));
  if (focused !== undefined) $("host-filters").querySelector(`[data-state="${focused}"]`)?.focus({ preventScroll: true });
}
