// Keys. No single key destroys or stops anything; single keys can be turned off.

import { $ } from "./dom.js";
import { closeHost, openedHost } from "./host_panel.js";

const SECTIONS = ["time", "hosts-part", "errors-part", "queue-part", "proof"];
const isOn = () => localStorage.getItem("single-keys") !== "off";

export function startKeys() {
  addEventListener("keydown", press);
  $("keys-open").addEventListener("click", () => $("keys").showModal());
  $("keys-on").checked = isOn();
  $("keys-on").addEventListener("change", () => localStorage.setItem("single-keys", $("keys-on").checked ? "on" : "off"));
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const inField = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName || "");
  if (event.key === "Escape") {
    const menu = document.querySelector("details[open]");
    if (inField) document.activeElement.blur();
    else if (menu) menu.open = false;
    else closeHost();
    return;
  }
  if (inField || !isOn() || (document.body.classList.contains("is-list") && event.key !== "?")) return; // the list of jobs has no parts
  const act = actions[event.key] || (/^[1-5]$/.test(event.key) ? () => section(Number(event.key) - 1) : null);
  if (act) { event.preventDefault(); act(); }
}

const actions = {
  "/": () => (visible($("explain-top-url")) ? $("explain-top-url") : $("explain-url")).focus(),
  f: () => $("host-filter").focus(),
  j: () => step(1), k: () => step(-1),
  p: () => { if (openedHost()) ($("host-pause") || $("host-resume"))?.click(); else pauseFocused(); },
  P: () => $("pause").click(),
  "?": () => $("keys").showModal(),
};

const visible = (element) => element.offsetParent !== null;

function section(number) {
  const part = $(SECTIONS[number]);
  part.scrollIntoView({ block: "start" });
  part.querySelector("h2").focus({ preventScroll: true });
}

function step(by) {
  const rows = [...$("hosts").querySelectorAll("tr[data-host]")], at = rows.indexOf(document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.focus();
}

// A row has the focus and its panel is not open: open it, so that what is paused can be seen.
function pauseFocused() {
  const row = document.activeElement?.closest?.("tr[data-host]");
  if (!row) return;
  row.click();
  const wait = setInterval(() => { const found = $("host-pause") || $("host-resume"); if (found) { clearInterval(wait); found.click(); } }, 50);
  setTimeout(() => clearInterval(wait), 5000);
}
