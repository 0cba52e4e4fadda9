// Small helpers: elements, numbers as text. Used by all sections; knows nothing of results.

/** h("p", {class: "x"}, child, ...): an element. Strings become text, never markup. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
export const interval = ([low, high], digits = 1) => `${(100 * low).toFixed(digits)} to ${(100 * high).toFixed(digits)} %`;
export const number = (value, digits = 3) => (value == null ? "–" : Number(value.toPrecision(digits)).toString());
export function pValue(p) {
  if (p == null) return "–";
  return p < 0.001 ? `${p.toExponential(0).replace("e-", " × 10⁻").replace(/⁻(\d+)/, (_, d) => "⁻" + [...d].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join(""))}` : p.toFixed(3);
}

/** A table: columns are [title, numeric?]; rows are arrays of text or elements. The first is the row's name. kind "stack": rows become blocks on a phone. */
export function table(columns, rows, caption, kind) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: kind },
      h("thead", {}, h("tr", {}, columns.map(([title, numeric]) => h("th", { scope: "col", class: numeric ? "n" : null }, title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) =>
        h(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : null, class: columns[i][1] ? "n" : null }, cell)))))));
}

export function section(id, title, ...children) {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...children);
}

/** A figure with a name for those who do not see it. */
export function figure(svg, label, caption) {
  for (const part of svg.querySelectorAll("[aria-label], [aria-description]")) { // parts of an image have no names
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-description");
  }
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  return h("figure", {}, svg, caption && h("figcaption", {}, caption));
}
