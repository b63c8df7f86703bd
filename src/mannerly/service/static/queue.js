// The queue: what waits, and a pattern that can be excluded after a preview.

import { call, get } from "./api.js";
import { $, button, fill, h } from "./dom.js";
import { NONE, many, middle, share, span, whole } from "./format.js";

let base, ask, isTyped = false;

export function startQueue(root, confirm) {
  [base, ask] = [root, confirm];
  let typing;
  const preview = () => { clearTimeout(typing); typing = setTimeout(refreshQueue, 250); };
  $("queue-pattern").addEventListener("input", preview);
  $("queue-form").addEventListener("submit", (event) => { event.preventDefault(); refreshQueue(); });
}

export async function refreshQueue(isTimer = false) {
  const pattern = $("queue-pattern").value.trim(), place = $("queue-preview");
  if (isTimer && pattern) return; // a preview stays as it is until it is asked for again
  isTyped = Boolean(pattern);
  let found;
  try {
    found = await get(`${base}/queue?pattern=${encodeURIComponent(pattern)}`);
  } catch (problem) {
    return isTimer ? null : fill(place, h("p", { class: "answer wrong" }, problem.message));
  }
  if ($("queue-pattern").value.trim() !== pattern) return;
  $("exclude").disabled = !found.matching;
  $("exclude").textContent = found.matching ? `Exclude ${many(found.matching, "URL")}…` : "Exclude…";
  $("exclude").onclick = () => exclude(pattern, found);
  fill(place, sentence(found), found.hosts.length ? table(found) : null, examples(found));
}

function sentence(found) {
  if (!isTyped) return h("p", { class: "empty" }, found.queued ? "Type a pattern to see which queued URLs it matches; nothing is removed before you say so." : "Nothing is queued.");
  if (!found.matching) return h("p", {}, `No queued URL matches${found.is_cut ? " among those that were looked at" : ""}.`);
  return h("p", {}, h("b", {}, `${found.is_cut ? "At least " : ""}${whole(found.matching)} of ${whole(found.queued)}`), " queued URLs match ",
    h("span", { class: "empty" }, `(${share(found.matching, found.queued)} %)`), `, on ${many(found.matching_hosts, "host")}. Excluding also skips matching links found later.`);
}

function table(found) {
  const rows = found.hosts.slice(0, 5), most = Math.max(...rows.map((each) => each.urls));
  const part = (each) => (isTyped ? each.urls / each.queued : each.urls / most);
  return h("table", {}, h("thead", {}, h("tr", {}, ["Host", isTyped ? "Matching" : "Queue", isTyped ? "Share of its queue" : "", isTyped ? "Time saved" : "Needs"]
    .map((label, index) => h(label ? "th" : "td", { scope: label ? "col" : null, class: index === 2 ? "part-of" : index ? "n" : "" }, label)))),
  h("tbody", {}, rows.map((each) => {
    const bar = h("i", { class: "share" });
    bar.style.width = `${Math.max(3, 64 * part(each))}px`;
    return h("tr", {}, h("td", { title: each.host }, middle(each.host, 30)), h("td", { class: "n" }, whole(each.urls)),
      h("td", { class: "part-of" }, bar, isTyped ? ` ${Math.round(100 * part(each))} %` : ""), h("td", { class: "n" }, each.needs_s ? `at least ${span(each.needs_s)}` : NONE));
  })));
}

function examples(found) {
  if (!found.examples.length) return null;
  const list = h("ul", { class: "urls" }, found.examples.slice(0, 2).map((url) => h("li", { title: url }, url)));
  const all = isTyped ? found.matching : found.queued, line = h("p", { class: "empty" }, `First ${Math.min(2, found.examples.length)} of ${whole(all)}. `);
  if (found.examples.length > 2) {
    line.append(button({ class: "text" }, () => {
      fill(list, found.examples.map((url) => h("li", { title: url }, url)));
      line.textContent = `First ${found.examples.length} of ${whole(all)}.`;
    }, "Show more"));
  }
  return [list, line];
}

async function exclude(pattern, found) {
  const words = `Exclude ${many(found.matching, "queued URL")} that match ${pattern}? Links found later that match are skipped, too. This cannot be taken back.`;
  if (!(await ask(words, `Exclude ${many(found.matching, "URL")}`))) return;
  try {
    await call("PATCH", base, { options: { exclude: pattern } });
    $("queue-pattern").value = "";
    $("exclude").disabled = true;
    $("exclude").textContent = "Exclude…";
    fill($("queue-preview"), h("p", { class: "answer", role: "status" }, `Excluded ${pattern}. Queued URLs are dropped when it is their turn.`));
  } catch (problem) {
    fill($("queue-preview"), h("p", { class: "answer wrong", role: "alert" }, problem.message));
  }
}
