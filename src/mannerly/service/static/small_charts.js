// Small charts as SVG: a host's pace in its row and in its panel, and the dots of the proof.

import { svg } from "./dom.js";
import { clock, minute, rate } from "./format.js";

const HOUR = 3600, EARLY_WIDE = 92;

// A trace has [time, pace, limit, refusals so far] where something changed. Steps, from `begin` to `end`.
function steps(trace, column, begin, end, x, y, isArea) {
  let path = "", isOn = false;
  trace.forEach((each, index) => {
    const until = trace[index + 1]?.[0] ?? end, value = each[column];
    if (until <= begin) return;
    if (column === 2 && !value) { isOn = false; return; }
    const from = x(Math.max(begin, each[0])).toFixed(1), level = y(value).toFixed(1);
    path += isOn ? `V${level}H${x(until).toFixed(1)}` : `M${from} ${level}H${x(until).toFixed(1)}`;
    isOn = true;
  });
  return isArea && path ? `${path}V${y(0).toFixed(1)}H${x(Math.max(begin, trace[0][0])).toFixed(1)}Z` : path;
}

function refusals(trace, begin, x, y) {
  return trace.filter((each, index) => index && each[3] > trace[index - 1][3] && each[0] >= begin)
    .map((each) => svg("rect", { x: (x(each[0]) - 0.75).toFixed(1), y, width: 1.5, height: 4, class: "refused" }));
}

const highest = (trace) => Math.max(...trace.map((each) => Math.max(each[1], each[2])), 0.001);

// 132 x 26, scaled to the host's own limit.
export function sparkline(trace, now) {
  const width = 132, height = 26, begin = Math.max(now - HOUR, Math.min(trace[0]?.[0] ?? now, now - 60));
  const top = trace.length ? highest(trace) : 1;
  const x = (at) => (width * (at - begin)) / (now - begin || 1), y = (value) => 20 - (16 * value) / top;
  const parts = trace.length ? [
    svg("path", { d: steps(trace, 1, begin, now, x, y, true), class: "pace-area" }), svg("path", { d: steps(trace, 1, begin, now, x, y), class: "pace-line" }),
    svg("path", { d: steps(trace, 2, begin, now, x, y), class: "limit-line" }), ...refusals(trace, begin, x, 21),
  ] : [];
  const text = trace.length ? `Pace now ${rate(trace[trace.length - 1][1])} requests a second` : "Pace not known yet";
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "spark", role: "img", "aria-label": text }, ...parts);
}

// The same with axes, for the panel of a host.
export function paceChart(trace, now) {
  const width = 372, height = 132, left = 30, bottom = 20, begin = Math.max(now - HOUR, Math.min(trace[0][0], now - 60));
  const top = niceTop(highest(trace) * 1.05);
  const x = (at) => left + ((width - left) * (at - begin)) / (now - begin), y = (value) => height - bottom - ((height - bottom - 8) * value) / top;
  const text = (words, attributes) => { const made = svg("text", attributes); made.textContent = words; return made; };
  const grid = [0, 0.5, 1].flatMap((part) => [
    svg("line", { x1: left, x2: width, y1: y(top * part), y2: y(top * part) }), text(short(top * part), { x: left - 6, y: y(top * part) + 4, "text-anchor": "end" })]);
  const marks = [0.15, 0.5, 0.85].map((part) => begin + (now - begin) * part).map((at) => text(now - begin < 300 ? clock(at) : minute(at), { x: x(at), y: height - 4, "text-anchor": "middle" }));
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Pace over the last hour, now ${rate(trace[trace.length - 1][1])} requests a second` },
    ...grid, ...marks, svg("path", { d: steps(trace, 1, begin, now, x, y, true), class: "pace-area" }), svg("path", { d: steps(trace, 1, begin, now, x, y), class: "pace-line" }),
    svg("path", { d: steps(trace, 2, begin, now, x, y), class: "limit-line" }), ...refusals(trace, begin, x, height - bottom - 4));
}

const short = (value) => (value >= 10 ? value.toFixed(0) : String(Number(value.toFixed(2))));
function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 4, 5, 10].find((step) => step * power >= value) * power;
}

// One dot a host at (smallest gap ÷ gap in force); left of 1.00 would be too early. From 1,000 hosts on a histogram.
export function proofChart(hosts, histogram, width) {
  const height = 88, base = 62, ratios = hosts.filter((each) => each.required_gap_s > 0).map((each) => each.smallest_gap_s / each.required_gap_s);
  const most = Math.max(1.06, Math.min(1.2, histogram.length ? 1.2 : Math.max(...ratios)));
  const roomy = 1 - ((most - 1) * EARLY_WIDE) / (width - 16 - EARLY_WIDE); // so that the words fit left of 1.00
  const least = Math.min(roomy, 0.985, ...ratios, ...histogram.filter(([, count]) => count).map(([ratio]) => ratio)) - 0.002;
  const x = (ratio) => 8 + (width - 16) * (Math.min(ratio, most) - least) / (most - least);
  const text = (words, attributes) => { const made = svg("text", attributes); made.textContent = words; return made; };
  const early = ratios.filter((ratio) => ratio < 0.98).length;
  const hatch = svg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("line", { x1: 0, x2: 0, y1: 0, y2: 6, class: "hatch" }));
  const isCut = histogram.length > 0 || Math.max(...ratios) > most;
  const marks = [1, 1 + (most - 1) / 2, most].map((value) => text(`${value.toFixed(2)}${value === most && isCut ? " and more" : ""}`, { x: value === most ? width - 4 : x(value), y: height - 8, "text-anchor": value === most ? "end" : "middle", class: value === 1 ? "one-label" : "" }));
  const shown = histogram.length ? bars(histogram, x, base) : dots(ratios, x, base);
  const words = `${ratios.length} hosts; smallest ratio ${Math.min(...ratios).toFixed(3)}; too early: ${early || "none"}`;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words }, svg("defs", {}, hatch),
    svg("rect", { x: 0, y: 8, width: x(1), height: base - 8, fill: "url(#hatch)", class: "too-early" }),
    text(early ? `too early: ${early}` : "too early: none", { x: x(1) - 8, y: 38, "text-anchor": "end", class: early ? "early" : "" }),
    svg("line", { x1: 0, x2: width, y1: base + 4, y2: base + 4 }), svg("line", { x1: x(1), x2: x(1), y1: 4, y2: base + 4, class: "one" }), ...shown, ...marks);
}

function dots(ratios, x, base) {
  const stacks = new Map();
  return ratios.map((ratio) => {
    const place = Math.round(x(ratio) / 8) * 8, above = stacks.get(place) || 0;
    stacks.set(place, above + 1);
    return svg("circle", { cx: Math.max(place, x(ratio) < x(1) ? 4 : Math.ceil(x(1)) + 4), cy: Math.max(8, base - 4 - above * 8), r: 3, class: ratio < 0.98 ? "dot early" : "dot" });
  });
}

function bars(histogram, x, base) {
  const most = Math.max(...histogram.map(([, count]) => count)), wide = Math.max(2, x(1.005) - x(1) - 1);
  return histogram.filter(([, count]) => count).map(([ratio, count]) => {
    const tall = Math.max(3, (48 * count) / most);
    return svg("rect", { x: x(ratio), y: base + 4 - tall, width: wide, height: tall, class: ratio < 0.98 ? "dot early" : "dot" });
  });
}
