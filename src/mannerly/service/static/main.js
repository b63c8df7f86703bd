// The live page of one crawl, or the list of jobs.

import { call, get, stream } from "./api.js";
import { addPoint, setHistory, setMarks, startCharts } from "./charts.js";
import { $, fill, h } from "./dom.js";
import { bytes, clock, rate, share, span, whole } from "./format.js";
import { STATES, closeHost, mark, refreshHosts, showHost, startHosts } from "./hosts.js";
import { refreshErrors, refreshProof, showLimits, startPanels } from "./panels.js";

const MARKS = { running: "●", waiting: "◷", paused: "‖", held: "‖", refused: "◆", stopping: "■", stopped: "■", finished: "✓", incomplete: "◇", failed: "×", starting: "◇", queued: "◇" };
const id = location.pathname.match(/^\/jobs\/([\w-]+)\/?$/)?.[1];

let now = null, seenAt = 0, spokenAt = 0, events = [];

// Ask before something that cannot be taken back; without a word for "yes" only say something.
function ask(text, yes) {
  const dialog = $("ask");
  $("ask-text").textContent = text;
  $("ask-yes").textContent = yes || "OK";
  return new Promise((answer) => {
    dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });
}

async function start() {
  const jobs = id ? null : (await get("/api/jobs").catch((problem) => ({ problem }))).jobs;
  if (!id && !jobs) return fill($("main"), h("p", { class: "answer wrong" }, "The service needs a token: open the link that it printed."));
  if (!id && !(jobs.length === 1 && jobs[0].is_only)) return listJobs();
  const base = `/api/jobs/${id || jobs[0].id}`;
  startCharts();
  startPanels(base, ask);
  startHosts(base);
  $("pause").addEventListener("click", () => steer(`${base}/${now && now.is_paused ? "resume" : "pause"}`));
  $("stop").addEventListener("click", async () => {
    if (await ask("Stop the crawl? Requests under way get two seconds; everything found so far is kept, and it can be resumed.", "Stop")) steer(`${base}/stop`);
  });
  addEventListener("keydown", keys);
  const known = await get(`${base}/history`).catch(() => null);
  if (known) { events = known.events; setMarks(events); setHistory(known.points); }
  refreshErrors(); refreshProof();
  setInterval(() => { if (connected) { refreshErrors(); refreshProof(); } }, 5000);
  setInterval(() => { if (connected && !document.hidden) { refreshHosts(); showHost(); } }, 2000);
  stream(`${base}/events`, told, connection);
}

async function steer(path) {
  try {
    await call("POST", path, {});
  } catch (problem) {
    ask(problem.message, null);
  }
}

let connected = false;

function connection(on, left) {
  connected = on;
  $("connection").textContent = on ? "Live" : "Not connected";
  $("connection").classList.toggle("on", on);
  $("offline").classList.toggle("hidden", on);
  for (const button of [$("pause"), $("stop")]) button.disabled = !on;
  if (!on) {
    const from = seenAt ? ` What you see is from ${clock(seenAt)}.` : "";
    $("offline").textContent = `Not connected.${from} The crawl goes on without this page. Trying again in ${left} s.`;
  }
}

function told(live) {
  now = live;
  seenAt = live.at;
  document.title = `${live.badge} · ${live.name} · mannerly`;
  $("crawl-name").textContent = `/ ${live.name} · ${span(live.elapsed_s)}`;
  for (const place of [$("badge"), $("bar-badge")]) {
    place.className = `badge ${live.state}`;
    place.textContent = `${MARKS[live.state] || ""} ${live.badge}`;
  }
  $("bar-badge").classList.toggle("hidden", scrollY < 120);
  $("sentence").textContent = live.sentence;
  $("detail").textContent = live.detail;
  $("proof-line").textContent = live.proof;
  $("proof-line").parentElement.classList.toggle("is-broken", live.early > 0);
  if (live.at - spokenAt >= 30) { $("spoken").textContent = `${live.badge}: ${live.sentence}`; spokenAt = live.at; }
  $("pause").textContent = live.is_paused ? "Resume" : "Pause";
  const isOver = !live.is_running;
  $("stop").disabled = isOver;
  $("pause").disabled = isOver && !live.is_paused;
  states(live.states, live.hosts);
  numbers(live.numbers, live.elapsed_s);
  showLimits(live.limits);
  $("queue-count").textContent = `${whole(live.numbers.queue)} URLs`;
  $("shell").textContent = live.shell;
  $("version").textContent = `mannerly ${live.version}`;
  for (const each of live.events) if (!events.length || each.at > events[events.length - 1].at) events.push(each);
  setMarks(events);
  if (live.point) addPoint(live.point);
  fill($("events"), live.events.slice(-5).reverse().map((each) => h("li", {}, h("time", {}, clock(each.at)), each.text)));
}

