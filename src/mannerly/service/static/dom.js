// Make elements without markup: all text is set as text, so nothing of a crawled site is ever parsed.

export const $ = (id) => document.getElementById(id);

const present = (child) => child !== null && child !== undefined && child !== false;

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === "class") element.className = value;
    else if (value === true) element.setAttribute(name, "");
    else if (present(value)) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(present));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter(present));
}

export const button = (attributes, act, ...children) => h("button", { type: "button", ...attributes, on: { click: act } }, ...children);

// A link to a crawled URL; anything but http and https stays text.
export function outside(url, shown = url) {
  if (!/^https?:\/\//.test(url)) return document.createTextNode(shown);
  return h("a", { href: url, rel: "noopener noreferrer nofollow", target: "_blank", title: url }, shown);
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// What the lines of a host's pace mean.
export const paceLegend = () => [["pace", "pace"], ["limit", "limit found"], ["refused", "refused"]]
  .map(([kind, words]) => h("span", {}, h("i", { class: `key ${kind}` }), words));

// Elements that change all the time are made anew only if what they show has changed, and never under a finger:
// an open menu, a focused field or a selection would be lost.
export function keep(element, key, make) {
  if (element.dataset.shown === key) return;
  element.dataset.shown = key;
  fill(element, ...[make()].flat());
}
