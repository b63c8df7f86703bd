// The table of hosts, and the panel of one host. The server sorts, filters and pages.

import { call, get } from "./api.js";
import { drawTrace } from "./charts.js";
import { $, fill, h } from "./dom.js";
import { NONE, clock, middle, rate, span, whole } from "./format.js";

export const STATES = {
  fetching: ["●", "Fetching"], asked_to_wait: ["◷", "Asked to wait"], backing_off: ["◆", "Backing off"],
  shared: ["⇄", "Shared"], paused: ["‖", "Paused"], given_up: ["×", "Given up"], done: ["✓", "Done"],
};
const COLUMNS = [
  ["State", null, ""], ["Host", null, ""], ["Next request in", null, "n minor"], ["Pace /s", "delay", "n"],
  ["Limit /s", null, "n minor"], ["Queue", "queued", "n minor"], ["Fetched", "fetched", "n minor"], ["Refused", "refused", "n minor"],
];
const view = { sort: "queued", state: "", filter: "", after: 0, limit: 20, open: null };
let base;

export function startHosts(root) {
  base = root;
  let typing;
  $("host-filter").addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => { view.filter = event.target.value; view.after = 0; refreshHosts(); }, 200);
  });
  refreshHosts();
}

export const mark = (state) => h("span", { class: `mark ${state}`, "aria-hidden": "true" }, (STATES[state] || ["", ""])[0]);

export async function refreshHosts() {
  const query = new URLSearchParams({ sort: view.sort, limit: view.limit, after: view.after });
  if (view.state) query.set("state", view.state);
  if (view.filter) query.set("filter", view.filter);
  let page;
  try {
    page = await get(`${base}/hosts?${query}`);
  } catch (problem) {
    return fill($("hosts"), h("caption", { class: "empty" }, problem.message));
  }
  $("hosts-count").textContent = whole(page.all);
  filters(page.states, page.all);
  if (!page.hosts.length) {
    const clear = h("button", { type: "button", class: "text", on: { click: () => { view.filter = view.state = $("host-filter").value = ""; refreshHosts(); } } }, "Clear filter");
    const why = view.filter ? `No host matches “${view.filter}”. ` : "No hosts yet. ";
    fill($("hosts"), h("tbody", {}, h("tr", {}, h("td", { class: "empty" }, why, view.filter || view.state ? clear : null))));
    return fill($("hosts-pager"));
  }
  fill($("hosts"), h("thead", {}, h("tr", {}, COLUMNS.map(column))), h("tbody", {}, page.hosts.map(row)));
  const turn = (by) => () => { view.after = Math.max(0, view.after + by); refreshHosts(); };
  fill($("hosts-pager"), h("span", {}, `${view.after + 1}–${view.after + page.hosts.length} of ${whole(page.matching)}`), h("span", { class: "space" }),
    h("button", { type: "button", disabled: view.after === 0, on: { click: turn(-view.limit) } }, "Previous"),
    h("button", { type: "button", disabled: page.next === null, on: { click: turn(view.limit) } }, "Next"));
}

function column([label, sort, kind]) {
  if (!sort) return h("th", { class: kind, scope: "col" }, label);
  const choose = () => { view.sort = sort; view.after = 0; refreshHosts(); };
  return h("th", { class: kind, scope: "col", "aria-sort": view.sort === sort ? "descending" : "none" },
    h("button", { type: "button", on: { click: choose } }, view.sort === sort ? `↓ ${label}` : label));
}

function row(host) {
  const open = () => { location.hash = ""; view.open = host.host; showHost(); refreshHosts(); };
  const number = (value) => h("td", { class: value ? "n minor" : "n minor zero" }, whole(value));
  return h("tr", { "data-host": host.host, class: view.open === host.host ? "open" : "", tabindex: 0, on: { click: open, keydown: (event) => event.key === "Enter" && open() } },
    h("td", { class: "state" }, mark(host.state), " ", (STATES[host.state] || ["", host.state])[1]),
    h("td", { class: "name", title: host.host }, middle(host.host)),
    h("td", { class: "n minor" }, host.next_in_s === null ? NONE : host.next_in_s < 0.05 ? "now" : span(host.next_in_s)),
    h("td", { class: "n pace" }, rate(host.pace)),
    h("td", { class: "n minor" }, { robots: "robots.txt", max: "max rate", "": NONE }[host.limited_by] ?? rate(host.limit)),
    h("td", { class: host.queued ? "n queued" : "n queued zero" }, whole(host.queued)), number(host.fetched), number(host.refused));
}

