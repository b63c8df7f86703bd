// The course over time: pages, refusals, events on one axis; queue, requests in flight and latency beside (uPlot).

import { $, button, fill, h, svg } from "./dom.js";
import { clock, minute, rate, whole } from "./format.js";
import { EVENTS, icon } from "./icons.js";

const SPANS = { "15 min": 900, "1 h": 3600, "6 h": 21600, All: Infinity };
const GAP_S = { 900: 5, 3600: 40, 21600: 60, Infinity: 600 }; // longer without a point: a gap, not a line
const LEFT = 44, RIGHT = 26; // half a label of time fits at the right
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const NAMES = { "chart-main": "Pages per second", "chart-refused": "Refused per second", "chart-queue": "Queued URLs", "chart-flight": "Requests in flight", "chart-latency": "Latency, median and 95 %" };

let chosen = "15 min", points = [], events = [], plots = [], isReady = false, drawnAt = 0;

export function startCharts() {
  fill($("spans"), Object.keys(SPANS).map((name) => button({ "aria-pressed": String(name === chosen) }, () => choose(name), name)));
  fill($("events-legend"), Object.values(EVENTS).map(([shape, tone, words]) => h("li", {}, icon(shape, tone), ` ${words}`)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let width = 0;
  new ResizeObserver(([entry]) => { if (entry.contentRect.width !== width) { width = entry.contentRect.width; again(); } }).observe($("chart-main"));
  const ready = () => { isReady = true; again(); };
  document.fonts.load("11px Inter").then(ready, ready); // else the axes come out in another font
}

function again() {
  plots.forEach((plot) => plot.destroy());
  plots = [];
  draw();
}

function choose(name) {
  chosen = name;
  for (const each of $("spans").children) each.setAttribute("aria-pressed", String(each.textContent === name));
  draw();
}

export function setHistory(known, happened) { points = known; events = happened; draw(); }

export function addEvents(latest) {
  const last = events.length ? events[events.length - 1].at : 0;
  events.push(...latest.filter((each) => each.at > last));
  if (events.length > 2000) events = events.slice(-1000);
}

export function addPoint(point) {
  if (points.length && point[0] <= points[points.length - 1][0]) return;
  points.push(point);
  if (!document.hidden && Date.now() - drawnAt > 900) draw();
}

// The most requests in flight, and the queue five minutes ago: what the numbers are compared with.
export function compared() {
  if (points.length < 2) return {};
  const last = points[points.length - 1], most = points.reduce((best, each) => (each[4] > best[4] ? each : best));
  const before = points.find((each) => each[0] >= last[0] - 300);
  return { most: most[4], mostAt: most[0], queueBefore: last[0] - before[0] > 240 ? before[3] : null };
}

function shown() {
  const last = points[points.length - 1][0], rows = points.filter((point) => point[0] >= last - SPANS[chosen]);
  const most = GAP_S[SPANS[chosen]], whole = [];
  rows.forEach((row, index) => {
    if (index && row[0] - rows[index - 1][0] > most) whole.push([rows[index - 1][0] + 1, null, null, null, null, null, null]);
    whole.push(row);
  });
  return whole;
}

function draw() {
  if (!isReady || points.length < 2 || typeof uPlot === "undefined") return;
  drawnAt = Date.now();
  const rows = shown(), columns = Array.from({ length: 7 }, (_, column) => rows.map((row) => row[column]));
  const [time, pages, refused, queue, flight, median, high] = columns;
  const wanted = [
    ["chart-main", 148, [time, pages], [line("blue", true)], {}],
    ["chart-refused", 62, [time, refused], [bars("red")], { hasTimes: true, ticks: 1 }],
    ["chart-queue", 96, [time, queue], [line("blue", true)], { hasTimes: true }],
    ["chart-flight", 96, [time, flight], [line("blue", false)], { hasTimes: true }],
    ["chart-latency", 96, [time, median, high], [line("blue", false), line("violet", false, [4, 3])], { hasTimes: true }],
  ];
  if (!plots.length) plots = wanted.map(([place, height, data, lines, more]) => make($(place), height, data, lines, more));
  else wanted.forEach(([, , data], index) => plots[index].setData(data));
  $("charts").classList.remove("hidden");
  $("charts-empty").classList.add("hidden");
  const known = pages.filter((value) => value !== null);
  $("chart-main").setAttribute("aria-label", `Pages a second, ${chosen}: now ${rate(known[known.length - 1])}, most ${rate(Math.max(...known))}`);
}

const line = (name, filled, dash) => ({ stroke: colour(name), width: 1.5, dash, points: { show: false }, spanGaps: false, fill: filled ? `${colour(name)}1f` : undefined });
const bars = (name) => ({ stroke: colour(name), fill: colour(name), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.7, 5] }) });

