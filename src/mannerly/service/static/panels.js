// Errors, queue, explanation, seeds, limits, exports and the proof.

import { call, get, save } from "./api.js";
import { $, fill, h, outside } from "./dom.js";
import { drawProof } from "./charts.js";
import { NONE, clock, middle, whole } from "./format.js";

let base, ask;

export function startPanels(root, confirm) {
  base = root;
  ask = confirm;
  $("queue-form").addEventListener("submit", (event) => { event.preventDefault(); previewQueue($("queue-pattern").value.trim()); });
  $("explain-form").addEventListener("submit", (event) => { event.preventDefault(); explain($("explain-url").value.trim()); });
  $("seeds-form").addEventListener("submit", (event) => { event.preventDefault(); addSeeds(); });
  $("limits-form").addEventListener("submit", (event) => { event.preventDefault(); setLimits(); });
  fill($("exports"), ["jsonl", "csv"].map((kind) =>
    h("button", { type: "button", on: { click: () => save(`${base}/pages?format=${kind}`, `pages.${kind}`) } }, `Pages as .${kind}`)));
}

const wrong = (place, problem) => { place.className = "answer wrong"; place.textContent = problem.message; };
const right = (place, words) => { place.className = "answer"; place.textContent = words; };

export async function refreshErrors() {
  const found = await get(`${base}/errors`).catch(() => null);
  if (!found) return;
  $("errors-count").textContent = found.urls ? `${whole(found.urls)} URLs, ${found.kinds.length} kinds` : "0";
  if (!found.kinds.length) return fill($("errors"), h("tbody", {}, h("tr", {}, h("td", { class: "empty" }, "No errors so far."))));
  const retry = (kind, host, count) => h("button", { type: "button", class: "text", on: { click: async () => {
    await call("POST", `${base}/retry`, host ? { host } : {}).catch((problem) => ask(problem.message, null));
    setTimeout(refreshErrors, 800);
  } } }, `Retry ${whole(count)}`);
  fill($("errors"),
    h("thead", {}, h("tr", {}, ["Kind", "Hosts", "URLs", "Last", "Example", ""].map((label, index) => h("th", { scope: "col", class: index === 2 ? "n" : "" }, label)))),
    h("tbody", {}, found.kinds.flatMap((kind) => [
      h("tr", {}, h("td", {}, kind.words), h("td", { class: "minor" }, `${whole(kind.hosts.length)} ${kind.hosts.length === 1 ? "host" : "hosts"}`),
        h("td", { class: "n" }, whole(kind.urls)), h("td", { class: "minor" }, clock(kind.last)), h("td", { class: "cut minor", title: kind.example }, kind.example), h("td", {})),
      ...kind.hosts.slice(0, 3).map((each) => h("tr", { class: "sub" }, h("td", {}), h("td", { title: each.host }, middle(each.host)), h("td", { class: "n" }, whole(each.urls)),
        h("td", { class: "minor" }, ""), h("td", { class: "minor" }, ""), h("td", {}, kind.can_retry ? retry(kind.code, each.host, each.urls) : ""))),
    ])));
}

async function previewQueue(pattern) {
  const place = $("queue-preview");
  if (!pattern) return;
  let found;
  try {
    found = await get(`${base}/queue?pattern=${encodeURIComponent(pattern)}`);
  } catch (problem) {
    return fill(place, h("p", { class: "answer wrong" }, problem.message));
  }
  const exclude = async () => {
    if (!(await ask(`Exclude ${whole(found.matching)} queued URLs that match ${pattern}? Links found later that match are skipped, too. This cannot be taken back.`, `Exclude ${whole(found.matching)} URLs`))) return;
    try {
      await call("PATCH", base, { options: { exclude: pattern } });
      fill(place, h("p", { class: "answer" }, "Excluded. Queued URLs are dropped when it is their turn."));
    } catch (problem) {
      fill(place, h("p", { class: "answer wrong" }, problem.message));
    }
  };
  fill(place,
    h("p", {}, h("strong", {}, `${found.is_cut ? "At least " : ""}${whole(found.matching)} of ${whole(found.queued)}`), ` queued URLs match, on ${whole(found.hosts.length)} hosts.`),
    h("table", {}, h("tbody", {}, found.hosts.slice(0, 5).map((each) => h("tr", {}, h("td", {}, middle(each.host)), h("td", { class: "n" }, whole(each.urls)))))),
    found.examples.map((url) => h("p", { class: "empty" }, url)),
    found.matching ? h("button", { type: "button", class: "danger", id: "exclude", on: { click: exclude } }, `Exclude ${whole(found.matching)} URLs…`) : null);
}

