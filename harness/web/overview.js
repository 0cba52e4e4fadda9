// The sections of the overview. Each takes the parsed data and returns a <section>, or null.
import { colourOf, dose, intervals, survival } from "./charts.js";
import { figure, h, interval, number, percent, pValue, section, table } from "./dom.js";

const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
export const faultLink = (id) => h("a", { href: `#fault/${encodeURIComponent(id)}`, class: "id" }, id);
const steps = (fault, at) => Math.max(1, at - Math.max(fault.reached_step ?? 1, 1) + 1);

/** Counted checks with their share and exact interval, which statistics.families has but a check has not. */
function betaQuantile(p, a, b) {
  // Bisection on the binomial tail; n is small, so the sum is exact enough for a plot.
  const tail = (x) => {
    let term = Math.exp(logChoose(a + b - 1, a) + a * Math.log(x) + (b - 1) * Math.log1p(-x));
    let sum = term;
    for (let i = a + 1; i <= a + b - 1; i++) { term *= ((a + b - i) / i) * (x / (1 - x)); sum += term; }
    return sum;
  };
  let low = 0, high = 1;
  for (let i = 0; i < 60; i++) { const x = (low + high) / 2; if (tail(x) < p) low = x; else high = x; }
  return low;
}
function logChoose(n, k) { let s = 0; for (let i = 1; i <= k; i++) s += Math.log((n - k + i) / i); return s; }
export const exact = (k, n) => [k === 0 ? 0 : betaQuantile(0.025, k, n - k + 1), k === n ? 1 : betaQuantile(0.975, k + 1, n - k)];

export function verdict({ results, details }) {
  const s = results.summary;
  const n = s.detection_rate_of;
  const alone = s.detected_alone; // null: runs stopped at the first verdict
  const rows = [["all checks", s.detected, "all"], ...(alone ? [["loss against a second stack", alone.loss_only, "loss_only"],
    ["the same, within 0.2 %", alone.band, "band"], ["loss curve of one stack", alone.curve, "curve"]] : [])]
    .map(([name, detected, key]) => ({ name, detected, of: n, interval: exact(detected, n), colour: colourOf(key) }));
  const missed = results.faults.filter((f) => f.expectation === "KILL" && ["missed", "flaky", "crashed", "timed_out"].includes(f.outcome));
  const lost = results.faults.filter((f) => f.expectation === "KILL" && f.outcome === "no_verdict");
  const controls = results.controls ?? "not finished";
  const fact = (name, value, more, bad) => h("div", {}, h("dt", {}, name), h("dd", { class: bad ? "bad" : null }, value, h("small", {}, more)));
  const headline = n > 0 ? `${s.detected} of ${n} seeded faults detected.${alone ? ` The loss curve alone sees ${alone.curve}.` : ""}` : "No fault of this campaign counted.";
  return h("section", { id: "verdict", "aria-labelledby": "verdict-title" }, h("h2", { id: "verdict-title", class: "verdict" }, headline),
    n > 0 && h("p", { class: "lede soft" }, `${percent(s.detection_rate)}, exact 95 % interval ${interval([s.detection_rate_low, s.detection_rate_high])}, for a population of faults like this catalogue. That is not a rate over all bugs there are.`),
    !alone && h("p", { class: "note" }, "Runs stopped at the first verdict: what each check would have seen alone, sets of checks, loss curves and alarms on the loss are not known."),
    n > 0 && figure(intervals(rows, { labelWidth: 185 }),
      rows.map((d) => `${d.name}: ${d.detected} of ${d.of}`).join("; "),
      !alone ? "Dot: share; bar: exact 95 % interval." : "Detected by each way of looking, had it been alone: all checks, the training loss against a second stack within a calibrated bound and within a fixed one, the loss curve of one stack. Dots are shares, bars exact 95 % intervals. The last line is what a team with one stack has: its loss curve against the band of healthy seeds."),
    h("dl", { class: "facts" },
      fact("False alarms", `${s.false_alarms} of ${s.healthy_runs}`, `healthy runs not used for the bounds; rate at most ${percent(s.false_alarm_rate_high)} at 95 %`, s.false_alarms > 0),
      fact("Median steps to detection", s.median_steps == null ? "beyond the horizon" : number(s.median_steps), "from the step that first ran the site, both included"),
      fact("Controls", controls.startsWith("passed") ? "passed" : "not passed", controls.replace(/^passed: /, ""), !controls.startsWith("passed")),
      fact("Not judged", String(s.not_reached + s.not_infected + s.no_verdict), `${s.not_reached} not reached, ${s.not_infected} changed no bit, ${s.no_verdict} without verdict; outside the rate`, s.no_verdict > 0)),
    h("h3", {}, missed.length ? `Not detected (${missed.length})` : "Nothing that counted was missed"),
    missed.length > 0 && reasons(missed, details),
    lost.length > 0 && h("details", {}, h("summary", {}, `Without verdict (${lost.length})`), reasons(lost, details)));
}

