// SPDX-License-Identifier: Apache-2.0
// One number: its bits in every type, the exact value, the error, the neighbours, and what happened.

import { codeAt, hex, rankOf } from "./codes.js";
import { difference, parseDecimal, readLiteral, shortened } from "./decimal.js";
import { badge, bitsText, h, labelled, svg, typeSelect } from "./elements.js";
import { optionsPanel } from "./options.js";
import { roundings } from "./roundings.js";
import { castOptionsOf } from "./state.js";

export const title = "One number";
const examples = ["0.1", "1/3", "464", "65520", "2^-140", "-0.0", "nan", "0x7F", "16777217"];

export function show(engine, state) {
  const typed = state.get("value");
  const focus = engine.byName.get(state.get("type")) ?? engine.byName.get("float8_e4m3fn");
  const read = readLiteral(typed);
  const from = engine.byName.get(state.get("from", ""))?.name ?? (read.isCode ? focus.name : undefined);
  const options = castOptionsOf(state, engine.description);
  const parts = [controls(engine, state, typed, focus, from)];
  try {
    if (read.error) throw new Error(read.error);
    const [answer] = engine.explain(read.literal, { from, options });
    const result = answer.results.find(row => row.dtype === focus.name);
    parts.push(card(engine, state, answer, result, focus, read, typed), table(state, answer, focus));
  } catch (error) {
    parts.push(h("p", { class: "error", role: "alert" }, error.message));
  }
  return parts;
}

function controls(engine, state, typed, focus, from) {
  const input = h("input", {
    id: "value", type: "text", value: typed, spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    "aria-describedby": "value-help",
    oninput: event => state.set({ value: event.target.value }, { replace: true }),
  });
  return h("section", { class: "controls", "aria-label": "The number" },
    h("div", { class: "fields" },
      labelled("Number", input, { class: "field wide" }),
      labelled("in type", typeSelect(engine.types, focus.name, type => state.set({ type }), { id: "type" })),
      labelled("rounded first to", typeSelect(engine.types, from ?? "", value => state.set({ from: value || undefined }), { id: "from" },
        [["", "nothing: the exact number"]]))),
    h("p", { class: "note", id: "value-help" },
      "A decimal number, a fraction, 2^-9, 0x1.8p3, inf or nan; or a code, 0x7F or 0b0111, of the type. Try ",
      examples.flatMap((text, i) => [i ? " " : "", h("a", { class: "chip", href: state.link({ value: text }) }, text)])),
    optionsPanel(engine, state));
}

const spaced = text => text.replace(/\B(?=(\d{3})+(?!\d))/g, " ");
const isFinite_ = text => parseDecimal(text) !== null;

function card(engine, state, answer, result, focus, read, typed) {
  if (result.error) {
    return h("section", { class: "card", "aria-label": focus.name },
      h("h2", {}, focus.name), h("p", { class: "error" }, result.error));
  }
  const lines = [];
  const line = (name, ...content) => lines.push(h("dt", {}, name), h("dd", {}, content));
  if (result.code) line("code", h("code", {}, result.code), " ", decomposition(focus, result));
  line("exact value", h("output", { class: "digits", id: "exact" }, long(result.exact_value)));
  if (result.shortest_value !== result.exact_value) line("shortest text", h("span", { class: "digits" }, result.shortest_value));
  if (answer.source) line(`the number as ${answer.source.dtype}`, h("span", { class: "digits" }, long(answer.source.exact_value ?? answer.source.error)));
  if (result.exact_error) {
    const error = result.exact_error === "0" ? "0: nothing was lost" : shortened(result.exact_error, 40);
    const relative = result.relative_error ? ` (${(Math.abs(result.relative_error) * 100).toPrecision(3)} %)` : "";
    line("error", h("span", { class: "digits", title: result.exact_error.slice(0, 400) }, error), relative);
  }
  line("what happened", result.events.map(badge));
  return h("section", { class: "card", "aria-label": `${typed} in ${focus.name}` },
    h("h2", {}, focus.name, h("a", { class: "aside", href: state.link({ view: "type" }) }, "all its numbers")),
    result.code && bitButtons(state, focus, result),
    h("dl", {}, lines),
    result.code && neighbours(engine, state, focus, result, read, answer),
    result.code && words(engine, state, focus, read, answer));
}

