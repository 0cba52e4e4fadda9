// Clicks through report.html in headless Chromium: content against results.json, keyboard, phone width, dark
// mode, accessibility rules (axe-core), nothing loaded from elsewhere. Screenshots go to OUT.
//   page_test.mjs RESULTS_FOLDER OUT MODULES
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, out, modules] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(join(modules, "package.json"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const results = JSON.parse(readFileSync(join(folder, "results.json"), "utf8"));
const url = pathToFileURL(join(folder, "report.html")).href;
mkdirSync(out, { recursive: true });

let passed = 0;
let failed = 0;
function check(what, good, more = "") {
  if (good) passed++;
  else { failed++; console.log(`FAILED: ${what} ${more}`); }
}

const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"], protocolTimeout: 300000 });
const errors = [];
const foreign = [];

async function open(width, height, scheme) {
  const page = await browser.newPage();
  page.setDefaultTimeout(120000);
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("request", (request) => /^(file|blob|data|about):/.test(request.url()) || foreign.push(request.url()));
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(url);
  await page.waitForSelector("#verdict");
  return page;
}

const text = (page, selector) => page.$eval(selector, (e) => e.textContent);
const shot = async (page, name, fullPage = true) => writeFileSync(join(out, `${name}.png`), await page.screenshot({ fullPage }));
async function accessible(page, what) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  check(`axe finds nothing on ${what}`, found.violations.length === 0, found.violations.map((v) => `${v.id}: ${v.nodes.length} x ${v.nodes[0].html.slice(0, 120)}`).join("\n  "));
  check(`axe applied rules on ${what}`, found.passes.length > 10);
}
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

// Overview on a desk.
const desk = await open(1280, 900, "light");
const summary = results.summary;
check("the verdict names the counts", (await text(desk, ".verdict")).includes(`${summary.detected} of ${summary.detection_rate_of}`));
check("the page names the mode", (await text(desk, "#mode summary")) === `mode ${results.mode}`);
const told = () => desk.$eval("#mode p", (e) => e.checkVisibility() && e.textContent);
check("what the mode means is folded away", (await told()) === false);
await desk.click("#mode summary");
check("a click says what the mode means", { free: /trains on its own/, lockstep: /starts every step from the run's own/ }[results.mode].test(await told()));
check("a row for each fault", (await desk.$$("#matrix tbody tr")).length === results.faults.length);
for (const id of ["matrix", "speed", "sets", "kinds", "alarms", "sources"]) check(`section ${id}`, (await desk.$(`section#${id}`)) !== null);
check("plots are drawn", (await desk.$$("figure svg")).length >= 4);
await shot(desk, "overview");
await accessible(desk, "the overview");

// Filters.
const family = results.faults[0].family;
await desk.select("#matrix select", family);
check("the family filter filters", (await desk.$$("#matrix tbody tr")).length === results.faults.filter((f) => f.family === family).length);
await desk.select("#matrix select", "");
await desk.type("#matrix input[type=search]", results.faults[0].id);
check("the name filter filters", (await desk.$$("#matrix tbody tr")).length >= 1 && (await desk.$$("#matrix tbody tr")).length < results.faults.length);
await desk.$eval("#matrix input[type=search]", (e) => { e.value = ""; e.dispatchEvent(new Event("input")); });

// Lines of the survival plot.
const lines = await desk.$$eval("#speed figure path", (p) => p.length);
await desk.click("#speed .tick:nth-of-type(2) input");
check("a line more is drawn", (await desk.$$eval("#speed figure path", (p) => p.length)) > lines);

// A fault, by click, and on to the next.
const picked = results.faults.find((f) => f.outcome === "detected");
await desk.evaluate((id) => [...document.querySelectorAll("#matrix tbody a")].find((a) => a.textContent === id).click(), picked.id);
await desk.waitForSelector("section#fault");
const pageText = await text(desk, "section#fault");
check("the page names the fault", pageText.includes(picked.id));
check("the page names the check", pageText.includes(`by ${picked.first_check} at step ${picked.detected_step}`));
check("the page has the command", pageText.includes(picked.reproduce));
check("the page has healthy and faulty lines", (await desk.$$("section#fault .code pre")).length === 2);
check("the page has timeline and losses", (await desk.$$("section#fault figure svg")).length === 2);
await shot(desk, "fault");
await accessible(desk, "a fault");
await desk.click(".pager a:last-child");
await desk.waitForFunction((id) => !document.querySelector("#fault-title").textContent.includes(id), {}, picked.id);
await desk.goBack();
await desk.goBack();
await desk.waitForSelector("section#matrix");
check("back leads to the overview", (await desk.$("section#fault")) === null);
const odd = results.faults.filter((f) => f.outcome !== "detected").slice(0, 3);
for (const fault of odd) {
  await desk.goto(`${url}#fault/${encodeURIComponent(fault.id)}`);
  await desk.waitForFunction((id) => document.querySelector("#fault-title")?.textContent.includes(id), {}, fault.id);
}
await desk.goto(`${url}#fault/no.such`);
await desk.waitForFunction(() => document.querySelector("#fault-title")?.textContent.includes("Unknown"));

// Keyboard alone: the skip link comes first, a fault opens with Enter.
const keys = await open(1280, 900, "light");
await keys.keyboard.press("Tab");
check("the first stop is the skip link", await keys.evaluate(() => document.activeElement.className === "skip"));
let stops = 0;
while (stops++ < 60 && !(await keys.evaluate(() => document.activeElement.closest("#matrix tbody, #verdict table") !== null && document.activeElement.tagName === "A"))) await keys.keyboard.press("Tab");
await keys.keyboard.press("Enter");
await keys.waitForSelector("section#fault");
check("a fault opens by keyboard", stops < 60);

// The sources.
await keys.goto(`${url}#sources`);
await keys.waitForSelector("#sources button");
await keys.click("#sources button");
await keys.waitForSelector("#sources iframe");
const frame = await (await keys.$("#sources iframe")).contentFrame();
await frame.waitForFunction(() => document.querySelector("mutation-test-report-app")?.shadowRoot?.querySelector("*") != null);
await new Promise((done) => setTimeout(done, 1500));
const inside = await frame.evaluate(() => {
  const collect = (root) => [...root.querySelectorAll("*")].map((e) => (e.shadowRoot ? collect(e.shadowRoot) : "")).join("") + root.textContent;
  return collect(document.querySelector("mutation-test-report-app").shadowRoot);
});
check("the viewer shows files", /optimizer|engine|kernels/.test(inside));
await keys.$eval("#sources", (e) => e.scrollIntoView());
await shot(keys, "sources", false);

// Phone and dark.
const phone = await open(375, 800, "dark");
check("no sideways scrolling on a phone", (await overflow(phone)) <= 0, String(await overflow(phone)));
await shot(phone, "phone-dark");
await accessible(phone, "the overview, dark, on a phone");
await phone.goto(`${url}#fault/${encodeURIComponent(picked.id)}`);
await phone.waitForSelector("section#fault");
check("no sideways scrolling of a fault on a phone", (await overflow(phone)) <= 0, String(await overflow(phone)));
await shot(phone, "phone-fault");
const night = await open(1280, 900, "dark");
await shot(night, "overview-dark");

check("no error in the console", errors.length === 0, errors.join("\n  "));
check("nothing is loaded from elsewhere", foreign.length === 0, foreign.join(" "));
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 25 ? 0 : 1);