function reasons(faults, details) {
  return table([["fault"], ["outcome"], ["what goes wrong"], ["what the run says"]], faults.map((f) =>
    [faultLink(f.id), h("span", { class: `o-${f.outcome}` }, f.outcome.replace("_", " ")), details[f.id]?.why ?? "", f.detail ?? "not run yet"]), "Faults not detected", "stack");
}

export function matrix({ results, checks }) {
  const horizon = Math.max(...results.faults.map((f) => f.horizon), 2);
  const share = (step) => 0.95 - 0.8 * (Math.log(step) / Math.log(horizon));
  const body = h("tbody");
  const cell = (fault, check) => {
    const at = fault.checks[check.name];
    if (at == null) return h("td", { class: "off", title: `${check.name}: did not fire in every repeat` }, "·");
    const count = steps(fault, at);
    const strength = share(Math.min(count, horizon));
    return h("td", { class: strength > 0.55 ? "on strong" : "on", style: `--share:${strength.toFixed(3)}`, title: `${check.name}: ${plural(count, "step")} after reaching the site` }, String(count));
  };
  const rows = results.faults.map((fault) => {
    const row = h("tr", {}, h("th", { scope: "row", title: fault.id }, faultLink(fault.id)),
      checks.map((check) => cell(fault, check)),
      h("td", { class: `word o-${fault.outcome}` }, fault.outcome.replace("_", " "), fault.expectation !== "KILL" ? ` (${fault.expectation})` : ""));
    return { fault, row };
  });
  const state = { family: "", outcome: "", text: "" };
  const shown = h("span", { role: "status" });
  const apply = () => {
    const visible = rows.filter(({ fault }) => (!state.family || fault.family === state.family) && (!state.outcome || fault.outcome === state.outcome) && fault.id.includes(state.text));
    body.replaceChildren(...visible.map(({ row }) => row));
    shown.textContent = `${visible.length} of ${rows.length} shown`;
  };
  const choice = (label, key, values) => h("label", {}, label, h("select", { onchange: (e) => { state[key] = e.target.value; apply(); } },
    h("option", { value: "" }, "all"), [...new Set(values)].sort().map((v) => h("option", { value: v }, v.replace("_", " ")))));
  apply();
  return section("matrix", "Which check sees which fault",
    h("p", {}, "Numbers are steps from the step that first ran the site to the first in which the check fired, had it been alone; darker is earlier ",
      h("span", { class: "scale", "aria-hidden": "true" }, [1, 2, 4, 8, horizon].map((s) => h("i", { style: `--share:${share(Math.min(s, horizon)).toFixed(3)}` }))),
      results.runs_stop_at ? ". Runs stopped at the first verdict: only that check is known." : ". A dot: it did not fire in every repeat."),
    h("div", { class: "controls" }, choice("Family", "family", results.faults.map((f) => f.family)), choice("Outcome", "outcome", results.faults.map((f) => f.outcome)),
      h("label", {}, "Name contains", h("input", { type: "search", oninput: (e) => { state.text = e.target.value; apply(); } })), shown),
    h("div", { class: "matrix", tabindex: "0", role: "region", "aria-label": "Matrix of faults and checks" },
      h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "fault"), checks.map((c) => h("th", { scope: "col", title: c.text }, h("span", {}, c.name))), h("th", { scope: "col", class: "word" }, "outcome"))), body)));
}

/** Cells of the tests against the check curve; none where runs stopped before its time was known. */
function tests({ name, log_rank_against_curve: rank, sign_test_against_curve: sign }) {
  if (!rank || !sign) return ["–", "–", "–", "–"];
  return [name === "curve" ? "–" : pValue(rank.p), String(sign.earlier), String(sign.later), name === "curve" ? "–" : pValue(sign.p)];
}