async function explain(url) {
  const place = $("explanation");
  if (!url) return;
  try {
    const found = await get(`${base}/explain?url=${encodeURIComponent(url)}`);
    const fact = (label, value) => [h("dt", {}, label), h("dd", {}, value)];
    fill(place, h("p", {}, h("span", { class: "badge" }, found.state), " ", found.because), h("dl", { class: "facts" },
      fact("URL", outside(found.url)), fact("Found on", found.found_by.length ? found.found_by[0] : NONE),
      fact("Depth", found.depth === null ? NONE : String(found.depth)), fact("Scope", found.scope), fact("robots.txt", found.robots)));
  } catch (problem) {
    fill(place, h("p", { class: "answer wrong" }, problem.message));
  }
}

async function addSeeds() {
  const urls = $("seeds").value.split(/\s+/).filter(Boolean);
  if (!urls.length) return;
  try {
    await call("POST", `${base}/seeds`, { urls });
    $("seeds").value = "";
    right($("seeds-answer"), `Added ${urls.length === 1 ? "1 seed" : `${urls.length} seeds`}; asked for as soon as its host allows.`);
  } catch (problem) {
    wrong($("seeds-answer"), problem);
  }
}

const LIMITS = [["max_urls", "Pages, at most"], ["duration", "Seconds, at most"], ["max_rate", "Requests a second to one host, at most"], ["workers", "Requests in flight, at most"]];

export function showLimits(limits) {
  const form = $("limits-form");
  if (form.contains(document.activeElement)) return;
  fill(form, LIMITS.flatMap(([name, label]) => [
    h("label", { for: `limit-${name}` }, label),
    h("input", { id: `limit-${name}`, name, inputmode: "decimal", value: limits[name] ?? "", placeholder: "no limit", "data-was": limits[name] ?? "" }),
  ]), h("button", { type: "submit" }, "Change"));
}

async function setLimits() {
  const options = {};
  for (const field of $("limits-form").querySelectorAll("input")) {
    const value = field.value.trim();
    if (value === field.dataset.was) continue;
    options[field.name] = value === "" || value === "no limit" ? null : Number(value);
    if (Number.isNaN(options[field.name])) return wrong($("limits-answer"), new Error(`${field.name} is “${value}”; allowed: a number, or empty for no limit.`));
  }
  if (!Object.keys(options).length) return;
  try {
    await call("PATCH", base, { options });
    right($("limits-answer"), "Changed; in force within a second.");
    document.activeElement.blur();
  } catch (problem) {
    wrong($("limits-answer"), problem);
  }
}

export async function refreshProof() {
  const found = await get(`${base}/proof`).catch(() => null);
  if (!found) return;
  const kept = found.early === 0;
  $("proof-badge").textContent = kept ? "Kept" : "Broken";
  $("proof-badge").className = kept ? "badge done" : "badge failed";
  $("proof-sentence").textContent = found.sentence;
  drawProof(found.hosts);
  fill($("proof-hosts"),
    h("thead", {}, h("tr", {}, ["Host", "Requests", "Gap in force s", "Smallest gap s", "Ratio", "Refused"].map((label, index) => h("th", { scope: "col", class: index ? "n" : "" }, label)))),
    h("tbody", {}, found.hosts.slice(0, 5).map((each) => h("tr", {}, h("td", { title: each.host }, middle(each.host)), h("td", { class: "n" }, whole(each.requests)),
      h("td", { class: "n" }, each.required_gap_s.toFixed(3)), h("td", { class: "n" }, each.smallest_gap_s.toFixed(3)),
      h("td", { class: "n" }, each.required_gap_s ? (each.smallest_gap_s / each.required_gap_s).toFixed(3) : NONE), h("td", { class: each.refused ? "n" : "n zero" }, whole(each.refused))))));
}
