// mutation.json against the published schema of mutation-testing-report-schema, missed.sarif against the
// SARIF 2.1.0 schema that jest-sarif ships; both schemas must refuse a broken report, or they say nothing.
//   schema_test.mjs RESULTS_FOLDER MODULES
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";

const [folder, modules] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(join(modules, "package.json"));
const Ajv = require("ajv").default;
const AjvDraft04 = require("ajv-draft-04").default;
const addFormats = require("ajv-formats").default;
const read = (path) => JSON.parse(readFileSync(path, "utf8"));
let passed = 0;
let failed = 0;

function check(what, good, more) {
  if (good) passed++;
  else { failed++; console.log(`FAILED: ${what}`, more ?? ""); }
}

function against(ajv, schema, name, report, breakIt) {
  addFormats(ajv);
  const validate = ajv.compile(schema);
  check(`${name} is valid`, validate(report), JSON.stringify(validate.errors?.slice(0, 3)));
  const broken = structuredClone(report);
  breakIt(broken);
  check(`a broken ${name} is refused`, !validate(broken));
}

const results = read(join(folder, "results.json"));
const mutation = read(join(folder, "mutation.json"));
against(new Ajv({ strict: false }), read(require.resolve("mutation-testing-report-schema/mutation-testing-report-schema.json")), "mutation.json",
  mutation, (r) => { Object.values(r.files)[0].mutants[0].status = "Censored"; });
const mutants = Object.values(mutation.files).flatMap((file) => file.mutants);
check("a mutant for each fault", mutants.length === results.faults.length, mutants.length);
const status = { detected: "Killed", missed: "Survived", flaky: "Survived", not_reached: "NoCoverage", not_infected: "NoCoverage",
  crashed: "RuntimeError", timed_out: "RuntimeError", no_verdict: "RuntimeError" };
for (const fault of results.faults) {
  const wanted = fault.expectation === "KILL" ? status[fault.outcome] : "Ignored";
  check(`${fault.id} is ${wanted}`, mutants.find((m) => m.id === fault.id)?.status === wanted);
}
for (const [path, file] of Object.entries(mutation.files)) {
  const lines = file.source.split("\n");
  for (const mutant of file.mutants) {
    const { start, end } = mutant.location;
    const from = lines[start.line - 1].slice(start.column - 1);
    const to = lines[end.line - 1].slice(0, end.column - 1);
    check(`${mutant.id} stands on its site in ${path}`, from.startsWith("FAULT(") && to.endsWith(")"), `${from} ... ${to}`);
  }
}

const sarif = read(join(folder, "missed.sarif"));
const schema = read(join(dirname(require.resolve("@microsoft/jest-sarif/package.json")), "lib/schemas/sarif-2.1.0-rtm.5.json"));
against(new AjvDraft04({ strict: false, unicodeRegExp: false }), schema, "missed.sarif", sarif, (r) => { r.runs[0].tool.driver = {}; });
const missed = results.faults.filter((f) => f.expectation === "KILL" && ["missed", "flaky"].includes(f.outcome));
check("a result for each missed fault", sarif.runs[0].results.length === missed.length);
console.log(`${passed} passed, ${failed} failed; ${mutants.length} mutants, ${missed.length} missed`);
process.exit(failed === 0 && mutants.length > 0 ? 0 : 1);
