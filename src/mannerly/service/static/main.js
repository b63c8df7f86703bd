// The live page of one crawl, or the list of jobs.

import { call, get, stream } from "./api.js";
import { addEvents, addPoint, compared, setHistory, startCharts } from "./charts.js";
import { $, button, fill, h, keep, outside } from "./dom.js";
import { refreshErrors, startErrors } from "./errors.js";
import { bytes, clock, minute, rate, share, span, whole } from "./format.js";
import { showHost, startPanel } from "./host_panel.js";
import { refreshHosts, show, startHosts } from "./hosts.js";
import { HOST_STATES } from "./host_states.js";
import { CRAWL_ICONS, hostState, icon } from "./icons.js";
import { listJobs } from "./jobs.js";
import { startKeys } from "./keys.js";
import { go, reportButton, showLimits, startPanels } from "./panels.js";
import { refreshProof, startProof } from "./proof.js";
import { refreshQueue, startQueue } from "./queue.js";

const id = location.pathname.match(/^\/jobs\/([\w-]+)\/?$/)?.[1];
let base, now = null, seenAt = 0, spokenAt = 0, saidAt = 0, isConnected = false, tryNow = null;

// Ask before something that cannot be taken back; without a word for "yes" only say something.
function ask(text, yes) {
  const dialog = $("ask");
  $("ask-text").textContent = text;
  $("ask-yes").textContent = yes || "OK";
  $("ask-no").classList.toggle("hidden", !yes);
  return new Promise((answer) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });
}

async function start() {
  for (const place of document.querySelectorAll("[data-icon]")) place.prepend(icon(place.dataset.icon));
  startKeys();
  const jobs = id ? null : (await get("/api/jobs").catch((problem) => ({ problem }))).jobs;
  if (!id && !jobs) return fill($("main"), h("section", { class: "headline" }, h("div", {}, h("h1", {}, "This page needs its token"), h("p", {}, "Open the whole address that was printed at the start, with #token=… at its end."))));
  if (!id && !(jobs.length === 1 && jobs[0].is_only)) return listJobs();
  base = `/api/jobs/${id || jobs[0].id}`;
  startCharts();
  startPanels(base);
  startPanel(base);
  startHosts(base);
  startErrors(base, ask);
  startQueue(base, ask);
  startProof(base);
  $("pause").addEventListener("click", () => steer(now?.is_paused ? "resume" : "pause"));
  for (const place of [$("stop"), $("stop-menu")]) place.addEventListener("click", stop);
  addEventListener("scroll", () => document.body.classList.toggle("is-scrolled", scrollY > 120), { passive: true });
  addEventListener("click", (event) => { for (const menu of document.querySelectorAll("details[open]")) if (!menu.contains(event.target)) menu.open = false; });
  const known = await get(`${base}/history`).catch(() => null);
  if (known) setHistory(known.points, known.events);
  const slow = () => { refreshErrors(); refreshProof(); refreshQueue(true); };
  slow();
  setInterval(() => { if (isConnected && !document.hidden) slow(); }, 5000);
  setInterval(() => { if (isConnected && !document.hidden) { refreshHosts(true); showHost(); } }, 2000);
  stream(`${base}/events`, told, connection, () => new Promise((soon) => { tryNow = soon; }));
}

async function stop() {
  if (await ask("Stop the crawl? Requests under way get two seconds; everything found so far is kept, and it can be resumed.", "Stop")) steer("stop");
}

async function steer(verb) {
  try {
    await call("POST", `${base}/${verb}`, {});
  } catch (problem) {
    ask(problem.message, null);
  }
}

function connection(on, left) {
  isConnected = on;
  $("connection").textContent = on ? "Live" : "Not connected";
  $("connection").classList.toggle("on", on);
  $("offline").classList.toggle("hidden", on);
  document.body.classList.toggle("is-offline", !on);
  for (const each of document.querySelectorAll("main button:not(.safe), #pause, #stop, #stop-menu")) {
    if (!on && !each.disabled) { each.disabled = true; each.dataset.offline = ""; }
    else if (on && "offline" in each.dataset) { each.disabled = false; delete each.dataset.offline; }
  }
  if (on) return;
  const age = seenAt ? ` for ${span(Math.max(0, Date.now() / 1000 - seenAt))}.` : ".", from = seenAt ? ` What you see is from ${clock(seenAt)}.` : "";
  keep($("offline"), `${left} ${seenAt} ${now?.is_over}`, () => [icon("clock"), h("b", {}, `Not connected${age}`), h("span", {}, `${from} ${now?.is_over ? "The crawl has ended" : "The crawl goes on without this page"}. Trying again in ${left} s.`), h("span", { class: "space" }), button({ class: "safe" }, () => tryNow?.(), "Try now")]);
}