function states(found, all) {
  const shown = Object.entries(found).filter(([, count]) => count);
  const parts = shown.map(([state, count]) => {
    const part = h("i", { class: state });
    part.style.flexGrow = count;
    return part;
  });
  fill($("states"), parts.length ? parts : h("i", {}));
  fill($("states-legend"), h("li", {}, h("b", {}, `${whole(all)} hosts`)),
    shown.map(([state, count]) => h("li", {}, mark(state), " ", h("b", {}, whole(count)), ` ${STATES[state][1].toLowerCase()}`)));
}

function numbers(n, elapsed) {
  const one = (label, value, unit, below) => h("div", {}, h("dt", {}, label), h("dd", {}, value, " ", h("span", {}, unit)), h("dd", {}, below));
  fill($("numbers"),
    one("Pages", rate(n.pages_s), "/s", `${rate(elapsed ? n.fetched / elapsed : 0)} on average`),
    one("Refused", share(n.refused, n.requests), "%", `${whole(n.refused)} of ${whole(n.requests)} requests`),
    one("Queue", whole(n.queue), "URLs", `${whole(n.found)} found in this run`),
    one("In flight", whole(n.in_flight), `of ${whole(n.workers)}`, ""),
    one("Latency, median", n.median_ms === null ? "–" : whole(n.median_ms), "ms", n.high_ms === null ? "" : `95 % within ${whole(n.high_ms)} ms`),
    one("Fetched", whole(n.fetched), "pages", `${bytes(n.bytes)} in ${span(elapsed)}`));
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const inField = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName || "");
  if (event.key === "Escape") { if (inField) document.activeElement.blur(); else closeHost(); return; }
  if (inField) return;
  const go = (element) => { event.preventDefault(); element.focus(); };
  if (event.key === "/") go($("explain-url"));
  else if (event.key === "f") go($("host-filter"));
  else if (event.key === "P") $("pause").click();
  else if (event.key === "p") $("host-pause")?.click();
  else if (event.key === "j" || event.key === "k") {
    const rows = [...$("hosts").querySelectorAll("tr[data-host]")], at = rows.indexOf(document.activeElement);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)))];
    if (next) go(next);
  }
}

async function listJobs() {
  $("bar").querySelectorAll("button").forEach((button) => button.remove());
  $("connection").textContent = "";
  const show = async () => {
    const { jobs } = await get("/api/jobs");
    const rows = jobs.map((job) => h("tr", {}, h("td", {}, h("a", { href: `/jobs/${job.id}` }, job.name)), h("td", {}, `${MARKS[job.state] || ""} ${job.state}`),
      h("td", { class: "n" }, whole(job.run.fetched)), h("td", { class: "n minor" }, whole(job.run.pending)), h("td", { class: "minor" }, job.schedule || ""), h("td", { class: "cut minor" }, job.run.error || "")));
    fill($("main"), h("section", {}, h("div", { class: "head" }, h("h1", {}, "Jobs")),
      h("div", { class: "panel table-panel" }, rows.length
        ? h("table", {}, h("thead", {}, h("tr", {}, ["Job", "State", "Pages", "Queue", "Schedule", "Error"].map((label, index) => h("th", { scope: "col", class: index === 2 || index === 3 ? "n" : "" }, label)))), h("tbody", {}, rows))
        : h("p", { class: "pager" }, "No jobs yet. Create one with POST /api/jobs, described in /api/openapi.json."))));
  };
  await show();
  setInterval(show, 2000);
}

start();