// What each word of rounding gives, where they differ.
function words(engine, state, type, read, answer) {
  const options = castOptionsOf(state, engine.description);
  const { rows, refused } = roundings(engine, read.literal, { from: answer.source?.dtype, to: type.name, options });
  if (rows.length < 2) return undefined;
  const share = row => row.share === undefined ? "" : `${(row.share * 100).toPrecision(3)} %`;
  return h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "Words of rounding" }, h("table", { id: "roundings" },
    h("thead", {}, h("tr", {}, ["code", "value", "stochastic", "by"].map(text => h("th", { scope: "col" }, text)))),
    h("tbody", {}, rows.map(row => h("tr", {},
      h("td", {}, h("code", {}, row.code)), h("td", { class: "digits" }, shortened(row.value, 24)), h("td", {}, share(row)),
      h("td", {}, row.words.map((word, i) => [i ? ", " : "", h("a", { href: state.link({ rounding: word }) }, word)])))))),
    refused.map(({ word, error }) => h("p", { class: "note" }, `${word}: ${error}`)));
}

const long = text => text.length > 420 ? [h("span", {}, `${text.slice(0, 400)}…`), ` ${text.length} digits`] : text;

// The bits, each a button that turns it.
function bitButtons(state, type, result) {
  const code = BigInt(result.code);
  const kinds = [...Array(result.sign_bits.length).fill("sign"), ...Array(result.exponent_bits.length).fill("exponent"),
    ...Array(result.mantissa_bits.length).fill("mantissa")];
  const bits = result.sign_bits + result.exponent_bits + result.mantissa_bits;
  const turn = place => {
    state.set({ value: hex(type, code ^ 1n << BigInt(place)), from: undefined, type: type.name }, { replace: true });
    document.querySelector(`.bit[data-place="${place}"]`)?.focus();
  };
  const buttons = [...bits].map((bit, i) => {
    const place = bits.length - 1 - i;
    return h("button", {
      type: "button", class: `bit ${kinds[i]}`, "data-place": place, "aria-pressed": bit === "1",
      "aria-label": `bit ${place}, ${type.family === "float" ? kinds[i] : "value"}: ${bit}`, onclick: () => turn(place),
      onkeydown: event => {
        const step = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
        if (step) document.querySelector(`.bit[data-place="${place + step}"]`)?.focus();
      },
    }, bit);
  });
  const legend = type.family === "float"
    ? ["sign", "exponent", "mantissa"].filter(kind => kinds.includes(kind)).map(kind =>
      h("span", { class: kind }, `${kind}: ${kinds.filter(k => k === kind).length} bit${kinds.filter(k => k === kind).length > 1 ? "s" : ""}`))
    : [h("span", { class: "mantissa" }, `${bits.length} bits`)];
  return h("div", {},
    h("div", { class: `bit-row ${bits.length > 16 ? "many" : ""}`, role: "group", "aria-label": "Bits: press one to turn it" }, buttons),
    h("p", { class: "legend" }, legend, h("span", { class: "hint" }, "click a bit to turn it")));
}

// "+1.5 × 2^-4", from the fields of the code.
function decomposition(type, result) {
  if (type.family !== "float" || !isFinite_(result.exact_value)) return "";
  const exponent = parseInt(result.exponent_bits, 2);
  const fraction = result.mantissa_bits ? parseInt(result.mantissa_bits, 2) : 0;
  if (type.mantissa_bits > 23) return "";
  const power = Math.max(exponent, type.exponent_bits > 0 && result.sign_bits ? 1 : 0) - type.bias;
  const leading = exponent === 0 && result.sign_bits ? 0 : 1;
  const significand = leading + fraction / 2 ** type.mantissa_bits;
  const sign = result.sign_bits === "1" ? "−" : "";
  return h("span", { class: "formula" }, `${sign}${significand} × 2`, h("sup", {}, String(power)),
    leading === 0 ? " (subnormal)" : "");
}

