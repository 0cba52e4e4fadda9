// All plots, by Observable Plot; colours are custom properties, so both themes hold. Knows the shape of
// statistics in results.json, not where they come from.
import * as Plot from "@observablehq/plot";

export const colours = { all: "var(--all)", loss_only: "var(--loss)", band: "var(--band)", curve: "var(--curve)" };
export const colourOf = (name) => colours[name] ?? "var(--extra)";
const style = { background: "transparent", color: "inherit", fontSize: "12px", overflow: "visible" };
const width = () => Math.max(280, Math.min(document.getElementById("main").clientWidth - 40, 1040));

/** Shares with exact intervals, one line each: [{name, detected, of, interval, colour}]. */
export function intervals(rows, { labelWidth = 130, note = (d) => `${d.detected} of ${d.of}` } = {}) {
  const narrow = width() < 520;
  return Plot.plot({
    style, width: width(), height: rows.length * 30 + 46, marginLeft: Math.min(labelWidth, 185), marginRight: narrow ? 72 : 90,
    x: { domain: [0, 100], label: null, ticks: narrow ? [0, 100] : [0, 25, 50, 75, 100], tickFormat: (d) => `${d} %`, grid: true },
    y: { domain: rows.map((d) => d.name), label: null, tickSize: 0 },
    marks: [
      Plot.ruleY(rows, { y: "name", x1: (d) => 100 * d.interval[0], x2: (d) => 100 * d.interval[1], stroke: "colour", strokeWidth: 5, strokeOpacity: 0.35, strokeLinecap: "butt" }),
      Plot.dot(rows, { y: "name", x: (d) => (100 * d.detected) / d.of, fill: "colour", r: 4.5 }),
      Plot.text(rows, { y: "name", frameAnchor: "right", textAnchor: "start", dx: 12, text: note, fill: "currentColor" }),
    ],
  });
}

/** Detected share against steps: 1 - Kaplan-Meier, with its band turned over. */
export function survival(curves, horizon) {
  const rows = curves.flatMap(({ name, survival: steps }) => {
    const points = [{ name, x: 0, y: 0, low: 0, high: 0 }];
    for (const [time, , , , s, low, high] of steps) points.push({ name, x: time, y: 100 * (1 - s), low: 100 * (1 - high), high: 100 * (1 - low) });
    const last = points.at(-1);
    if (last.x < horizon) points.push({ ...last, x: horizon });
    return points;
  });
  const ends = curves.map(({ name }) => rows.filter((d) => d.name === name).at(-1));
  return Plot.plot({
    style, width: width(), height: 350, marginLeft: 44, marginRight: 96, marginBottom: 44,
    x: { domain: [0, horizon], labelOffset: 40, label: "steps since the site was first reached →", ticks: Math.min(horizon, 8) },
    y: { domain: [0, 100], label: "↑ detected, %", grid: true, ticks: 5 },
    marks: [
      Plot.areaY(rows, { x: "x", y1: "low", y2: "high", z: "name", curve: "step-after", fill: (d) => colourOf(d.name), fillOpacity: 0.13 }),
      Plot.lineY(rows, { x: "x", y: "y", z: "name", curve: "step-after", stroke: (d) => colourOf(d.name), strokeWidth: 2 }),
      Plot.text(spread(ends), { x: "x", y: "label", text: "name", textAnchor: "start", dx: 8, fill: (d) => colourOf(d.name) }),
    ],
  });
}

/** Labels at the ends of lines, pushed apart where they would overlap. */
function spread(ends, gap = 6) {
  const sorted = [...ends].sort((a, b) => a.y - b.y).map((d) => ({ ...d, label: d.y }));
  for (let i = 1; i < sorted.length; i++) sorted[i].label = Math.max(sorted[i].label, sorted[i - 1].label + gap);
  const over = Math.max(0, (sorted.at(-1)?.label ?? 0) - 100);
  return sorted.map((d) => ({ ...d, label: d.label - over }));
}

const logistic = (fit, x) => 100 / (1 + Math.exp(-(fit.intercept + fit.slope * x)));

