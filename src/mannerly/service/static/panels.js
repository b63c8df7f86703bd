// Explain a URL, add seeds, limits, export and report.

import { call, get, save } from "./api.js";
import { $, button, fill, h, outside } from "./dom.js";
import { NONE, rate, span, whole } from "./format.js";
import { icon } from "./icons.js";

let base, isChanging = false, latest = null;

export function startPanels(root) {
  base = root;
  const submit = (form, act) => $(form).addEventListener("submit", (event) => { event.preventDefault(); act(); });
  submit("explain-form", () => explain($("explain-url").value.trim()));
  submit("explain-top", () => { $("explain-url").value = $("explain-top-url").value; explain($("explain-url").value.trim()); go("explain-part"); });
  submit("seeds-form", addSeeds);
  submit("limits-form", setLimits);
  $("limits-change").addEventListener("click", () => { isChanging = !isChanging; limits(); if (isChanging) $("limit-max_urls").focus(); });
  for (const place of document.querySelectorAll("[data-export]")) place.addEventListener("click", () => take(place.dataset.export));
  for (const place of document.querySelectorAll("[data-go]")) place.addEventListener("click", () => go(place.dataset.go));
}

export function go(part) {
  document.querySelectorAll("details[open]").forEach((menu) => { menu.open = false; });
  $(part).scrollIntoView({ block: "start" });
  ({ seeds: $("seeds"), limits: $("limits-change"), explain: $("explain-url") })[part.replace("-part", "")]?.focus({ preventScroll: true });
}

const say = (place, words, isWrong) => { place.className = isWrong ? "answer wrong" : "answer"; place.textContent = words; };

const FILES = { jsonl: ["pages?format=jsonl", "pages.jsonl"], csv: ["pages?format=csv", "pages.csv"], report: ["report", "report.html"] };

export async function take(kind) {
  const [path, name] = FILES[kind], place = $("export-answer");
  document.querySelectorAll("details[open]").forEach((menu) => { menu.open = false; });
  say(place, kind === "report" ? "The report is being written; this may take a while." : "The pages are being read.");
  try {
    await save(`${base}/${path}`, name);
    say(place, `Saved ${name}: the crawl as it was a moment ago.`);
  } catch (problem) {
    say(place, problem.message, true);
  }
}

async function explain(url) {
  const place = $("explanation");
  if (!url) return;
  try {
    const found = await get(`${base}/explain?url=${encodeURIComponent(url)}`);
    const fact = (label, value) => [h("dt", {}, label), h("dd", {}, value)];
    const tone = { fetched: "done", failed: "failed", skipped: "", queued: "running" }[found.state] ?? "", shape = { fetched: "check", failed: "cross", queued: "clock" }[found.state] || "cross";
    fill(place, h("p", {}, h("span", { class: `badge ${tone}` }, icon(shape), ` ${found.state[0].toUpperCase()}${found.state.slice(1)}`), " ", found.because),
      h("dl", { class: "facts" }, fact("URL", outside(found.url)), fact("Found on", found.found_by.length ? outside(found.found_by[0]) : NONE),
        fact("Depth", found.depth === null ? NONE : String(found.depth)), fact("Scope", found.scope), fact("robots.txt", found.robots)));
  } catch (problem) {
    fill(place, h("p", { class: "answer wrong", role: "alert" }, problem.message));
  }
}

async function addSeeds() {
  const urls = $("seeds").value.split(/\s+/).filter(Boolean);
  if (!urls.length) return;
  try {
    await call("POST", `${base}/seeds`, { urls });
    $("seeds").value = "";
    say($("seeds-answer"), `Added ${urls.length === 1 ? "1 seed" : `${urls.length} seeds`}; asked for as soon as its host allows.`);
  } catch (problem) {
    say($("seeds-answer"), problem.message, true);
  }
}

// name, label, what is used of it now, as text
const LIMITS = [
  ["max_urls", "Pages", (live) => whole(live.numbers.fetched), whole], ["duration", "Time", (live) => span(live.elapsed_s), span],
  ["max_rate", "Rate to one host", null, (value) => `at most ${rate(value)}/s`], ["concurrency", "Requests in flight", (live) => whole(live.numbers.in_flight), whole],
];
const UNITS = { max_urls: "pages", duration: "s", max_rate: "/s", concurrency: "requests" };

export function showLimits(live) { latest = live; if (!isChanging) limits(); }

function limits() {
  if (!latest) return;
  $("limits-form").classList.toggle("hidden", !isChanging);
  $("limits-now").classList.toggle("hidden", isChanging);
  $("limits-change").textContent = isChanging ? "Cancel" : "Change…";
  const of = latest.limits;
  const now = LIMITS.flatMap(([name, label, used, said]) => {
    const limit = of[name] === null || of[name] === undefined ? null : said(of[name]);
    const value = used ? [used(latest), h("span", {}, limit === null ? ", no limit" : ` of ${limit}`)] : [limit ?? h("span", {}, "as each host allows")];
    return [h("dt", {}, label), h("dd", {}, ...value)];
  });
  fill($("limits-now"), now);
  if (!isChanging || $("limits-form").contains(document.activeElement)) return;
  fill($("limits-form"), LIMITS.flatMap(([name, label]) => [h("label", { for: `limit-${name}` }, label, h("span", {}, `, ${UNITS[name]} at most`)),
    h("input", { id: `limit-${name}`, name, inputmode: "decimal", autocomplete: "off", value: of[name] ?? "", placeholder: "no limit", "data-was": of[name] ?? "" })]),
  h("button", { type: "submit", class: "primary" }, "Set limits"));
}

async function setLimits() {
  const options = {}, answer = $("limits-answer");
  for (const field of $("limits-form").querySelectorAll("input")) {
    const value = field.value.trim();
    if (value === field.dataset.was) continue;
    options[field.name] = value === "" || value === "no limit" ? null : Number(value);
    if (Number.isNaN(options[field.name])) return say(answer, `“${value}” is not a number; leave it empty for no limit.`, true);
  }
  try {
    if (Object.keys(options).length) await call("PATCH", base, { options });
    say(answer, Object.keys(options).length ? "Changed; in force within a second." : "Nothing was changed.");
    isChanging = false;
    document.activeElement.blur();
    Object.assign(latest.limits, options);
    limits();
  } catch (problem) {
    say(answer, problem.message, true);
  }
}

export const reportButton = () => button({}, () => take("report"), "Save report");
