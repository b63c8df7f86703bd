// The panel of one host: why it waits, since when, and what can be done. Beside the table; a sheet on a phone.

import { call, get } from "./api.js";
import { $, button, fill, h, paceLegend } from "./dom.js";
import { NONE, clock, many, rate, span, whole } from "./format.js";
import { matching, neighbour, place, refreshHosts } from "./hosts.js";
import { EVENTS, hostState, icon } from "./icons.js";
import { paceChart } from "./small_charts.js";

let base, opened = null, typed = "", answer = null, cameFrom = null;

export const openedHost = () => opened;

export function startPanel(root) { base = root; }

export function openHost(name) {
  cameFrom = document.activeElement;
  [opened, typed, answer] = [name, "", null];
  $("hosts-beside").classList.add("has-panel");
  showHost(true);
  refreshHosts();
}

export function closeHost() {
  if (!opened) return;
  const name = opened;
  opened = null;
  $("host").classList.add("hidden");
  $("hosts-beside").classList.remove("has-panel");
  document.body.classList.remove("has-sheet");
  refreshHosts().then(() => {
    // A reader who has gone on to another part meanwhile stays there.
    if (document.activeElement !== document.body && !$("host").contains(document.activeElement)) return;
    const row = $("hosts").querySelector(`tr[data-host="${CSS.escape(name)}"]`);
    (row || cameFrom)?.focus({ preventScroll: true });
  });
}

export async function showHost(isNew = false) {
  if (!opened) return;
  const name = opened, host = await get(`${base}/hosts/${encodeURIComponent(name)}`).catch(() => null);
  if (!host || opened !== name) return;
  const panel = $("host"), active = document.activeElement?.id;
  if (!isNew && panel.contains(document.activeElement) && document.activeElement.tagName === "INPUT") return;
  panel.classList.remove("hidden");
  document.body.classList.add("has-sheet");
  fill(panel, head(name), h("div", { class: "part" }, title(host, name), actions(host, name)), chart(host), facts(host), delay(host, name), history(host));
  if (isNew) { panel.scrollTop = 0; if (matchMedia("(max-width: 900px)").matches) $("host-close").focus(); }
  else if (active && panel.querySelector(`#${active}`)) $(active).focus({ preventScroll: true });
}

function head(name) {
  const go = (by) => () => { const next = neighbour(name, by); if (next) openHost(next); };
  return h("div", { class: "sheet-head" },
    button({ class: "text", id: "host-back" }, closeHost, "‹ Hosts"), h("span", { class: "space" }), h("span", {}, `${whole(place(name))} of ${whole(matching())}`),
    button({ "aria-label": "Previous host", disabled: !neighbour(name, -1) }, go(-1), "‹"), button({ "aria-label": "Next host", disabled: !neighbour(name, 1) }, go(1), "›"));
}

function title(host, name) {
  const [shape, words, , tone] = hostState(host.state);
  return [h("div", { class: "panel-title" }, h("h3", {}, name), button({ class: "text", id: "host-close", "aria-label": "Close" }, closeHost, icon("cross"), h("kbd", {}, "Esc"))),
    h("p", {}, h("span", { class: `badge ${tone}` }, icon(shape), ` ${words}`)), h("p", { class: "reason" }, why(host))];
}

function why(host) {
  const latest = host.events[0], next = host.next_in_s;
  const when = next === null || next === undefined ? "" : next < 0.05 ? " Next request now." : "";
  const due = next >= 0.05 ? [" Next request in ", h("b", {}, span(next)), next > 60 ? `, at ${clock(Date.now() / 1000 + next)}.` : "."] : [when];
  if (host.state === "paused") return ["Paused by you. Nothing is sent until you resume it."];
  if (host.state === "given_up") return [`Given up: ${host.because || host.retired || "it could not be reached"}. `, many(host.given_up, "URL"), " are left; resume tries it again."];
  if (host.state === "waiting") return ["Not running."];
  if (host.state === "done") return ["Nothing is queued for it."];
  if (host.state === "asked_to_wait" && latest?.kind === "asked_to_wait") return [`The host ${latest.words} at ${clock(latest.at)}.`, ...due];
  if (host.state === "backing_off") return [`${host.because ? `${host.because[0].toUpperCase()}${host.because.slice(1)}` : "It refused us or failed"}.`, ...due];
  return [host.delay_s ? `One request every ${span(host.delay_s)}.` : "Its pace is not known yet.", ...due];
}

function act(name, change, words) {
  return async () => {
    try {
      await call("PATCH", `${base}/hosts/${encodeURIComponent(name)}`, change);
      answer = ["answer", words];
      if ("delay_s" in change) typed = "";
    } catch (problem) {
      answer = ["answer wrong", problem.message];
    }
    document.activeElement?.blur();
    await showHost();
    setTimeout(() => { showHost(); refreshHosts(); }, 700);
  };
}