function neighbours(engine, state, type, result, read, answer) {
  const code = BigInt(result.code);
  if (!isFinite_(result.exact_value) || type.family === "bool") return undefined;
  const at = step => {
    const found = codeAt(type, rankOf(type, code) + step);
    if (found === null) return null;
    const [{ results: [row] }] = engine.explain(hex(type, found), { from: type.name, to: type.name });
    return row.exact_value === "nan" || row.exact_value === "-nan" ? null : row;
  };
  const [below, above] = [at(-1n), at(1n)];
  const one = (name, row) => h("div", { class: "neighbour" }, h("span", { class: "label" }, name),
    row ? h("a", { href: state.link({ value: row.code, from: type.name }) }, h("code", {}, row.code), " ", h("span", { class: "digits" }, shortened(row.exact_value, 24)))
      : h("span", {}, "none"));
  const gap = row => row && isFinite_(row.exact_value) ? difference(row.exact_value, result.exact_value).replace("-", "") : "";
  const gaps = [gap(below), gap(above)].filter(Boolean);
  const said = gaps.length === 2 && gaps[0] === gaps[1] ? `gap to both: ${shortened(gaps[0], 30)}`
    : gaps.length ? `gap below: ${shortened(gap(below) || "none", 24)}, above: ${shortened(gap(above) || "none", 24)}` : "";
  const wanted = answer.source ? answer.source.exact_value : read.literal;
  return h("div", { class: "neighbours" }, one("next below", below), one("next above", above),
    said && h("p", { class: "note" }, said), betweenNeighbours(below, result, above, wanted));
}

// Where the number lies between the numbers that the type has.
function betweenNeighbours(below, result, above, wanted) {
  const rows = [below, result, above].filter(row => row && isFinite_(row.exact_value));
  if (rows.length < 2 || !isFinite_(wanted)) return undefined;
  const ends = [rows[0].exact_value, rows[rows.length - 1].exact_value];
  const span = Number(difference(ends[1], ends[0]));
  const place = text => Number(difference(text, ends[0])) / span;
  const x = share => 24 + 552 * share;
  const wanted_place = place(wanted);
  if (!(wanted_place >= -0.02 && wanted_place <= 1.02) || !Number.isFinite(span)) return undefined;
  return svg("svg", { class: "line", viewBox: "0 0 600 64", role: "img", "aria-label": `${shortened(wanted)} between its neighbours` },
    svg("line", { x1: 24, x2: 576, y1: 30, y2: 30, class: "axis" }),
    rows.map(row => [
      svg("line", { x1: x(place(row.exact_value)), x2: x(place(row.exact_value)), y1: 22, y2: 38, class: row === result ? "tick chosen" : "tick" }),
      svg("text", { x: x(place(row.exact_value)), y: 56, "text-anchor": place(row.exact_value) < 0.2 ? "start" : place(row.exact_value) > 0.8 ? "end" : "middle", class: row === result ? "chosen" : "" }, shortened(row.exact_value, 16)),
    ]),
    svg("circle", { cx: x(wanted_place), cy: 30, r: 5, class: "wanted" }),
    svg("text", { x: x(wanted_place), y: 14, "text-anchor": wanted_place < 0.2 ? "start" : wanted_place > 0.8 ? "end" : "middle", class: "wanted" }, shortened(wanted, 18)));
}

function table(state, answer, focus) {
  const rows = answer.results.map(row => {
    const chosen = row.dtype === focus.name;
    const name = h("th", { scope: "row" }, h("a", { href: state.link({ type: row.dtype, ...(answer.source ? { from: answer.source.dtype } : {}) }), "aria-current": chosen ? "true" : undefined }, row.dtype));
    if (row.error) return h("tr", { class: chosen && "chosen" }, name, h("td", { colspan: 5, class: "muted" }, row.error));
    const error = row.exact_error === "" ? "" : row.exact_error === "0" ? "0" : shortened(row.exact_error, 14);
    return h("tr", { class: chosen && "chosen" }, name,
      h("td", { class: "bits-cell" }, row.code ? bitsText(row) : ""),
      h("td", {}, row.code && h("code", {}, row.code)),
      h("td", { class: "digits", title: row.exact_value.slice(0, 400) }, shortened(row.exact_value, 22)),
      h("td", { class: "digits muted" }, error),
      h("td", {}, row.events.map(badge)));
  });
  return h("section", { "aria-label": "All types" }, h("h2", {}, "In all types"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of all types" }, h("table", { class: "types" },
      h("thead", {}, h("tr", {}, ["type", "bits", "code", "exact value", "error", "what happened"].map(text => h("th", { scope: "col" }, text)))),
      h("tbody", {}, rows))));
}