function told(live) {
  now = live;
  seenAt = live.at;
  document.title = `${live.badge} · ${live.name} · mannerly`;
  fill($("crawl-name"), "/ ", h("b", {}, live.name), live.elapsed_s ? ` · ${span(Math.floor(live.elapsed_s))}` : "");
  const isNew = $("badge").dataset.shown !== live.state;
  for (const place of [$("badge"), $("bar-badge")]) {
    place.className = `badge ${live.state}`;
    keep(place, live.state, () => [icon(CRAWL_ICONS[live.state] || "dot"), ` ${live.badge}`]);
  }
  if (isNew || Date.now() - saidAt >= 1000) { // the sentence changes once a second
    saidAt = Date.now();
    $("sentence").textContent = live.sentence;
    $("detail").textContent = live.detail;
    const url = ["starting", "running"].includes(live.state) ? live.latest_url : "", verb = live.numbers.in_flight ? "Fetching " : "Fetched ";
    keep($("latest"), verb + url, () => (url ? [verb, outside(url)] : []));
    $("proof-line").textContent = live.proof;
    $("proof-line").parentElement.classList.toggle("is-broken", live.early > 0);
    numbers(live.numbers, live.elapsed_s); // with the sentence: both name the pages a second
  }
  if (live.at - spokenAt >= 30) { $("spoken").textContent = `${live.badge}: ${live.sentence}`; spokenAt = live.at; }
  keep($("state-action"), live.state, () => action(live.state));
  keep($("pause"), String(live.is_paused), () => [icon(live.is_paused ? "dot" : "pause"), live.is_paused ? " Resume" : " Pause"]);
  for (const place of [$("stop"), $("stop-menu")]) place.disabled = !live.is_running;
  $("pause").disabled = !live.is_running && !live.is_paused;
  states(live.states, live.hosts);
  addEvents(live.events);
  if (live.point) addPoint(live.point);
  showLimits(live);
  $("queue-count").textContent = `${whole(live.numbers.queue)} URLs`;
  $("shell").textContent = live.shell;
  $("version").textContent = `mannerly ${live.version}`;
}

// What an operator does next in a state; nothing where nothing is to be done.
function action(state) {
  const hosts = (which) => button({}, () => { show({ state: which }); go("hosts-part"); }, "Show hosts");
  if (state === "paused") return button({ class: "primary" }, () => steer("resume"), "Resume");
  if (state === "refused") return hosts("backing_off");
  if (state === "incomplete") return hosts("given_up");
  return state === "finished" ? reportButton() : [];
}

function states(found, all) {
  const shown = Object.keys(HOST_STATES).filter((state) => found[state]);
  keep($("states"), JSON.stringify([found, all]), () => (shown.length ? shown : ["none"]).map((state) => {
    const [, , , tone, isHatched] = hostState(state), part = h("i", { class: isHatched ? `${tone} hatched` : tone });
    part.style.flexGrow = found[state] || 1;
    return part;
  }));
  keep($("states-legend"), JSON.stringify([found, all]), () => [h("li", {}, h("b", {}, `${whole(all)} ${all === 1 ? "host" : "hosts"}`)),
    ...shown.map((state) => h("li", {}, h("span", { class: `tone-${hostState(state)[3]}` }, icon(hostState(state)[0])), h("b", {}, whole(found[state])), ` ${hostState(state)[2]}`))]);
}

function numbers(n, elapsed) {
  const { most, mostAt, queueBefore } = compared();
  const change = queueBefore === null || queueBefore === undefined ? `${whole(n.found)} found in this run` : n.queue === queueBefore ? "as 5 min ago" : `${whole(Math.abs(n.queue - queueBefore))} ${n.queue < queueBefore ? "fewer" : "more"} than 5 min ago`;
  const shown = [
    ["Pages", rate(n.pages_s), "/s", `${rate(elapsed ? n.fetched / elapsed : 0)} on average`],
    ["Refused", share(n.refused, n.requests), "%", `${whole(n.refused)} of ${whole(n.requests)} requests`],
    ["Queue", whole(n.queue), "URLs", change],
    ["In flight", whole(n.in_flight), n.concurrency ? `of ${whole(n.concurrency)}` : "", most ? `most ${whole(most)}, at ${minute(mostAt)}` : ""],
    ["Latency, median", n.median_ms === null ? "–" : whole(n.median_ms), n.median_ms === null ? "" : "ms", n.high_ms === null ? "no answer in the last 10 s" : `95 % within ${whole(n.high_ms)} ms`],
    ["Fetched", whole(n.fetched), "pages", `${bytes(n.bytes)} in ${span(Math.floor(elapsed))}${n.requisites ? `, and ${whole(n.requisites)} files that they need` : ""}`],
  ];
  keep($("numbers"), JSON.stringify(shown), () => shown.map(([label, value, unit, below]) => h("div", {}, h("dt", {}, label), h("dd", {}, value, h("span", {}, unit)), h("dd", {}, below))));
}

start();
