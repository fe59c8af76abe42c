// SPDX-License-Identifier: Apache-2.0
// Starts the page: the engine, the tabs, the view that the address names.

import { Engine } from "./engine.js";
import { h } from "./elements.js";
import { bytesOfBase64, kernelEngine } from "./kernels.js";
import { State } from "./state.js";
import * as blocks from "./view_blocks.js";
import * as file from "./view_file.js";
import * as number from "./view_number.js";
import * as pair from "./view_pair.js";
import * as promotion from "./view_promotion.js";
import * as type from "./view_type.js";

const views = { number, type, pair, blocks, promotion, file };

const engine = Engine.compile(bytesOfBase64(globalThis.tensorcastModule));
const state = new State();

// For other scripts: what `tcast explain --json` prints. `type`: one type, or all if it is left out. kernels() promises
// the engine that also has quantize(weights, rows, columns, scheme, recipe).
globalThis.tensorcast = {
  version: engine.description.version,
  types: engine.types.map(type => type.name),
  explain: (text, type, { from, ...options } = {}) => engine.explain(String(text), { from, to: type, options }),
  engine,
  kernels: () => kernelEngine(engine),
};

if (globalThis.self !== globalThis.top) document.documentElement.classList.add("embedded");

// Keeps the focus and the caret where they were, as a view is made anew for each state.
function keepingFocus(change) {
  const { id, selectionStart, selectionEnd } = document.activeElement ?? {};
  const scroll = [scrollX, scrollY];
  change();
  const again = id && document.getElementById(id);
  if (!again) return;
  again.focus({ preventScroll: true });
  if (selectionStart !== undefined && selectionStart !== null) again.setSelectionRange?.(selectionStart, selectionEnd);
  scrollTo(...scroll);
}

let shown = null;

function show() {
  const name = views[state.get("view")] ? state.get("view") : "number";
  const tabs = Object.entries(views).map(([key, view]) =>
    h("a", { href: state.link({ view: key }), class: "tab", "aria-current": key === name ? "page" : undefined }, view.title));
  document.title = `${views[name].title} · tensorcast explorer`;
  keepingFocus(() => {
    document.getElementById("tabs").replaceChildren(...tabs);
    if (shown !== name) document.getElementById("view").replaceChildren();
    shown = name;
    document.getElementById("view").replaceChildren(...views[name].show(engine, state).filter(Boolean));
  });
  document.body.dataset.view = name;
}

// The policy of the page forbids listeners in its text.
document.getElementById("skip").addEventListener("click", event => {
  event.preventDefault();
  document.getElementById("view").focus();
});

state.onChange(show);
document.getElementById("version").textContent = engine.description.version;
show();
document.body.dataset.ready = "true";