/** One fault's doses: share of runs detected, by all checks and by the loss alone. */
export function dose(item) {
  const series = [["all", item.points, item.fit], ["loss_only", item.loss_only_points, item.loss_only_fit]];
  const xs = item.points.map((p) => p.dose);
  const [low, high] = [Math.min(...xs), Math.max(...xs)];
  const marks = [];
  for (const [name, points, fit] of series) {
    const rows = points.map((p) => ({ ...p, share: (100 * p.detected) / p.tried }));
    if (fit.kind === "separated" || fit.kind === "fitted") {
      marks.push(Plot.rectX([fit], { x1: Math.max(fit.low ?? low, low), x2: Math.min(fit.high ?? high, high), y1: 0, y2: 100, fill: colourOf(name), fillOpacity: 0.12 }));
    }
    if (fit.kind === "fitted") {
      const line = Array.from({ length: 60 }, (_, i) => low * (high / low) ** (i / 59));
      marks.push(Plot.lineY(line, { x: (d) => d, y: (d) => logistic(fit, Math.log10(d)), stroke: colourOf(name), strokeWidth: 1.5 }));
    } else {
      marks.push(Plot.lineY([...rows].sort((a, b) => a.dose - b.dose), { x: "dose", y: "share", stroke: colourOf(name), strokeWidth: 1.5, strokeDasharray: "3,3" }));
    }
    marks.push(Plot.dot(rows, { x: "dose", y: "share", fill: colourOf(name), r: name === "all" ? 4.5 : 3 }));
  }
  return Plot.plot({
    style, width: 296, height: 150, marginLeft: 34, marginBottom: 34, marginRight: 14,
    x: { type: "log", domain: [low / 1.15, high * 1.15], label: item.unit || "dose", ticks: 3, tickFormat: (d) => Number(d.toPrecision(2)).toString() },
    y: { domain: [0, 100], label: "%", ticks: [0, 50, 100], grid: true },
    marks,
  });
}

/** Losses of one case by step. */
export function losses(curve, reached, detected) {
  const names = ["reference", "healthy", "subject"];
  const colour = { subject: "var(--miss)", healthy: "var(--hit)", reference: "var(--extra)" };
  const label = { subject: "with the fault", healthy: "healthy", reference: "second stack" };
  const rows = names.flatMap((name) => (curve[name] ?? []).map((y, i) => ({ name, x: curve.first + i, y })).filter((d) => d.y != null));
  if (rows.length === 0) return null;
  const steps = rows.map((d) => d.x);
  const same = new Map(rows.filter((d) => d.name === "healthy").map((d) => [d.x, d.y]));
  const marks = [];
  if (reached > 0) marks.push(Plot.ruleX([reached], { stroke: "currentColor", strokeOpacity: 0.3 }));
  if (detected) marks.push(Plot.ruleX([detected], { stroke: "currentColor", strokeDasharray: "2,3" }));
  for (const name of names) {
    const mine = rows.filter((d) => d.name === name);
    marks.push(Plot.lineY(mine, { x: "x", y: "y", stroke: colour[name], strokeWidth: name === "reference" ? 5 : 1.75, strokeOpacity: name === "reference" ? 0.35 : 1 }));
    if (mine.length < 3) marks.push(Plot.dot(mine, { x: "x", y: "y", fill: colour[name], r: 3 }));
  }
  const plot = Plot.plot({
    style, width: width(), height: 260, marginLeft: 52, marginRight: 20, marginBottom: 42,
    x: { label: "step →", labelOffset: 38, domain: [Math.min(...steps), Math.max(...steps, Math.min(...steps) + 1)], ticks: 8, tickFormat: (d) => (Number.isInteger(d) ? String(d) : "") },
    y: { label: "↑ training loss", grid: true, nice: true }, marks,
  });
  const worst = Math.max(0, ...rows.filter((d) => d.name === "subject" && same.has(d.x)).map((d) => Math.abs(d.y - same.get(d.x)) / Math.abs(same.get(d.x))));
  return { plot, worst, legend: names.filter((n) => rows.some((d) => d.name === n)).map((n) => [label[n], colour[n]]) };
}

/** Which check fired when: one line a check that did, along the run. */
export function timeline(fault, horizon) {
  const events = [];
  if (fault.reached_step != null) events.push({ name: "site first ran", x: Math.max(fault.reached_step, 0), kind: "event" });
  if (fault.infected_step != null) events.push({ name: "bits first differ", x: fault.infected_step, kind: "event" });
  for (const [name, step] of Object.entries(fault.checks)) if (step != null) events.push({ name, x: step, kind: "check" });
  return Plot.plot({
    style, width: width(), height: events.length * 22 + 52, marginLeft: 130, marginRight: 20, marginTop: 8, marginBottom: 42,
    x: { domain: [0, horizon], label: "step →", labelOffset: 38, grid: true, ticks: Math.min(horizon, width() < 520 ? 4 : 16), tickFormat: (d) => (d === 0 ? "set-up" : String(d)) },
    y: { domain: events.map((d) => d.name), label: null, tickSize: 0 },
    marks: [
      Plot.ruleY(events, { y: "name", x1: "x", x2: horizon, stroke: (d) => (d.kind === "check" ? "var(--hit)" : "var(--extra)"), strokeOpacity: 0.4 }),
      Plot.dot(events, { y: "name", x: "x", fill: (d) => (d.kind === "check" ? "var(--hit)" : "var(--extra)"), r: 4, symbol: (d) => (d.kind === "check" ? "circle" : "diamond") }),
    ],
  });
}
