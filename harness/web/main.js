// Reads the data in this file and draws the overview, or the page of one fault when the address names it.
import { alarms, doses, matrix, rates, sets, speed, verdict } from "./overview.js";
import { h } from "./dom.js";
import { faultPage } from "./fault.js";
import { strykerSection } from "./stryker.js";

const titles = { verdict: "Verdict", matrix: "Matrix", speed: "How soon", doses: "Doses", sets: "Enough", kinds: "Kinds", alarms: "False alarms", sources: "Sources" };
const makers = { verdict, matrix, speed, doses, sets, kinds: rates, alarms, sources: strykerSection };
const modes = {
  free: "One reference a recipe and seed trains on its own from the same initial weights. Healthy stacks drift apart; the bounds allow for that.",
  lockstep: "Each run has a reference that starts every step from the run's own weights, moments and batch. Small faults cannot hide in drift; the loss says little, as every step starts from the run's own weights.",
};
const main = document.getElementById("main");

function read() {
  try { return JSON.parse(document.getElementById("data").textContent); } catch { return null; }
}

function drawHead({ results }) {
  const p = results.provenance ?? {};
  const parts = [p.commit && `commit ${p.commit.slice(0, 12)}${p.commit.endsWith("-dirty") ? "-dirty" : ""}`, p.compiler, p.cpu && `${p.cpu}, ${p.cores} cores`, p.seed != null && `seed ${p.seed}`, `${Math.round(results.summary.seconds)} s`];
  document.title = `Faultline: ${results.campaign}`;
  document.getElementById("top").replaceChildren(h("h1", {}, `Faultline report, campaign ${results.campaign}`), h("p", { class: "note" }, parts.filter(Boolean).join(" · ")),
    h("details", { class: "note", id: "mode" }, h("summary", {}, `mode ${results.mode}`), h("p", {}, modes[results.mode] ?? "")));
  document.getElementById("foot").replaceChildren(
    h("p", {}, `Plan ${results.plan_hash}, programs ${p.programs_hash ?? "–"}, calibration ${p.calibration ?? "–"} runs a recipe, recipes ${(p.recipes ?? []).map((r) => `${r.name} (${r.hash})`).join(", ")}.`),
    h("p", {}, "Made from results.sqlite by faultline report; this file loads nothing."));
}

function drawOverview(data) {
  const sections = Object.entries(makers).map(([id, make]) => [id, make(data)]).filter(([, element]) => element);
  main.replaceChildren(...sections.map(([, element]) => element));
  document.getElementById("nav").replaceChildren(h("ul", {}, sections.map(([id]) => h("li", {}, h("a", { href: `#${id}` }, titles[id])))));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((e) => e.isIntersecting)) {
      for (const link of document.querySelectorAll("#nav a")) {
        if (link.hash === `#${entry.target.id}`) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const [, element] of sections) seen.observe(element);
}

let drawn = "";
function route(data) {
  const [, id] = location.hash.match(/^#fault\/(.+)$/) ?? [];
  if (id) {
    main.replaceChildren(faultPage(data, decodeURIComponent(id)));
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  } else {
    if (drawn !== "overview") drawOverview(data);
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }
  drawn = id ? "fault" : "overview";
}

const data = read();
if (data === null) {
  main.replaceChildren(h("p", {}, "This page holds no results: it is the template that faultline report fills."));
} else {
  drawHead(data);
  drawOverview(data);
  drawn = "overview";
  route(data);
  addEventListener("hashchange", () => route(data));
}