function actions(host, name) {
  const failed = host.failed + host.given_up, isPaused = host.state === "paused" || host.state === "given_up";
  return h("div", { class: "row" },
    isPaused ? button({ id: "host-resume", class: "primary" }, act(name, { paused: false }, "It goes on within a second."), "Resume host")
      : button({ id: "host-pause" }, act(name, { paused: true }, "Paused: nothing is sent within a second."), icon("pause"), " Pause host"),
    failed ? button({ id: "host-retry" }, act(name, { retry: true }, "Queued again."), `Retry ${whole(failed)} failed`) : null,
    button({ id: "host-forget" }, act(name, { forget: true }, "Its learned pace is forgotten; a Retry-After still holds."), "Forget pace"));
}

function chart(host) {
  if (!host.trace.length) return null;
  return h("div", { class: "part pace-chart" }, h("h4", {}, "Pace and learned limit, requests a second"),
    h("p", { class: "chart-legend" }, paceLegend()),
    paceChart(host.trace, Date.now() / 1000));
}

function facts(host) {
  const fact = (label, value, unit) => [h("dt", {}, label), h("dd", {}, value, unit ? h("span", {}, ` ${unit}`) : null)];
  const kept = Math.max(0, host.retry_afters - host.retry_afters_broken);
  return h("dl", { class: "part facts" },
    fact("Gap in force", host.delay_s ? `${host.delay_s.toFixed(3)} s` : NONE, host.pace ? `(${rate(host.pace)}/s)` : ""),
    fact("Smallest gap kept", host.smallest_gap_s ? `${host.smallest_gap_s.toFixed(3)} s` : NONE, host.smallest_gap_s ? `(${host.required_gap_s.toFixed(3)} s in force then)` : ""),
    fact("Limit found", host.limit ? `${rate(host.limit)}/s` : host.known_limits.length ? "" : NONE, host.known_limits.map((known) => known.words).join("; ")),
    fact("Requests at once", host.concurrency ? `at most ${whole(host.concurrency)}` : NONE),
    fact("Retry-After kept", host.retry_afters ? `${whole(kept)} of ${whole(host.retry_afters)}` : NONE),
    fact("Crawl-delay", host.crawl_delay_s ? `${host.crawl_delay_s} s` : "none"),
    fact("Queue, fetched, refused", `${whole(host.queued)} · ${whole(host.fetched)} · ${whole(host.refused)}`),
    host.next_urls.length ? fact("Next URL", path(host.next_urls[0])) : null);
}

const path = (url) => { const at = url.indexOf("/", 9); return at < 0 ? url : url.slice(at, at + 60); };

function delay(host, name) {
  const field = h("input", { type: "number", min: "0", step: "0.1", inputmode: "decimal", id: "host-delay", value: typed, "aria-describedby": "host-delay-ahead" });
  const ahead = h("p", { class: "ahead hidden", id: "host-delay-ahead" });
  const tell = () => {
    typed = field.value;
    ahead.classList.toggle("hidden", !typed);
    fill(ahead, `${many(host.queued, "URL")} then take at least `, h("b", {}, span(host.queued * Number(typed))), ". Never faster than the host allows.");
  };
  const set = () => { if (field.value !== "") act(name, { delay_s: Number(field.value) }, `At least ${field.value} s between requests, within a second.`)(); };
  field.addEventListener("input", tell);
  field.addEventListener("keydown", (event) => { if (event.key === "Enter") set(); });
  tell();
  return h("div", { class: "part" }, h("h4", {}, h("label", { for: "host-delay" }, "Set a delay for this host")),
    h("div", { class: "row delay" }, h("span", { class: "with-unit" }, field, h("span", {}, "s")), button({ class: "primary", id: "host-set" }, set, "Set delay"),
      h("span", { class: "now" }, host.delay_s ? `now ${host.delay_s.toFixed(3)} s, ${{ robots: "from robots.txt", max: "your maximum", learned: "learned", announced: "announced by the host", "": "being learned" }[host.limited_by]}` : "")),
    ahead, answer ? h("p", { class: answer[0], role: "status" }, answer[1]) : null);
}

function history(host) {
  return h("div", { class: "part" }, h("h4", {}, "History"), host.events.length
    ? h("ul", { class: "events" }, host.events.map((each) => h("li", {}, h("time", {}, clock(each.at)), icon(...(EVENTS[each.kind] || ["dot", "grey"]).slice(0, 2)), ` ${each.words}`)))
    : h("p", { class: "empty" }, "Nothing has changed its pace so far."));
}
