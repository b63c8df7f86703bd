// The charts over time (uPlot), and the politeness proof (SVG).

import { $, fill, h, svg } from "./dom.js";

const SPANS = { "15 min": 900, "1 h": 3600, "6 h": 21600, All: Infinity };
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

let chosen = "15 min";
let points = []; // [time, pages/s, refused/s, queue, in flight, median, 95 %]
let plots = [];
let marks = [];

export function setMarks(events) { marks = events; }

export function startCharts() {
  fill($("spans"), Object.keys(SPANS).map((name) =>
    h("button", { type: "button", "aria-pressed": String(name === chosen), on: { click: () => choose(name) } }, name)));
  const again = () => { plots.forEach((plot) => plot.destroy()); plots = []; draw(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  new ResizeObserver(again).observe($("chart-main"));
  document.fonts.load("11px Inter").then(again, again);
}

function choose(name) {
  chosen = name;
  for (const button of $("spans").children) button.setAttribute("aria-pressed", String(button.textContent === name));
  draw();
}

export function setHistory(known) { points = known; draw(); }

export function addPoint(point) {
  if (points.length && point[0] <= points[points.length - 1][0]) return;
  points.push(point);
  draw();
}

function shown() {
  const last = points[points.length - 1][0];
  return points.filter((point) => point[0] >= last - SPANS[chosen]);
}

function draw() {
  if (points.length < 2 || typeof uPlot === "undefined") return;
  const rows = shown();
  const columns = Array.from({ length: 7 }, (_, column) => rows.map((row) => row[column]));
  const [time, pages, refused, queue, flight, median, high] = columns;
  const wanted = [
    [$("chart-main"), 220, [time, pages, refused], [series("Pages/s", "blue", true), bars("Refused/s", "red")]],
    [$("chart-queue"), 90, [time, queue], [series("Queue", "blue", true)]],
    [$("chart-flight"), 90, [time, flight], [series("In flight", "blue", true)]],
    [$("chart-latency"), 90, [time, median, high], [series("Median", "blue", false), series("95 %", "violet", false, [4, 3])]],
  ];
  if (!plots.length) plots = wanted.map(([place, height, data, lines]) => make(place, height, data, lines));
  else wanted.forEach(([, , data], index) => plots[index].setData(data));
  $("chart-main").setAttribute("aria-label",
    `Pages a second over the last ${chosen}: now ${pages[pages.length - 1]}, most ${Math.max(...pages)}`);
}

const series = (label, name, filled, dash) => ({
  label, stroke: colour(name), width: 1.5, dash, points: { show: false }, spanGaps: false,
  fill: filled ? `${colour(name)}18` : undefined,
});
const bars = (label, name) => ({
  label, stroke: colour(name), fill: colour(name), width: 0, points: { show: false },
  paths: uPlot.paths.bars({ size: [0.6, 6] }),
});

function make(place, height, data, lines) {
  place.replaceChildren();
  place.setAttribute("role", "img");
  const axis = {
    stroke: colour("text-3"), font: "11px Inter, system-ui", grid: { stroke: colour("line"), width: 1 }, ticks: { show: false },
  };
  return new uPlot({
    width: Math.max(120, place.clientWidth - (place.classList.contains("panel") ? 32 : 0)), height,
    legend: { show: false }, cursor: { y: false, sync: { key: "time" }, points: { show: false } },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: 90, values: (_plot, times) => times.map((time) => new Date(time * 1000).toLocaleTimeString("en-GB", time % 60 ? {} : { hour: "2-digit", minute: "2-digit" })) },
      { ...axis, size: 48, space: height > 100 ? 36 : 18, values: (_plot, values) => values.map((value) => (value >= 10000 ? `${value / 1000}k` : String(value))) },
    ],
    hooks: place.id === "chart-main" ? { draw: [drawEvents] } : {},
    series: [{}, ...lines],
  }, data, place);
}

