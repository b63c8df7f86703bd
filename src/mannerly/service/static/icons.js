// Icons as SVG of 16 x 16 in the colour of the text: no font decides what they look like.

import { svg } from "./dom.js";
import { HOST_STATES } from "./host_states.js"; // made by the server, from its table of states

const line = (d) => ["path", { d, class: "line" }];
const fill = (d) => ["path", { d, class: "area" }];
const SHAPES = {
  brand: [line("M2 13V6a2.5 2.5 0 0 1 5 0v7m0-7a2.5 2.5 0 0 1 5 0v4a2 2 0 0 0 2 2")],
  dot: [["circle", { cx: 8, cy: 8, r: 4, class: "area" }]],
  clock: [["circle", { cx: 8, cy: 8, r: 5.5, class: "line" }], line("M8 5v3.2l2 1.2")],
  diamond: [fill("M8 2.5 13.5 8 8 13.5 2.5 8Z")],
  hollow: [line("M8 3 13 8 8 13 3 8Z")],
  shared: [line("M2.5 5.5h9M9 3l2.5 2.5L9 8M13.5 10.5h-9M7 8l-2.5 2.500L7 13")],
  pause: [fill("M4.5 3.500h2.200v9H4.500zM9.3 3.500h2.200v9H9.300z")],
  cross: [line("M4 4l8 8M12 4l-8 8")],
  check: [line("M3 8.5 6.5 12 13 4.5")],
  square: [fill("M4 4h8v8H4z")],
  down: [fill("M2.5 4.500h11L8 12.500Z")],
  up: [fill("M2.5 11.500h11L8 3.500Z")],
  search: [["circle", { cx: 7, cy: 7, r: 4.2, class: "line" }], line("M10.3 10.3 13.5 13.5")],
  shield: [line("M8 1.8 13.2 3.800v4c0 3.2-2.2 5.3-5.2 6.4-3-1.1-5.2-3.2-5.2-6.400v-4Z"), line("M5.7 8 7.4 9.7 10.5 6.3")],
  open: [line("M6 4l4 4-4 4")],
  closed: [line("M4 6l4 4 4-4")],
  more: [["circle", { cx: 3, cy: 8, r: 1.3, class: "area" }], ["circle", { cx: 8, cy: 8, r: 1.3, class: "area" }], ["circle", { cx: 13, cy: 8, r: 1.3, class: "area" }]],
};

export const icon = (name, kind = "") => svg("svg", { viewBox: "0 0 16 16", class: `icon ${kind}`, "aria-hidden": "true", focusable: "false" },
  ...(SHAPES[name] || []).map(([tag, attributes]) => svg(tag, attributes)));

// States of a host: icon, name, words, tone, hatched or not. The order is that of the legend.
export const hostState = (state) => HOST_STATES[state] || ["dot", state, state, "", false];

export const CRAWL_ICONS = {
  running: "dot", waiting: "clock", paused: "pause", held: "pause", refused: "diamond", stopping: "square", stopped: "square", cancelled: "square",
  finished: "check", incomplete: "hollow", failed: "cross", starting: "hollow", queued: "clock",
};

// Events on the axis of time.
export const EVENTS = {
  slowed: ["down", "amber", "slowed"], sped_up: ["up", "blue", "sped up"], opened: ["diamond", "red", "breaker opened"],
  closed: ["hollow", "teal", "closed"], asked_to_wait: ["clock", "amber", "asked to wait"], given_up: ["cross", "red", "given up"],
  paused: ["pause", "grey", "paused"],
};
