// Numbers, durations and names as people read them.

export const NONE = "–";

const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);

export const whole = (value) => (isMissing(value) ? NONE : Math.round(value).toLocaleString("en-US"));
export const many = (count, word) => `${whole(count)} ${word}${count === 1 ? "" : "s"}`;

export function rate(value) {
  if (isMissing(value)) return NONE;
  return value >= 100 ? whole(value) : value >= 0.095 || value === 0 ? value.toFixed(1) : value.toPrecision(1);
}

export function share(part, all) {
  if (!all || !part) return "0";
  const percent = (100 * part) / all;
  return percent < 0.01 ? "< 0.01" : percent < 0.1 ? percent.toFixed(2) : percent.toFixed(1);
}

// Two parts at most, rounded down: 0.4 s, 41 s, 2 min 5 s, 2 h 7 min, 3 d 4 h.
export function span(seconds) {
  if (isMissing(seconds)) return NONE;
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`;
  const s = Math.floor(seconds);
  if (s < 60) return `${s} s`;
  const two = (big, bigUnit, small, smallUnit) => (small ? `${big} ${bigUnit} ${small} ${smallUnit}` : `${big} ${bigUnit}`);
  if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
  if (s < 86400) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
  return two(Math.floor(s / 86400), "d", Math.floor((s % 86400) / 3600), "h");
}

export function bytes(value) {
  if (isMissing(value)) return NONE;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000) return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

export const clock = (wall) => new Date(wall * 1000).toLocaleTimeString("en-GB");
export const minute = (wall) => new Date(wall * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

// A moment that may be on another day: 03:00, 18 Nov 03:00.
export function moment(wall) {
  const day = new Date(wall * 1000), isToday = day.toDateString() === new Date().toDateString();
  return isToday ? minute(wall) : `${day.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${minute(wall)}`;
}

// Cut in the middle: the registrable domain at the end says most.
export const middle = (text, most = 34) =>
  text.length <= most ? text : `${text.slice(0, Math.floor(most / 3))}…${text.slice(text.length - (most - Math.floor(most / 3) - 1))}`;