const short = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1000}k` : whole(value) === "0" && value ? String(value) : value.toLocaleString("en-US"));

function make(place, height, data, lines, { hasTimes = false, ticks = 2 }) {
  place.replaceChildren();
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", NAMES[place.id]);
  const axis = { stroke: colour("text-3"), font: "11px Inter, system-ui, sans-serif", ticks: { show: false }, gap: 6 };
  const grid = { stroke: colour("line"), width: 1 };
  const levels = (_plot, _axis, _low, top) => Array.from({ length: ticks + 1 }, (_, number) => (top * number) / ticks);
  return new uPlot({
    width: Math.max(140, place.clientWidth), height, padding: [8, RIGHT, hasTimes ? 0 : 8, 0], legend: { show: false },
    cursor: { y: false, sync: { key: "time" }, points: { show: false }, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _low, high) => [0, nice(high || 0)] } },
    axes: [
      { ...axis, show: hasTimes, grid: { show: false }, size: 22, space: 84, values: (_plot, times, _axis, _space, step) => times.map((at) => (step < 60 ? clock(at) : minute(at))) },
      { ...axis, grid, size: LEFT, splits: levels, values: (_plot, values) => values.map(short) },
    ],
    hooks: place.id === "chart-main" ? { setCursor: [point], draw: [drawEvents] } : {}, // its axis is settled only then
    series: [{}, ...lines],
  }, data, place);
}

function nice(high) {
  if (high <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(high * 1.05));
  return [1, 2, 4, 5, 6, 8, 10].find((step) => step * power >= high * 1.05) * power;
}

// Events as marks on the axis of the charts; those that would touch merge into one with a count.
function drawEvents(plot) {
  const width = $("events-lane").clientWidth, [from, to] = [plot.scales.x.min, plot.scales.x.max], groups = [];
  for (const event of events) {
    if (event.at < from || event.at > to) continue;
    const at = LEFT + ((width - LEFT - RIGHT) * (event.at - from)) / (to - from || 1), last = groups[groups.length - 1];
    if (last && at - last.at < 20 + 7 * String(last.events.length + 1).length) last.events.push(event);
    else groups.push({ at, events: [event] });
  }
  fill($("events-lane"), h("span", { class: "lane-name" }, "Events"), groups.map((group) => {
    const counts = new Map();
    for (const each of group.events) counts.set(each.kind, (counts.get(each.kind) || 0) + 1);
    const [kind] = [...counts].sort((one, other) => other[1] - one[1])[0], [shape, tone] = EVENTS[kind] || ["dot", "grey"];
    const mark = h("span", { class: "event", title: group.events.slice(-5).map(said).join("\n") }, icon(shape, tone), group.events.length > 1 ? h("small", {}, whole(group.events.length)) : null);
    mark.style.left = `${group.at}px`;
    return mark;
  }));
  const latest = events.slice(-4).reverse();
  fill($("events"), latest.map((each) => h("li", {}, h("time", {}, clock(each.at)), icon(...(EVENTS[each.kind] || ["dot", "grey"]).slice(0, 2)), h("b", {}, each.host), ` ${each.words}`)));
}

export const said = (event) => `${clock(event.at)} ${event.host} ${event.words}`;

// What is under the cursor: the values, and the event that is nearest.
function point(plot) {
  const tip = $("tip"), index = plot.cursor.idx, left = plot.cursor.left;
  if (index === null || index === undefined || left < 0) return tip.classList.add("hidden");
  const at = plot.data[0][index], row = points.find((each) => each[0] === at);
  if (!row) return tip.classList.add("hidden");
  const near = events.filter((each) => Math.abs(plot.valToPos(each.at, "x") - left) < 8).pop();
  fill(tip, h("b", {}, clock(near ? near.at : at)), " ", near ? `${near.host} ${near.words} · ` : "", `${rate(row[1])} pages/s, ${rate(row[2])} refused/s`);
  tip.classList.remove("hidden");
  const room = $("charts").clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(0, Math.min(room, LEFT + left + 12))}px`;
  return null;
}
