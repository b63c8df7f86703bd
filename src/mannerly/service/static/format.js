// Numbers, durations and names as people read them.

export const NONE = "–";

export const whole = (value) => (value === null || value === undefined ? NONE : Math.round(value).toLocaleString("en-US"));

export function rate(value) {
  if (value === null || value === undefined) return NONE;
  return value >= 100 ? whole(value) : value >= 0.095 || value === 0 ? value.toFixed(1) : value.toPrecision(1);
}

export function share(part, all) {
  if (!all) return "0";
  const percent = (100 * part) / all;
  return percent === 0 ? "0" : percent < 0.1 ? percent.toFixed(2) : percent.toFixed(1);
}

// Two parts at most, rounded down: 41 s, 2 min 5 s, 2 h 7 min, 3 d 4 h.
export function span(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const s = Math.floor(seconds);
  if (s < 60) return `${s} s`;
  const two = (big, bigUnit, small, smallUnit) => (small ? `${big} ${bigUnit} ${small} ${smallUnit}` : `${big} ${bigUnit}`);
  if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
  if (s < 86400) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
  return two(Math.floor(s / 86400), "d", Math.floor((s % 86400) / 3600), "h");
}

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000) return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}

export const clock = (wall) => new Date(wall * 1000).toLocaleTimeString("en-GB");

// Cut in the middle: the registrable domain at the end says most.
export const middle = (text, most = 34) =>
  text.length <= most ? text : `${text.slice(0, Math.floor(most / 3))}…${text.slice(text.length - (most - Math.floor(most / 3) - 1))}`;
