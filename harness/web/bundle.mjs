// Bundles main.js with its packages and the style into one HTML file without network access.
// Called by build.sh: bundle.mjs SOURCES OUT; the packages lie in OUT/node_modules.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [source, out] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(join(out, "package.json"));
const { buildSync } = require("esbuild");

const bundle = (options) =>
  buildSync({ bundle: true, minify: true, write: false, nodePaths: [join(out, "node_modules")], ...options }).outputFiles[0].text;
// A closing tag inside a script or style element would end it.
const inline = (text, tag) => text.replaceAll(new RegExp(`</${tag}`, "gi"), `<\\/${tag}`);

const elements = readFileSync(join(out, "node_modules/mutation-testing-elements/dist/mutation-test-elements.js"), "utf8");
const parts = {
  STYLE: bundle({ entryPoints: [join(source, "page.css")] }),
  SCRIPT: inline(bundle({ entryPoints: [join(source, "main.js")], format: "iife", target: "es2020" }), "script"),
  ELEMENTS: inline(elements, "script"),
};
const page = readFileSync(join(source, "page.html"), "utf8").replace(/<!--(STYLE|SCRIPT|ELEMENTS)-->/g, (_, name) => parts[name]);
writeFileSync(join(out, "page.html"), page);
