// The page of one fault: the healthy line, what stands in its place, what happened when, how to repeat it.
import { losses, timeline } from "./charts.js";
import { figure, h, number, section } from "./dom.js";

function links(source) {
  return source.split(/\s+/).map((url) => (/^https?:\/\//.test(url) ? h("a", { href: url, rel: "noreferrer" }, url) : url)).flatMap((x, i) => (i ? [" ", x] : [x]));
}

function command(text) {
  const status = h("span", { role: "status", class: "note" });
  const copy = h("button", { type: "button", onclick: async () => {
    try { await navigator.clipboard.writeText(text); status.textContent = "copied"; } catch { status.textContent = "select and copy by hand"; }
  } }, "Copy");
  return h("div", { class: "command" }, h("code", {}, text), status, copy);
}

function lossFigure(fault, detail) {
  if (!detail.curve) return h("p", { class: "soft" }, "No losses are stored for this case.");
  const drawn = losses(detail.curve, fault.reached_step, fault.detected_step);
  if (!drawn) return h("p", { class: "soft" }, "No step of this run left a finite loss.");
  const legend = h("p", { class: "controls" }, drawn.legend.map(([name, colour]) => h("span", { class: "tick" }, h("i", { style: `border-color:${colour}`, "aria-hidden": "true" }), name)));
  return h("div", {}, legend, figure(drawn.plot, "Training loss by step: with the fault, healthy, and of the second stack",
    `Largest relative difference to the healthy run: ${number(drawn.worst, 2)}. Grey line: site first ran; dotted: detected. Seed ${fault.seed}.`));
}

export function faultPage(data, id) {
  const { faults } = data.results;
  const index = faults.findIndex((f) => f.id === id);
  if (index < 0) return section("fault", "Unknown fault", h("p", {}, `There is no ${id} in this campaign. `, h("a", { href: "#matrix" }, "Back to the matrix")));
  const fault = faults[index];
  const detail = data.details[id] ?? {};
  const step = (n, none = "–") => (n == null ? none : n === 0 ? "set-up" : String(n));
  const near = (i, text) => (faults[i] ? h("a", { href: `#fault/${encodeURIComponent(faults[i].id)}` }, text, h("span", { class: "id" }, faults[i].id)) : h("span"));
  const row = (name, value) => value != null && value !== "" && [h("dt", {}, name), h("dd", {}, value)];
  return section("fault", h("span", { class: "id" }, fault.id),
    h("p", { class: "lede" }, h("span", { class: `o-${fault.outcome}` }, fault.outcome.replace("_", " ")), fault.first_check ? ` by ${fault.first_check} at step ${fault.detected_step}` : "", detail.why ? `. ${detail.why[0].toUpperCase()}${detail.why.slice(1)}.` : ""),
    detail.healthy && h("div", { class: "code" }, h("pre", { class: "was" }, detail.healthy), h("pre", { class: "now" }, detail.faulty)),
    h("dl", { class: "plain" },
      row("stands in", detail.file && h("code", {}, `${detail.file}:${detail.line}`)), row("reported as", detail.source && h("span", {}, links(detail.source))),
      row("family", `${fault.family}, first shows in: ${fault.class}`), row("number", `0x${fault.number.toString(16).toUpperCase().padStart(4, "0")}`),
      row("dose", fault.dose == null ? null : `${fault.dose} ${detail.unit ?? ""}`), row("expected", fault.expectation + (detail.expect_reason ? `: ${detail.expect_reason}` : "")),
      row("ran as", fault.recipe ? `recipe ${fault.recipe}, schedule ${fault.schedule}, driver ${fault.driver}, ${fault.horizon} steps, detected in ${fault.repeats_detected} of ${fault.repeats} repeats` : "nothing: no recipe has its trigger"),
      row("reached", step(fault.reached_step)), row("bits differ from", step(fault.infected_step)), row("detected", step(fault.detected_step)),
      row("what differed", fault.detail), row("comparison blames", detail.blame && `${detail.blame} at step ${detail.blame_step}: ${detail.blame_item ?? ""}`)),
    fault.repeats > 0 && h("h3", {}, "Timeline"),
    fault.repeats > 0 && figure(timeline(fault, fault.horizon), `Timeline: ${Object.entries(fault.checks).filter(([, s]) => s != null).map(([c, s]) => `${c} at step ${s}`).join(", ") || "no check fired"}`, "Circles: checks that fired in every repeat, at the median step. Diamonds: the site ran, the bits differed."),
    fault.repeats > 0 && h("h3", {}, "Loss"), fault.repeats > 0 && lossFigure(fault, detail),
    fault.reproduce && h("h3", {}, "Reproduce"), fault.reproduce && command(fault.reproduce),
    h("div", { class: "pager" }, near(index - 1, "← "), h("a", { href: "#matrix" }, "All faults"), near(index + 1, "→ ")));
}
