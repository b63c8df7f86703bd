// The politeness proof: of each host the smallest gap against the gap in force.

import { get } from "./api.js";
import { $, button, fill, h } from "./dom.js";
import { NONE, clock, many, middle, whole } from "./format.js";
import { icon } from "./icons.js";
import { proofChart } from "./small_charts.js";

const FEW = 5;
let base, latest = null, isAll = false;

export function startProof(root) {
  base = root;
  $("proof-copy").addEventListener("click", async () => {
    if (!latest) return;
    await navigator.clipboard.writeText(JSON.stringify(latest, null, 2)).then(() => tell("Copied"), () => tell("Could not copy"));
  });
  new ResizeObserver(() => latest && draw()).observe($("proof-dots"));
}

function tell(words) {
  $("proof-copy").textContent = words;
  setTimeout(() => { $("proof-copy").textContent = "Copy as JSON"; }, 2000);
}

export async function refreshProof() {
  const found = await get(`${base}/proof`).catch(() => null);
  if (!found) return;
  latest = found;
  draw();
}

function draw() {
  const kept = latest.early === 0, closest = latest.hosts[0];
  fill($("proof-badge"), icon(kept ? "shield" : "cross"), kept ? " Kept" : " Broken");
  $("proof-badge").className = kept ? "badge done" : "badge failed";
  $("proof-sentence").textContent = latest.sentence;
  $("proof-closest").textContent = closest ? `Closest call: ${closest.host}, ${closest.smallest_gap_s.toFixed(3)} s against ${closest.required_gap_s.toFixed(3)} s in force${closest.at ? `, at ${clock(closest.at)}` : ""}.` : "";
  $("proof-about").textContent = latest.histogram.length ? "Smallest gap ÷ gap in force, number of hosts. Left of 1.00 would be too early." : "Smallest gap ÷ gap in force, one dot a host. Left of 1.00 would be too early.";
  if (!closest) {
    fill($("proof-dots"), h("p", { class: "empty" }, "No host has had two requests yet."));
    fill($("proof-hosts")); fill($("proof-foot"));
    return;
  }
  fill($("proof-dots"), proofChart(latest.hosts, latest.histogram, Math.max(280, $("proof-dots").clientWidth)));
  const rows = isAll ? latest.hosts : latest.hosts.slice(0, FEW);
  const heads = [["Host"], ["Requests", "n"], ["Gap in force then", "n", "s"], ["Smallest gap", "n", "s"], ["Ratio", "n", "", "↑ "], ["Retry-After kept", "n minor"], ["Refused", "n minor"]];
  fill($("proof-hosts"),
    h("thead", {}, h("tr", {}, heads.map(([label, kind = "", unit = "", arrow = ""]) => h("th", { scope: "col", class: kind, "aria-sort": arrow ? "ascending" : null }, arrow, label, unit ? h("span", { class: "unit" }, ` ${unit}`) : null)))),
    h("tbody", {}, rows.map(row)));
  const all = latest.hosts.length, rest = latest.measured_hosts > all ? ` (the closest ${whole(all)} of ${whole(latest.measured_hosts)})` : "";
  fill($("proof-foot"), h("span", {}, `${whole(rows.length)} of ${many(latest.measured_hosts, "host")}, closest first.`), h("span", { class: "space" }),
    all > FEW ? button({ class: "text" }, () => { isAll = !isAll; draw(); }, isAll ? "Show fewer" : `Show all ${whole(all)}${rest}`) : null);
}

function row(each) {
  return h("tr", {}, h("td", { class: "name", title: each.host }, middle(each.host)), h("td", { class: "n" }, whole(each.requests)),
    h("td", { class: "n" }, each.required_gap_s.toFixed(3)), h("td", { class: "n" }, each.smallest_gap_s.toFixed(3)), h("td", { class: "n" }, (each.smallest_gap_s / each.required_gap_s).toFixed(3)),
    h("td", { class: `n minor${each.retry_afters ? "" : " zero"}` }, each.retry_afters ? `${whole(each.retry_afters_kept)} of ${whole(each.retry_afters)}` : NONE),
    h("td", { class: `n minor${each.refused ? "" : " zero"}` }, whole(each.refused)));
}
