// SPDX-License-Identifier: Apache-2.0
// Makes elements of the page.

// h("td", {class: "code", onclick: f}, "text", element, ...): functions are listeners, undefined and false are left out.
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("aria-")) {
      element.setAttribute(name, value);
      continue;
    }
    if (value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in element && element.tagName !== "LI") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter(child => child !== undefined && child !== false && child !== null));
  return element;
}

let ids = 0;
export const freshId = prefix => `${prefix}-${++ids}`;

// A label and its control.
export function labelled(text, control, attributes = {}) {
  control.id ||= freshId("field");
  return h("div", { class: "field", ...attributes }, h("label", { for: control.id }, text), control);
}

export function select(choices, chosen, onchange, attributes = {}) {
  const options = choices.map(choice => {
    const [value, text] = Array.isArray(choice) ? choice : [choice, choice];
    return h("option", { value, selected: value === chosen }, text);
  });
  return h("select", { ...attributes, onchange: event => onchange(event.target.value) }, options);
}

// Types in groups, as the command lists them.
export function typeSelect(types, chosen, onchange, attributes = {}, first = []) {
  const groups = [["Floating point", "float"], ["Integers", "integer"], ["bool", "bool"], ["text", "text"]];
  const element = h("select", { ...attributes, onchange: event => onchange(event.target.value) },
    first.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  for (const [label, family] of groups) {
    const group = types.filter(type => type.family === family);
    if (group.length === 0) continue;
    element.append(h("optgroup", { label }, group.map(type =>
      h("option", { value: type.name, selected: type.name === chosen }, type.name))));
  }
  return element;
}

// The bits of a code in the colours of sign, exponent and mantissa.
export function bitsText(explanation) {
  const parts = [["sign", explanation.sign_bits], ["exponent", explanation.exponent_bits], ["mantissa", explanation.mantissa_bits]];
  const shown = parts.filter(([, bits]) => bits).map(([kind, bits]) =>
    h("span", { class: kind }, bits.length > 23 ? `${bits.slice(0, 9)}…${bits.slice(-6)}` : bits));
  return h("code", { class: "bits", title: parts.map(([, bits]) => bits).filter(Boolean).join(" ") },
    shown.flatMap((span, i) => (i ? [" ", span] : [span])));
}

const tones = {
  exact: "good", rounded: "mild", truncated: "mild", underflowed: "warn", saturated: "warn", wrapped: "bad",
  overflowed: "bad", "NaN made": "bad", "NaN lost": "bad", error: "bad",
};
export const toneOf = event => tones[event] ?? "mild";
export const badge = event => h("span", { class: `badge ${toneOf(event)}` }, event);
