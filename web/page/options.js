// SPDX-License-Identifier: Apache-2.0
// The options of Cast as controls: what the library says there is.

import { h, labelled, select } from "./elements.js";
import { castOptionsOf } from "./state.js";

function control(option, state) {
  const { name, kind, words } = option;
  const current = castOptionsOf(state, { cast_options: { options: [option] } })[name];
  const change = value => state.set({ [name]: value }, { replace: true });
  if (kind === "boolean") {
    return select([["true", "true"], ["false", "false"]], String(current ?? option.default),
      value => change(value === String(option.default) ? undefined : value));
  }
  if (kind === "choice") {
    return select(words, current ?? words[option.default], value => change(value === words[option.default] ? undefined : value));
  }
  if (name === "opset") {
    const newest = option.zero_means;
    const choices = Array.from({ length: newest }, (_, i) => [String(newest - i), i === 0 ? `${newest} (newest)` : String(newest - i)]);
    return select(choices, String(current || newest), value => change(Number(value) === newest ? undefined : value));
  }
  return h("input", {
    type: "text", inputmode: "decimal", size: 8, value: current ?? option.default, autocomplete: "off",
    onchange: event => change(Number(event.target.value) === option.default ? undefined : event.target.value),
  });
}

// `names`: which options; all if undefined.
export function optionsPanel(engine, state, names) {
  const { options } = engine.description.cast_options;
  const shown = options.filter(option => !names || names.includes(option.name));
  const changed = Object.keys(castOptionsOf(state, engine.description)).filter(name => shown.some(o => o.name === name));
  return h("details", { class: "options", open: changed.length > 0 },
    h("summary", {}, "Options of Cast", changed.length > 0 && h("span", { class: "badge mild" }, `${changed.length} changed`)),
    h("div", { class: "fields" },
      shown.map(option => labelled(option.name, control(option, state), { title: option.help })),
      changed.length > 0 && h("button", {
        type: "button", class: "quiet",
        onclick: () => state.set(Object.fromEntries(changed.map(name => [name, undefined])), { replace: true }),
      }, "defaults")),
    h("p", { class: "note" }, "What each option means: ",
      shown.map(option => [h("b", {}, option.name), ` ${option.help}. `])));
}
