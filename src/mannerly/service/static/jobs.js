// The jobs of a service: one row each, with a link to the page of its crawl.

import { call, get } from "./api.js";
import { $, button, fill, h } from "./dom.js";
import { NONE, many, moment, whole } from "./format.js";
import { CRAWL_ICONS, icon } from "./icons.js";
import { newJobForm } from "./new_job.js";

const ACTIONS = { queued: ["pause"], running: ["pause"], paused: ["resume"], finished: [], failed: ["retry"], stopped: ["resume"], cancelled: ["resume"] };
const COLUMNS = [["Job", "name"], ["State", "state"], ["Kind", "minor"], ["Pages", "n pages"], ["Queue", "n queue"], ["Schedule", "minor"], ["Next run", "n minor"], ["Result", "cut result"], ["", "n act"]];

export async function listJobs() {
  document.body.classList.add("is-list");
  const words = h("div", {}), list = h("section", {}), { form, opener } = newJobForm(() => show());
  fill($("main"), h("section", { class: "headline" }, words, h("div", {}), opener), form, list);
  const show = async () => {
    const found = await get("/api/jobs").catch(() => null);
    $("connection").textContent = found ? "Live" : "Not connected";
    $("connection").classList.toggle("on", Boolean(found));
    if (found) draw(found.jobs, show, words, list);
  };
  await show();
  setInterval(() => { if (!document.hidden) show(); }, 2000);
}

function draw(jobs, again, headline, list) {
  const running = jobs.filter((job) => job.state === "running").length, waiting = jobs.filter((job) => job.state === "queued").length;
  document.title = `${running} running · mannerly`;
  const words = jobs.length ? `${many(running, "job")} running${waiting ? `, ${whole(waiting)} waiting` : ""}` : "No jobs yet";
  const table = h("table", { id: "jobs" }, h("thead", {}, h("tr", {}, COLUMNS.map(([label, kind]) => h(label ? "th" : "td", { scope: label ? "col" : null, class: kind }, label)))), h("tbody", {}, jobs.map((job) => row(job, again))));
  fill(headline, h("h1", {}, words), jobs.length ? null : h("p", {}, "Create one here, or with POST /api/jobs, described in /api/openapi.json."));
  fill(list, jobs.length ? h("div", { class: "panel table-panel" }, table) : null);
}

// Why a run has ended that did not fail, where the state does not say it.
const ENDINGS = { max_urls: "its number of pages was reached", max_requests: "its number of requests was reached", duration: "its time was over", error_rate: "too many pages failed" };
const count = (value, kind) => h("td", { class: `n ${kind}${value ? "" : " zero"}` }, whole(value));

function row(job, again) {
  const act = (verb) => button({ class: "text" }, () => call("POST", `/api/jobs/${job.id}/${verb}`, {}).then(again, again), verb[0].toUpperCase() + verb.slice(1));
  const counts = Object.entries(job.run.counts || {}).map(([name, count]) => `${whole(count)} ${name}`).join(", ");
  return h("tr", {}, h("td", { class: "name" }, h("a", { href: `/jobs/${job.id}` }, job.name)), h("td", { class: "state" }, h("span", { class: `badge ${job.state}` }, icon(CRAWL_ICONS[job.state]), ` ${job.state[0].toUpperCase()}${job.state.slice(1)}`)),
    h("td", { class: "minor" }, job.kind), count(job.run.fetched, "pages"), count(job.run.pending, "queue"), h("td", { class: "minor" }, job.schedule || NONE),
    h("td", { class: "n minor" }, job.next_due ? moment(job.next_due) : NONE), h("td", { class: "cut result", title: job.run.error || null }, job.run.error || counts || ENDINGS[job.run.ending] || ""), h("td", { class: "n act" }, (ACTIONS[job.state] || []).map(act)));
}