const GLYPHS = { slowed: ["▼", "amber"], sped_up: ["▲", "blue"], opened: ["◆", "red"], closed: ["◇", "teal"], asked_to_wait: ["○", "amber"], given_up: ["×", "red"] };

// Draw the events on a lane below the curve; marks that would touch merge into one with a count.
function drawEvents(plot) {
  const { ctx, bbox } = plot, y = bbox.top + bbox.height - 8 * devicePixelRatio;
  ctx.save();
  ctx.font = `${10 * devicePixelRatio}px Inter, system-ui`;
  ctx.textAlign = "center";
  let last = -Infinity;
  for (const event of marks) {
    const x = plot.valToPos(event.at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width || x - last < 10 * devicePixelRatio) continue;
    last = x;
    const [glyph, name] = GLYPHS[event.kind] || ["·", "text-3"];
    ctx.fillStyle = colour(name);
    ctx.fillText(glyph, x, y);
  }
  ctx.restore();
}

// A host's pace as steps, and the limit that was found as a dashed line.
export function drawTrace(trace) {
  const width = 372, height = 72, end = Date.now() / 1000, begin = Math.min(trace[0].at, end - 60);
  const most = Math.max(...trace.map((each) => Math.max(each.pace, each.limit))) * 1.1 || 1;
  const x = (at) => (width * (at - begin)) / (end - begin), y = (value) => height - 4 - ((height - 12) * value) / most;
  const steps = (key) => {
    let path = "";
    trace.forEach((each, index) => {
      if (!each[key]) return;
      path += `${path ? "L" : "M"}${x(each.at).toFixed(1)} ${y(each[key]).toFixed(1)}H${x(trace[index + 1]?.at ?? end).toFixed(1)}`;
    });
    return path;
  };
  const label = svg("text", { x: 0, y: 10 });
  label.textContent = `${most.toFixed(1)}/s`;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Pace now ${trace[trace.length - 1].pace} requests a second` },
    svg("line", { x1: 0, x2: width, y1: height - 4, y2: height - 4 }), svg("path", { d: steps("pace"), class: "pace-line" }), svg("path", { d: steps("limit"), class: "limit-line" }), label);
}

// One dot a host at (smallest gap ÷ gap in force); left of 1.00 would be too early.
export function drawProof(hosts) {
  const ratios = hosts.filter((each) => each.required_gap_s > 0).map((each) => each.smallest_gap_s / each.required_gap_s);
  if (!ratios.length) return fill($("proof-dots"), h("p", { class: "empty" }, "No host has had two requests yet."));
  const width = 1000, most = Math.max(1.1, ...ratios.filter((each) => each < 2)), least = Math.min(0.98, ...ratios);
  const x = (ratio) => 20 + (width - 40) * (Math.min(ratio, most) - least) / (most - least);
  const stacks = new Map();
  const dots = ratios.map((ratio) => {
    const place = Math.round(x(ratio) / 8) * 8, above = stacks.get(place) || 0;
    stacks.set(place, above + 1);
    return svg("circle", { cx: place, cy: Math.max(6, 48 - above * 8), r: 3, class: ratio < 0.98 ? "dot early" : "dot" });
  });
  const marks = [1, (1 + most) / 2, most].map((value) => {
    const text = svg("text", { x: x(value), y: 68, "text-anchor": "middle" });
    text.textContent = value.toFixed(2);
    return text;
  });
  fill($("proof-dots"), svg("svg", { viewBox: `0 0 ${width} 72`, preserveAspectRatio: "none", role: "img", "aria-label": `${ratios.length} hosts; smallest ratio ${Math.min(...ratios).toFixed(3)}` },
    svg("line", { x1: 0, x2: width, y1: 54, y2: 54 }), svg("line", { x1: x(1), x2: x(1), y1: 0, y2: 54, class: "one" }), ...dots, ...marks));
}