export function speed({ results, checks }) {
  const { survival: s } = results.statistics;
  const all = { name: "all", ...s.all };
  const each = checks.filter((c) => s.checks[c.name]).map((c) => ({ name: c.name, ...s.checks[c.name] }));
  const chosen = new Set(["all", "loss_only", "band", "curve"]);
  const holder = h("div");
  const horizon = s.all.restricted_to;
  const draw = () => {
    const curves = [all, ...each].filter((c) => chosen.has(c.name));
    holder.replaceChildren(curves.length
      ? figure(survival(curves, horizon), curves.map((c) => `${c.name}: ${c.detected} detected, mean ${number(c.restricted_mean_steps)} steps`).join("; "),
        "Share of faults detected by the time (one minus the Kaplan-Meier estimate), with pointwise 95 % bands (Greenwood, log-log). A fault that is never detected is censored at its horizon, not dropped.")
      : h("p", { class: "soft" }, "Choose a line to draw."));
  };
  draw();
  const ticks = [all, ...each].map((c) => h("label", { class: "tick" },
    h("input", { type: "checkbox", checked: chosen.has(c.name), onchange: (e) => { e.target.checked ? chosen.add(c.name) : chosen.delete(c.name); draw(); } }),
    h("i", { style: `border-color:${colourOf(c.name)}`, "aria-hidden": "true" }), c.name));
  return section("speed", "How soon",
    h("div", { class: "controls", role: "group", "aria-label": "Lines of the plot" }, ticks), holder,
    table([["check"], ["detected", true], ["mean steps", true], ["std. error", true], ["median", true], ["log-rank p", true], ["earlier", true], ["later", true], ["sign test p", true]],
      [all, ...each].map((c) => [c.name, String(c.detected), number(c.restricted_mean_steps), number(c.restricted_mean_standard_error, 2), c.median_steps == null ? `> ${horizon}` : number(c.median_steps),
        ...tests(c)]), "Steps to detection by check"),
    h("p", { class: "note" }, `Mean steps are restricted to ${number(horizon)}: the area under the survival curve. Tests are against the check curve. Log-rank takes two independent groups, though all checks saw the same faults; the sign test pairs them, counting on how many faults the check was earlier (or the only one) and later.`));
}

export function sets({ results }) {
  const { sets: s, subsumption } = results.statistics;
  if (!s) return null;
  const list = (names) => names.join(", ") || "–";
  return section("sets", "How few checks are enough",
    h("p", {}, `The smallest set that detects every fault that any check detects (${s.entries}): `, h("strong", {}, list(s.smallest_that_detects_all)), "."),
    table([["to detect"], ["faults", true], ["smallest set"], ["cheapest set"], ["seconds a case", true]],
      s.goals.map((g) => [percent(g.share, 0), String(g.entries), list(g.smallest), list(g.cheapest), number(g.cheapest_seconds)]), "Sets of checks that reach a share"),
    h("p", { class: "note" }, `Sets are exact, not greedy. The price of a set is the mean time of the runs it looks at, each paid once: ${Object.entries(s.seconds_of_a_run).map(([k, v]) => `${k} ${number(v)} s`).join(", ")}.`),
    h("h3", {}, "Faults that no other stands for"),
    h("p", {}, `A fault subsumes another when every check that detects it detects the other too. ${plural(subsumption.roots, "fault")} (or groups seen by the same checks) are subsumed by none; whoever detects these detects all. The loss curve alone sees ${subsumption.roots_detected_by_curve} of them.`),
    h("details", {}, h("summary", {}, "Show them"),
      table([["fault"], ["seen by"], ["seen by the same checks"]], subsumption.faults.map((f) => [faultLink(f.id), list(f.checks), f.same.length ? h("span", {}, f.same.slice(0, 6).flatMap((id, i) => [i ? ", " : "", faultLink(id)]), f.same.length > 6 ? ` and ${f.same.length - 6} more` : "") : "–"]), "Faults subsumed by none")));
}

const doseText = {
  all: (f) => `detected at every dose tried; half-way dose below ${number(f.high)}`,
  never: (f) => `at no dose; half-way dose above ${number(f.low)}`,
  separated: (f) => (f.low === f.high ? `turns at ${number(f.low)}` : `turns between ${number(f.low)} and ${number(f.high)}`),
  fitted: (f) => `half-way dose ${number(f.ed50)} (95 % ${number(f.low)} to ${f.high == null ? "∞" : number(f.high)})`,
  none: () => "one dose only",
};

export function doses({ results }) {
  const items = results.statistics.dose_response.filter((d) => d.points.length > 1);
  if (items.length === 0) return null;
  return section("doses", "How small a fault is still seen",
    h("p", {}, "Share of runs in which the fault was detected, by magnitude: ", h("strong", { style: `color:${colourOf("all")}` }, "all checks"), " and ", h("strong", { style: `color:${colourOf("loss_only")}` }, "the loss against a second stack"),
      ". Solid lines are logistic fits; dashed ones join points where all of one side was detected and none of the other, so that no fit exists and the turn is only known to lie in the shaded range."),
    h("div", { class: "charts" }, items.map((d) => h("div", {}, h("h3", { class: "id" }, d.fault),
      figure(dose(d), `${d.fault}: ${d.points.map((p) => `${p.detected} of ${p.tried} at ${p.dose}`).join(", ")}`, `all: ${doseText[d.fit.kind](d.fit)}. loss alone: ${doseText[d.loss_only_fit.kind](d.loss_only_fit)}.`)))));
}

