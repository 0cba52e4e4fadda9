// The sources with the faults in place, shown by mutation-testing-elements in a frame of its own, because
// that component keeps its state in the address as this page does.
import { h, section } from "./dom.js";

export function strykerSection({ mutation }) {
  const holder = h("div");
  const open = h("button", { type: "button", onclick: () => {
    const script = document.getElementById("elements").textContent.replaceAll("<\\/script", "</script");
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const json = JSON.stringify(mutation).replaceAll("<", "\\u003c");
    const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Sources and faults</title><body><mutation-test-report-app title-postfix="Faultline"></mutation-test-report-app>
<script>${script.replaceAll("</script", "<\\/script")}<` + `/script><script>const app=document.querySelector("mutation-test-report-app");app.report=${json};app.theme="${dark ? "dark" : "light"}";<` + `/script></body></html>`;
    const url = URL.createObjectURL(new Blob([page], { type: "text/html" }));
    holder.replaceChildren(h("iframe", { src: url, title: "Sources with their faults (mutation-testing-elements)" }));
    open.hidden = true;
  } }, "Open the sources");
  return section("sources", "In the sources",
    h("p", {}, "Each source file with its faults, in the viewer that mutation-testing tools share; checks stand for tests. The same data is in mutation.json."), open, holder);
}