function filters(states, all) {
  const button = (state, label, count) => h("button", {
    type: "button", "aria-pressed": String(view.state === state),
    on: { click: () => { view.state = state; view.after = 0; refreshHosts(); } },
  }, `${label} ${whole(count)}`);
  fill($("host-filters"), button("", "All", all),
    Object.entries(states).filter(([, count]) => count).map(([state, count]) => button(state, STATES[state][1], count)));
}

export function closeHost() {
  view.open = null;
  $("host").classList.add("hidden");
  refreshHosts();
}

export async function showHost() {
  if (!view.open) return;
  const panel = $("host"), name = view.open;
  let host;
  try {
    host = await get(`${base}/hosts/${encodeURIComponent(name)}`);
  } catch (problem) {
    return;
  }
  if (document.activeElement && panel.contains(document.activeElement) && document.activeElement.tagName === "INPUT") return;
  panel.classList.remove("hidden");
  const said = h("p", { class: "answer", role: "status" });
  const act = (change, words) => async () => {
    try {
      await call("PATCH", `${base}/hosts/${encodeURIComponent(name)}`, change);
      said.className = "answer"; said.textContent = words;
      setTimeout(() => { showHost(); refreshHosts(); }, 600);
    } catch (problem) {
      said.className = "answer wrong"; said.textContent = problem.message;
    }
  };
  const delay = h("input", { type: "number", min: "0", step: "0.1", "aria-label": "Delay in seconds", id: "host-delay" });
  const ahead = h("p", { class: "empty" });
  delay.addEventListener("input", () => {
    ahead.textContent = delay.value ? `${whole(host.queued)} URLs then take at least ${span(host.queued * Number(delay.value))}. Never faster than the host allows.` : "";
  });
  const fact = (label, value) => [h("dt", {}, label), h("dd", {}, value)];
  fill(panel,
    h("h3", {}, h("span", {}, name), h("span", { class: "space" }), h("button", { type: "button", "aria-label": "Close", on: { click: closeHost } }, "×")),
    h("p", {}, mark(host.state), " ", (STATES[host.state] || ["", host.state])[1], host.because ? `: ${host.because}` : ""),
    h("div", { class: "row" },
      host.state === "paused" || host.state === "given_up"
        ? h("button", { type: "button", id: "host-resume", on: { click: act({ paused: false }, "It goes on within a second.") } }, "Resume host")
        : h("button", { type: "button", id: "host-pause", on: { click: act({ paused: true }, "Paused: nothing is sent within a second.") } }, "Pause host"),
      host.failed || host.given_up ? h("button", { type: "button", id: "host-retry", on: { click: act({ retry: true }, "Queued again.") } }, `Retry ${whole(host.failed + host.given_up)} failed`) : null,
      h("button", { type: "button", id: "host-forget", on: { click: act({ forget: true }, "Its learned pace is forgotten; a Retry-After still holds.") } }, "Forget pace")),
    host.trace.length ? h("div", { class: "trace" }, h("h4", {}, "Pace ", h("span", {}, "and limit found, requests a second")), drawTrace(host.trace)) : null,
    h("dl", { class: "facts" },
      fact("Gap in force", host.delay_s ? `${host.delay_s.toFixed(3)} s (${rate(1 / host.delay_s)}/s)` : NONE),
      fact("Smallest gap kept", host.smallest_gap_s ? `${host.smallest_gap_s.toFixed(3)} s` : NONE),
      fact("Limit found", host.limit ? `${rate(host.limit)}/s` : NONE),
      fact("Crawl-delay", host.crawl_delay_s ? `${host.crawl_delay_s} s` : "none"),
      fact("Queue, fetched, refused", `${whole(host.queued)} · ${whole(host.fetched)} · ${whole(host.refused)}`),
      host.retired ? fact("Given up", host.retired) : null),
    h("div", { class: "row" }, h("label", { class: "grow" }, h("span", { class: "sr-only" }, "Delay in seconds"), delay), h("button", { type: "button", class: "primary", id: "host-set", on: { click: () => act({ delay_s: Number(delay.value) }, `At least ${delay.value} s between requests, within a second.`)() } }, "Set delay")),
    ahead, said,
    host.next_urls.length ? h("p", { class: "empty" }, `Next: ${host.next_urls[0]}`) : null,
    host.events.length ? h("ul", { class: "events" }, host.events.map((each) => h("li", {}, h("time", {}, clock(each.at)), each.text))) : null);
}
