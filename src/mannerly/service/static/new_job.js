// The form for a new job. A wrong value is named beside its field, and the field gets the focus.

import { call } from "./api.js";
import { button, h } from "./dom.js";

const KINDS = [["crawl", "Crawl"], ["recrawl", "Crawl, then ask for the same pages again with each run"], ["check", "Look for broken links"], ["warm", "Fill the cache in front of a site"]];
const SCOPES = [["", "The host of each seed"], ["site", "The whole site (registrable domain)"], ["prefix", "The directory of each seed"], ["any", "Any host"]];

// name of the field in the request, label, how it is entered, hint
const FIELDS = [
  ["kind", "Kind", { options: KINDS }],
  ["seeds", "Seeds", { tag: "textarea", rows: 3, placeholder: "https://example.org/", spellcheck: "false", required: true }, "URLs to start from, one a line"],
  ["name", "Name", { placeholder: "the host of the first seed" }],
  ["options.scope", "Scope", { options: SCOPES }],
  ["options.max_urls", "Pages at most", { inputmode: "numeric", placeholder: "no limit" }],
  ["options.max_rate", "Requests per second to a host at most", { inputmode: "decimal", placeholder: "8" }],
  ["schedule", "Schedule", { placeholder: "once, now", spellcheck: "false", class: "mono" }, "Minute, hour, day, month, weekday: 0 3 * * * is every day at 3:00"],
];
const NUMBERS = ["options.max_urls", "options.max_rate"];
const place = (name) => `new-${name.replace(".", "-")}`;

export function newJobForm(created) {
  const fields = new Map();
  const answer = h("p", { class: "answer", role: "status" });
  const form = h("form", { class: "new-job panel hidden", id: "new-job", "aria-label": "New job", novalidate: true, on: { submit: (event) => { event.preventDefault(); send(); } } },
    FIELDS.flatMap(([name, label, how, hint]) => field(name, label, how, hint)),
    h("div", { class: "row end" }, button({}, () => toggle(false), "Cancel"), h("button", { type: "submit", class: "primary" }, "Create job")), answer);
  const opener = button({ class: "primary", id: "new-job-open", "aria-expanded": "false", "aria-controls": "new-job" }, () => toggle(form.classList.contains("hidden")), "New job");
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); toggle(false); } });

  function field(name, label, { tag = "input", options, ...more }, hint) {
    const id = place(name), wrong = h("p", { class: "wrong", id: `${id}-wrong`, role: "alert" });
    const entry = options ? h("select", { id }, options.map(([value, words]) => h("option", { value }, words))) : h(tag, { id, autocomplete: "off", ...more });
    if (!options && tag === "input") entry.type = "text";
    entry.setAttribute("aria-describedby", hint ? `${id}-wrong ${id}-hint` : `${id}-wrong`);
    fields.set(name, { entry, wrong });
    return [h("label", { for: id }, label), h("div", {}, entry, wrong, hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null)];
  }

  function toggle(isOpen) {
    form.classList.toggle("hidden", !isOpen);
    opener.setAttribute("aria-expanded", String(isOpen));
    (isOpen ? fields.get("seeds").entry : opener).focus();
  }

  function refuse(name, words) {
    const found = fields.get(name);
    if (!found) { answer.className = "answer wrong"; answer.textContent = words; return; }
    found.wrong.textContent = words;
    found.entry.setAttribute("aria-invalid", "true");
    found.entry.focus();
  }

  function clear() {
    answer.textContent = "";
    for (const { entry, wrong } of fields.values()) { wrong.textContent = ""; entry.removeAttribute("aria-invalid"); }
  }

  async function send() {
    clear();
    const request = { options: {} };
    for (const [name, { entry }] of fields) {
      const text = entry.value.trim();
      if (name === "seeds") request.seeds = text.split(/\s+/).filter(Boolean);
      else if (text && name.startsWith("options.")) {
        const value = NUMBERS.includes(name) ? Number(text) : text;
        if (Number.isNaN(value)) return refuse(name, `“${text}” is not a number; leave it empty for the default.`);
        request.options[name.slice(8)] = value;
      } else if (text) request[name] = text;
    }
    if (!request.seeds.length) return refuse("seeds", "Give at least one URL.");
    try {
      const job = await call("POST", "/api/jobs", request);
      form.reset();
      toggle(false);
      created(job);
    } catch (problem) {
      refuse(problem.field, problem.message);
    }
  }

  return { form, opener };
}
