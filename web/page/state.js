// SPDX-License-Identifier: Apache-2.0
// What the page shows, as the part of its address after #: every state is a link.

const usual = { view: "number", value: "0.1", type: "float8_e4m3fn" };

export class State {
  #values = {};
  #listeners = [];

  constructor() {
    this.#read();
    addEventListener("hashchange", () => {
      this.#read();
      this.#tell();
    });
  }

  #read() {
    this.#values = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  }

  get(name, otherwise = usual[name]) { return this.#values[name] ?? otherwise; }

  // Sets values and removes those that are undefined or usual. `replace`: no new entry of the history.
  set(changes, { replace = false } = {}) {
    const values = { ...this.#values, ...changes };
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined || value === usual[name]) delete values[name];
    }
    this.#values = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
    const address = this.link({});
    if (replace) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    this.#tell();
  }

  // The address of this state with changes.
  link(changes) {
    const values = new URLSearchParams({ ...this.#values, ...changes });
    return `#${values.toString().replaceAll("%2F", "/").replaceAll("%2B", "+")}`.replaceAll("+", "%2B");
  }

  onChange(listener) { this.#listeners.push(listener); }
  #tell() { for (const listener of this.#listeners) listener(); }
}

// The cast options of a state: those whose name it has.
export function castOptionsOf(state, description) {
  const options = {};
  for (const { name, kind, words } of description.cast_options.options) {
    const text = state.get(name);
    if (text === undefined) continue;
    if (kind === "boolean") options[name] = text !== "false";
    else if (kind === "choice" && words.includes(text)) options[name] = text;
    else if (kind === "integer" && Number.isInteger(Number(text))) options[name] = Number(text);
    else if (kind === "number" && Number.isFinite(Number(text)) && text !== "") options[name] = Number(text);
  }
  return options;
}
