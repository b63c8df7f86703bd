"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const NONE = "–";
  const integers = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
  const RIGHT = new Set(["number", "tally", "seconds", "gap", "rate", "bytes", "percent", "part", "bar"]);

  // ------------------------------------------------------------------ elements
  // Text enters the page through textContent alone: nothing that was crawled is ever markup.

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined && text !== null) element.textContent = String(text);
    return element;
  }
  function draw(tag, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in attributes) element.setAttribute(name, String(attributes[name]));
    if (text !== undefined) element.textContent = text;
    return element;
  }
  function put(parent, ...children) {
    for (const child of children) if (child) parent.appendChild(child);
    return parent;
  }
  function clear(element) {
    while (element.firstChild) element.removeChild(element.firstChild);
  }
  function isWeb(text) {
    try {
      const scheme = new URL(text).protocol;
      return scheme === "http:" || scheme === "https:";
    } catch (error) {
      return false;
    }
  }
  function shortened(url) {
    return data.origin && url.startsWith(data.origin + "/") ? url.slice(data.origin.length) : url;
  }
  function link(url, className) {
    const text = shortened(url);
    if (!isWeb(url)) return make("span", className, url);
    const anchor = make("a", className, text);
    anchor.href = url;
    anchor.rel = "noopener noreferrer nofollow";
    anchor.target = "_blank";
    anchor.title = url;
    if (text !== url) {
      anchor.classList.add("short");
      anchor.dataset.origin = data.origin;
    }
    return anchor;
  }
  function badge(pair) {
    return make("span", "badge " + pair[1], pair[0]);
  }
  function icon(path, size) {
    const shape = draw("svg", { width: size, height: size, viewBox: "0 0 16 16", fill: "none", "aria-hidden": "true" });
    shape.appendChild(draw("path", { d: path, "stroke-width": 1.6, "stroke-linecap": "round", "stroke-linejoin": "round" }));
    return shape;
  }

  // ------------------------------------------------------------------ values

  function bytes(count) {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let place = 0;
    while (count >= 1000 && place < units.length - 1) {
      count /= 1000;
      place += 1;
    }
    const digits = place === 0 || count >= 100 ? 0 : 1;
    return count.toFixed(digits) + " " + units[place];
  }
  const written = {
    number: (value) => integers.format(value),
    seconds: (value) => value.toFixed(2),
    bar: (value) => value.toFixed(2),
    gap: (value) => value.toFixed(3),
    rate: (value) => value.toFixed(value < 10 ? 1 : 0),
    bytes: bytes,
    percent: (value) => value.toFixed(1) + " %",
    part: (value) => value.toFixed(0) + " %",
  };
  function sortKey(value) {
    if (Array.isArray(value)) return Array.isArray(value[0]) || typeof value[0] === "number" ? value.length : value[0];
    return value;
  }
  function compare(left, right) {
    const a = sortKey(left), b = sortKey(right);
    if (a === b) return 0;
    if (a === null || a === undefined) return 1;
    if (b === null || b === undefined) return -1;
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
  }

  // ------------------------------------------------------------------ cells

  function chain(hops) {
    const line = make("span", "crawled");
    hops.forEach((hop, place) => {
      line.appendChild(link(hop[0]));
      if (hop[1] > 0) line.appendChild(make("span", "badge hop", hop[1] + " →"));
      else if (hop[1] < 0 && place === hops.length - 1) {
        const back = make("span", "badge bad hop", "loops back");
        line.appendChild(back);
      }
    });
    return line;
  }
  function share(counts) {
    const total = counts.reduce((sum, each) => sum + each, 0) || 1;
    const width = 220;
    const picture = draw("svg", { class: "share", viewBox: "0 0 " + width + " 12", preserveAspectRatio: "none", role: "img" });
    const names = ["answered", "redirected", "missing", "failed"];
    const fills = [["class", "fill-good"], ["fill", "url(#redirected)"], ["class", "fill-bad"], ["fill", "url(#failed)"]];
    const present = counts.filter((each) => each > 0).length;
    const widths = counts.map((each) => (each ? Math.max(3, (each / total) * (width - present)) : 0));
    const excess = widths.reduce((sum, each) => sum + each, 0) + Math.max(0, present - 1) - width;
    widths[widths.indexOf(Math.max(...widths))] -= Math.max(0, excess);
    let x = 0;
    widths.forEach((each, place) => {
      if (!each) return;
      const part = draw("rect", { x: x, y: 0, width: each, height: 12 });
      part.setAttribute(fills[place][0], fills[place][1]);
      picture.appendChild(part);
      x += each + 1;
    });
    const summary = counts.map((each, place) => (each ? integers.format(each) + " " + names[place] : "")).filter(Boolean);
    picture.setAttribute("aria-label", summary.join(", "));
    return picture;
  }
  function bar(value, most, length) {
    const picture = draw("svg", { width: length, height: 6, "aria-hidden": "true" });
    const width = most > 0 ? Math.max(3, (value / most) * length) : 0;
    picture.appendChild(draw("rect", { width: width, height: 6, rx: 1.5, class: "fill-grey" }));
    return picture;
  }
  function content(value, column, most) {
    if (value === null || value === undefined || value === "") return make("span", "none", NONE);
    switch (column.cell) {
      case "url": return link(value, "crawled cut");
      case "badge": return badge(value);
      case "chain": return chain(value);
      case "share": return share(value);
      case "bar": return put(make("span", "barred"), make("span", "", written.bar(value)), bar(value, most, 120));
      case "number": return make("span", value === 0 ? "zero" : "", written.number(value));
      case "percent": return make("span", value < 80 ? "low" : "", written.percent(value));
    }
    if (written[column.cell]) return make("span", "", written[column.cell](value));
    const text = make("span", column.cell === "quiet" || column.cell === "tally" ? "crawled quiet" : "crawled cut", value);
    text.title = value;
    return text;
  }

  // ------------------------------------------------------------------ tables

  function buildTable(section, panel, tools) {
    const spec = section.table, columns = spec.columns;
    const state = { column: spec.sort, ascending: false, query: "", isWhole: false, open: new Map() };
    const rows = spec.rows.map((row, place) => ({ place: place, cells: row[0], details: row[1], text: null }));
    const most = columns.map((column, at) =>
      column.cell === "bar" ? Math.max(0, ...rows.map((row) => row.cells[at] || 0)) : 0);
    const mainAt = Math.max(0, columns.findIndex((column) => column.width));
    const others = columns.filter((column, at) => at !== mainAt && column.phone === "shown").length;
    if (section.id === "broken" && rows.length) state.open.set(0, 4);

    const table = make("table");
    const head = make("tr");
    const headers = columns.map((column, at) => {
      const cell = make("th", (RIGHT.has(column.cell) ? "number" : "") + classOf(column, at));
      cell.scope = "col";
      const button = make("button");
      button.type = "button";
      const arrow = make("span", "arrow");
      arrow.setAttribute("aria-hidden", "true");
      put(button, arrow, make("span", "", column.label));
      if (column.unit) button.appendChild(make("span", "unit", column.unit));
      button.addEventListener("click", () => {
        const isNumber = RIGHT.has(column.cell) || column.cell === "chain";
        state.ascending = state.column === at ? !state.ascending : !isNumber;
        state.column = at;
        render();
      });
      return put(cell, button);
    });
    put(table, put(make("thead"), put(head, ...headers)));
    const body = make("tbody");
    table.appendChild(body);
    const foot = make("div", "foot");
    put(panel, table, foot);

    if (rows.length > spec.first) tools.insertBefore(searchBox(), tools.querySelector(".button"));

    function searchBox() {
      const box = make("label", "search");
      box.appendChild(icon("M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.6-1.4L14 14", 14));
      const input = make("input");
      input.type = "search";
      input.placeholder = "Search this table";
      input.setAttribute("aria-label", "Search: " + section.title);
      input.addEventListener("input", () => {
        state.query = input.value.trim().toLowerCase();
        render();
      });
      return put(box, input);
    }
    function classOf(column, at) {
      let names = column.phone === "shown" || at === mainAt ? "" : " hide";
      if (at === mainAt) names += " " + column.width + (column.cell === "chain" ? " chain-cell" : " main-cell") + (others < 2 ? " roomy" : "");
      else if (column.cell === "url") names += " url-cell";
      else if (column.cell === "share") names += " share-cell";
      return names;
    }
    function matches(row) {
      if (!state.query) return true;
      if (row.text === null) row.text = JSON.stringify([row.cells, row.details && row.details.lines]).toLowerCase();
      return row.text.includes(state.query) || row.text.includes(JSON.stringify(state.query).slice(1, -1));
    }
    function ordered() {
      const found = rows.filter(matches);
      const at = state.column, sign = state.ascending ? 1 : -1;
      if (at < 0) return found;
      return found.sort((a, b) => {
        const left = a.cells[at], right = b.cells[at];
        const isEmpty = left === null || right === null;
        return (isEmpty ? compare(left, right) : sign * compare(left, right)) || a.place - b.place;
      });
    }
    function render() {
      headers.forEach((cell, at) => {
        const isSorted = at === state.column;
        if (isSorted) cell.setAttribute("aria-sort", state.ascending ? "ascending" : "descending");
        else cell.removeAttribute("aria-sort");
        cell.querySelector(".arrow").textContent = isSorted ? (state.ascending ? "↑" : "↓") : "";
      });
      const found = ordered();
      const shown = state.isWhole ? found : found.slice(0, spec.first);
      clear(body);
      for (const row of shown) {
        body.appendChild(rowOf(row));
        if (state.open.has(row.place)) for (const line of linesOf(row)) body.appendChild(line);
      }
      footer(found.length, shown.length);
    }
    function rowOf(row) {
      const line = make("tr");
      const hasDetails = row.details && row.details.lines.length > 0;
      columns.forEach((column, at) => {
        const cell = make("td", (RIGHT.has(column.cell) ? "number" : "") + classOf(column, at));
        const value = content(row.cells[at], column, most[at]);
        if (at !== mainAt) {
          cell.appendChild(value);
          line.appendChild(cell);
          return;
        }
        const first = make("div", column.cell === "chain" ? "" : "line");
        if (hasDetails) first.appendChild(fold(row, String(row.cells[at])));
        put(cell, put(first, value));
        columns.forEach((other, place) => {
          if (other.phone !== "under" || place === mainAt) return;
          const under = make("div", "under" + (hasDetails ? " with-fold" : ""));
          cell.appendChild(put(under, content(row.cells[place], other, most[place])));
        });
        line.appendChild(cell);
      });
      return line;
    }
    function fold(row, name) {
      const button = make("button", "fold");
      button.type = "button";
      button.setAttribute("aria-expanded", String(state.open.has(row.place)));
      button.setAttribute("aria-label", "Pages of " + name);
      button.appendChild(icon("M6 4l4 4-4 4", 14));
      button.addEventListener("click", () => {
        if (state.open.has(row.place)) state.open.delete(row.place);
        else state.open.set(row.place, 4);
        render();
      });
      return button;
    }
    function linesOf(row) {
      const details = row.details, most = state.open.get(row.place);
      const lines = details.lines.slice(0, most).map((each) => {
        const cell = make("td"), line = make("div", "detail");
        cell.colSpan = columns.length;
        put(line, link(each[0], "crawled cut"));
        if (each[1]) line.appendChild(make("span", "crawled", "“" + each[1] + "”"));
        return put(make("tr", "sub"), put(cell, line));
      });
      const left = details.total - Math.min(most, details.lines.length);
      if (left > 0) {
        const cell = make("td");
        cell.colSpan = columns.length;
        if (most < details.lines.length) {
          const word = details.total > details.lines.length ? integers.format(details.lines.length) + " of " : "all ";
          const button = make("button", "more", "Show " + word + integers.format(details.total) + " " + details.noun);
          button.type = "button";
          button.addEventListener("click", () => {
            state.open.set(row.place, details.lines.length);
            render();
          });
          cell.appendChild(button);
        } else {
          cell.appendChild(make("span", "quiet", integers.format(details.lines.length) + " of " + integers.format(details.total) + " " + details.noun + "; " + rest(section)));
        }
        lines.push(put(make("tr", "sub"), cell));
      }
      return lines;
    }
    function footer(found, shown) {
      clear(foot);
      const total = state.query ? found : spec.total;
      foot.hidden = shown === total && !state.query;
      let said = integers.format(shown) + " of " + integers.format(total) + " " + spec.noun;
      if (state.query) said = found ? said + " that match" : "Nothing here matches the search.";
      else if (spec.total > rows.length) said += "; the table ends after " + integers.format(rows.length) + " rows, " + rest(section);
      foot.appendChild(make("span", "", said));
      if (shown < found) {
        const button = make("button", "more", "Show all " + integers.format(found));
        button.type = "button";
        button.addEventListener("click", () => {
          state.isWhole = true;
          render();
        });
        foot.appendChild(button);
      }
    }
    render();
  }
  function rest(section) {
    return section.csv ? section.csvName + " has every row" : "“mannerly report --csv DIR” writes every row";
  }

  // ------------------------------------------------------------------ charts

  function ceiling(value) {
    if (value <= 0) return 1;
    const power = Math.pow(10, Math.floor(Math.log10(value)));
    for (const step of [1, 2, 4, 5, 10]) if (value <= step * power) return step * power;
    return 10 * power;
  }
  function tick(value) {
    return value >= 10 || value === 0 ? integers.format(value) : String(Number(value.toPrecision(2)));
  }
  function moment(seconds, span) {
    const text = new Date(seconds * 1000).toISOString();
    if (span > 2 * 86400) return text.slice(5, 10);
    return span < 600 ? text.slice(11, 19) : text.slice(11, 16);
  }
  function trafficChart(traffic) {
    const box = make("div", "chart");
    const rate = traffic.requests.map((each) => each / traffic.step_s);
    const refused = traffic.refused.map((each) => each / traffic.step_s);
    const top = ceiling(Math.max(...rate)), most = Math.max(...refused);
    const height = most > 0 ? 200 : 138;
    function paint() {
      clear(box);
      const width = Math.max(240, box.clientWidth - 32), left = 34, wide = width - left - 4;
      const picture = draw("svg", { viewBox: "0 0 " + width + " " + height, height: height, role: "img" });
      picture.setAttribute("aria-label", "Requests per second over time: at most " + tick(Math.max(...rate)) + ". Refused: at most " + tick(most) + " per second.");
      const x = (place) => left + (wide * place) / Math.max(1, rate.length - 1);
      const y = (value) => 112 - (92 * value) / top;
      for (const part of [0, 0.5, 1]) {
        picture.appendChild(draw("line", { x1: left, x2: width, y1: y(part * top), y2: y(part * top), class: "grid" }));
        picture.appendChild(draw("text", { x: left - 8, y: y(part * top) + 4, "text-anchor": "end" }, tick(part * top)));
      }
      const points = rate.map((each, place) => x(place).toFixed(1) + " " + y(each).toFixed(1));
      picture.appendChild(draw("path", { d: "M" + points.join("L") + "L" + x(rate.length - 1) + " 112L" + left + " 112Z", class: "fill-area" }));
      picture.appendChild(draw("path", { d: "M" + points.join("L"), class: "trace" }));
      let base = 112;
      if (most > 0) {
        base = 174;
        const roof = ceiling(most);
        picture.appendChild(draw("text", { x: 0, y: 138, class: "title" }, "Refused per second"));
        for (const part of [0, 1]) {
          const at = 174 - 20 * part;
          picture.appendChild(draw("line", { x1: left, x2: width, y1: at, y2: at, class: "grid" }));
          picture.appendChild(draw("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, tick(part * roof)));
        }
        const thick = Math.max(3, wide / rate.length);
        refused.forEach((each, place) => {
          if (!each) return;
          const tall = Math.max(3, (20 * each) / roof);
          picture.appendChild(draw("rect", { x: x(place) - thick / 2, y: 174 - tall, width: thick, height: tall, class: "fill-bad" }));
        });
      }
      const span = traffic.step_s * rate.length, marks = width < 500 ? 3 : 5;
      for (let mark = 0; mark < marks; mark += 1) {
        const place = ((rate.length - 1) * mark) / (marks - 1);
        const anchor = mark === 0 ? "start" : mark === marks - 1 ? "end" : "middle";
        picture.appendChild(draw("text", { x: x(place), y: base + 18, "text-anchor": anchor }, moment(traffic.start + place * traffic.step_s, span)));
      }
      put(box, make("p", "title", "Requests per second"), picture);
    }
    return { box: box, paint: paint };
  }
  function dotsChart(dots) {
    const box = make("div", "chart");
    function paint() {
      clear(box);
      const width = Math.max(240, box.clientWidth - 32), least = 0.9, most = 1.3, high = 64, ground = 44;
      const x = (ratio) => ((Math.min(most, Math.max(least, ratio)) - least) / (most - least)) * (width - 12) + 6;
      const picture = draw("svg", { viewBox: "0 0 " + width + " " + high, height: high, role: "img" });
      picture.appendChild(draw("rect", { x: 0, y: 4, width: x(1), height: ground - 4, fill: "url(#forbidden)" }));
      picture.appendChild(draw("line", { x1: 0, x2: width, y1: ground, y2: ground, class: "grid" }));
      picture.appendChild(draw("line", { x1: x(1), x2: x(1), y1: 4, y2: ground, class: "limit" }));
      let early = dots.early || 0, hosts = 0;
      if (dots.ratios) {
        const stacked = new Map();
        dots.ratios.forEach((ratio) => {
          const slot = Math.round(x(ratio) / 5), level = stacked.get(slot) || 0;
          stacked.set(slot, level + 1);
          if (ratio < 0.98) early += 1;
          hosts += 1;
          const tall = Math.max(6, ground - 5 - level * 6);
          picture.appendChild(draw("circle", { cx: slot * 5, cy: tall, r: 2.5, class: ratio < 0.98 ? "fill-bad" : "fill-blue" }));
        });
      } else {
        const peak = Math.max(...dots.bins);
        dots.bins.forEach((count, place) => {
          hosts += count;
          if (!count) return;
          const tall = Math.max(3, ((ground - 6) * count) / peak), from = x(least + place / 100);
          picture.appendChild(draw("rect", { x: from, y: ground - tall, width: Math.max(2, x(least + (place + 1) / 100) - from - 1), height: tall, class: place < 8 ? "fill-bad" : "fill-blue" }));
        });
      }
      for (const mark of width < 500 ? [1, 1.1] : [1, 1.1, 1.2]) picture.appendChild(draw("text", { x: x(mark), y: high - 4, "text-anchor": "middle" }, mark.toFixed(2)));
      picture.appendChild(draw("text", { x: width, y: high - 4, "text-anchor": "end" }, "1.30 and more"));
      picture.setAttribute("aria-label", "Smallest gap divided by the gap in force, one mark for each of " + integers.format(hosts) + " hosts: " + integers.format(early) + " below 1.");
      put(box, make("p", "title", "Smallest gap ÷ gap in force, host by host"), picture);
    }
    return { box: box, paint: paint };
  }
  const charts = [];
  function addChart(panel, chart) {
    panel.appendChild(chart.box);
    charts.push(chart);
  }

  // ------------------------------------------------------------------ sections

  function legend() {
    const box = make("div", "legend");
    const entries = [["2xx answered", "class", "fill-good"], ["3xx redirected", "fill", "url(#redirected)"], ["4xx missing", "class", "fill-bad"], ["5xx failed", "fill", "url(#failed)"]];
    for (const [text, attribute, value] of entries) {
      const sample = draw("svg", { width: 12, height: 12, "aria-hidden": "true" });
      const part = draw("rect", { width: 12, height: 12 });
      part.setAttribute(attribute, value);
      box.appendChild(put(make("span"), put(sample, part), document.createTextNode(text)));
    }
    return box;
  }
  function factList(facts) {
    const list = make("dl", "facts");
    for (const [label, value] of facts) list.appendChild(put(make("div"), make("dt", "", label), make("dd", "", integers.format(value))));
    return list;
  }
  function depthBars(bars) {
    const box = make("div", "bars");
    const most = Math.max(...bars.map((each) => each[1]));
    for (const [label, pages, indexable] of bars) {
      const line = make("div");
      const picture = draw("svg", { viewBox: "0 0 400 8", preserveAspectRatio: "none", "aria-hidden": "true" });
      picture.appendChild(draw("rect", { width: Math.max(3, (400 * pages) / most), height: 8, rx: 2, class: "fill-blue" }));
      const number = make("span", "number", integers.format(pages));
      line.title = integers.format(pages) + " pages, " + indexable.toFixed(1) + " % indexable";
      box.appendChild(put(line, make("span", "", label), picture, number));
    }
    return box;
  }
  function changeBadges(extra) {
    const box = make("p", "badges");
    for (const [word, tone, count] of extra.badges) box.appendChild(put(make("span"), badge([word, tone]), make("strong", "", integers.format(count))));
    const same = make("span");
    put(same, make("strong", "", integers.format(extra.same)), document.createTextNode(" the same"));
    return put(box, same);
  }
  function verdict(extra) {
    const box = make("div", "verdict");
    const word = badge(extra.badge);
    word.insertBefore(icon("M8 1.5l5.5 2v4c0 3.5-2.4 5.800-5.500 7-3.100-1.200-5.500-3.500-5.500-7v-4zM5.500 8l1.800 1.800L10.700 6.300", 14), word.firstChild);
    const said = make("div");
    put(said, make("p", "said", extra.sentence));
    if (extra.closest) said.appendChild(make("p", "closest", extra.closest));
    return put(box, word, said);
  }
  function build(section) {
    const part = make("section", section.half ? "half" : "");
    part.id = section.id;
    part.setAttribute("aria-labelledby", section.id + "-title");
    const tools = make("div", "head");
    const title = make("h2", "", section.title);
    title.id = section.id + "-title";
    if (section.about) put(title, document.createTextNode(" "), make("span", "about", section.about));
    tools.appendChild(title);
    if (section.csv) {
      const button = make("a", "button", section.csvName);
      button.href = section.csv;
      button.setAttribute("download", section.csvName);
      tools.appendChild(button);
    }
    put(part, tools);
    if (section.note) part.appendChild(make("p", "note", section.note));
    const panel = make("div", "panel"), extra = section.extra;
    part.appendChild(panel);
    if (extra.sentence) panel.appendChild(verdict(extra));
    if (extra.legend && section.table) panel.appendChild(legend());
    if (extra.facts) panel.appendChild(factList(extra.facts));
    if (extra.badges) panel.appendChild(changeBadges(extra));
    if (extra.bars) panel.appendChild(depthBars(extra.bars));
    if (section.table) buildTable(section, panel, tools);
    else if (!extra.bars && !extra.sentence && section.empty) panel.appendChild(make("p", "plain", section.empty));
    if (extra.dots) addChart(panel, dotsChart(extra.dots));
    if (extra.traffic) addChart(panel, trafficChart(extra.traffic));
    return part;
  }

  function contents() {
    const list = document.getElementById("contents");
    const listed = data.sections.filter((section) => section.nav);
    for (const section of listed) {
      const entry = make("a");
      entry.href = "#" + section.id;
      const count = typeof section.count === "number" ? integers.format(section.count) : section.count;
      put(entry, make("span", "", section.nav), make("span", "count", count));
      list.appendChild(put(make("li"), entry));
    }
    const entries = Array.from(list.querySelectorAll("a"));
    function mark() {
      let current = 0;
      listed.forEach((section, place) => {
        const top = document.getElementById(section.id).getBoundingClientRect().top;
        if (top < 120) current = place;
      });
      entries.forEach((entry, place) => {
        if (place === current) entry.setAttribute("aria-current", "true");
        else entry.removeAttribute("aria-current");
      });
    }
    addEventListener("scroll", mark, { passive: true });
    mark();
  }
  function keys() {
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof HTMLInputElement) return;
      const boxes = Array.from(document.querySelectorAll(".search input"));
      const next = boxes.find((box) => box.getBoundingClientRect().top > 0) || boxes[0];
      if (next) {
        event.preventDefault();
        next.focus();
      }
    });
  }

  document.title = data.title;
  document.getElementById("period").textContent = data.period;
  document.getElementById("sentence").textContent = data.sentence;
  document.getElementById("about").textContent = data.about;
  const proven = document.getElementById("proven");
  put(proven, badge(data.proof.badge), document.createTextNode(" " + data.proof.sentence));
  const numbers = document.getElementById("numbers");
  for (const [label, value, unit, note] of data.numbers) {
    const box = make("div"), shown = make("dd", "value", value);
    if (unit) shown.appendChild(make("span", "unit", unit));
    numbers.appendChild(put(box, make("dt", "", label), shown, make("dd", "note", note)));
  }
  const parts = document.getElementById("sections");
  for (const section of data.sections) parts.appendChild(build(section));
  const made = document.getElementById("made");
  for (const text of data.made) made.appendChild(make("span", "", text));
  contents();
  keys();
  const paint = () => charts.forEach((chart) => chart.paint());
  paint();
  addEventListener("resize", paint);
  addEventListener("beforeprint", paint);
})();