export function rates({ results }) {
  const { families, classes, localisation: where } = results.statistics;
  const rows = (o) => Object.entries(o).map(([name, r]) => ({ name, ...r, colour: "var(--hit)" }));
  const label = (o) => rows(o).map((d) => `${d.name}: ${d.detected} of ${d.of}`).join("; ");
  return section("kinds", "By kind of fault",
    h("h3", {}, "Family"), figure(intervals(rows(families)), label(families), "Exact 95 % intervals. A wide bar means few faults, not a bad check."),
    h("h3", {}, "Where it first shows, says the catalogue"), figure(intervals(rows(classes)), label(classes)),
    where?.of > 0 && h("h3", {}, "Does a comparison blame the right stage?"),
    where?.of > 0 && h("p", {}, `faultline diff names the first stage at which the faulty run parts from the second stack. It is the stage the catalogue names for ${where.right} of ${where.of} faults: ${percent(where.right / where.of)}, exact 95 % interval ${interval(where.interval)}.`),
    where?.of > 0 && table([["first shows in"], ["faults", true], ["blamed rightly", true]], Object.entries(where.classes).map(([name, c]) => [name, String(c.of), String(c.right)]), "Localisation by class"));
}

function lossAlarms(a) {
  if (!a || a.faulty_runs === 0) return null;
  return h("div", {},
    h("h3", {}, "Watching the loss alone, step by step"),
    h("p", {}, `Three alarms on the relative difference of the training loss to the second stack's, on the same runs. The e-process may be read at every step of a run of any length and still raises a false alarm in at most ${percent(a.alpha, 0)} of healthy runs; the limit of CUSUM is the largest value of its calibration runs (at least ${a.calibration_runs}) and holds for their length; the band is the case study's fixed number.`),
    table([["alarm"], ["faulty runs seen", true], ["exact 95 % interval", true], ["median steps", true], ["false alarms", true], ["exact 95 % interval", true]],
      a.methods.map((m) => [m.text, `${m.detected} of ${a.faulty_runs}`, interval(m.interval), number(m.median_steps), `${m.false_alarms} of ${a.healthy_runs}`, interval(m.false_alarm_interval)]), "Alarms on the loss"));
}

/** What became of the user's own oracle on what any oracle must get right. */
function external({ results: { summary: { external: e }, statistics } }) {
  const healthy = statistics.false_alarms.checks.external;
  const sound = e.kills_planted && e.false_alarms === 0 && healthy.runs > 0;
  return `The external oracle ${e.kills_planted ? "fires" : "does not fire"} on the planted fault, raises ${e.false_alarms} false alarms in ${healthy.runs} healthy runs and gives no verdict in ${e.no_verdict} of ${e.cases} cases${sound ? "" : ": it is not calibrated"}.`;
}

export function alarms({ results }) {
  const a = results.statistics.false_alarms;
  return section("alarms", "How often it cries wolf",
    h("p", {}, `${a.false_alarms} of ${a.runs} healthy runs that no bound was made of raised any alarm over their whole length: at most ${percent(a.interval[1])} at 95 %. Few runs give a wide bound; faultline null with more --false-alarms narrows it.`),
    table([["check"], ["healthy runs", true], ["alarms", true], ["exact 95 % interval", true]], Object.entries(a.checks).filter(([, c]) => c.runs > 0).map(([name, c]) => [name, String(c.runs), String(c.false_alarms), interval(c.interval)]), "False alarms by check"),
    results.summary.external && h("p", {}, external({ results })),
    lossAlarms(results.statistics.loss_alarms),
    results.oracle_faults.length > 0 && h("h3", {}, "Faults of the oracle itself"),
    results.oracle_faults.length > 0 && h("p", {}, `${results.oracle_faults.filter((f) => f.killed).length} of ${results.oracle_faults.length} seeded faults of the comparator are noticed by its own calibration. They never count in the rate.`),
    results.oracle_faults.length > 0 && table([["fault"], ["noticed"], ["how"]], results.oracle_faults.map((f) => [h("span", { class: "id", title: f.why }, f.id), f.killed ? "yes" : h("span", { class: "bad" }, "no"), f.detail]), "Faults of the oracle"));
}
