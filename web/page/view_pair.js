// SPDX-License-Identifier: Apache-2.0
// Two types: what becomes of the numbers of one in the other, where, by which version of ONNX; and all pairs at once.

import { canvas, color, logAxes } from "./charts.js";
import { codeAt, hex, packed, rankOf, sampledCodes, valuesOf } from "./codes.js";
import { shortened } from "./decimal.js";
import { badge, h, labelled, toneOf, typeSelect } from "./elements.js";
import { optionsPanel } from "./options.js";
import { castOptionsOf } from "./state.js";

export const title = "Two types";

const most_samples = 1500;
const kept = new Set(["exact", "rounded", "truncated"]);

export function show(engine, state) {
  const numeric = engine.types.filter(type => type.bits > 0);
  const from = engine.byName.get(state.get("source", "float32"));
  const to = engine.byName.get(state.get("type"));
  const parts = [h("section", { class: "controls", "aria-label": "The types" },
    h("div", { class: "fields" },
      labelled("From", typeSelect(numeric, from?.name, name => state.set({ source: name }), { id: "source" })),
      labelled("to", typeSelect(numeric, to?.name, name => state.set({ type: name }), { id: "type" })),
      h("button", { type: "button", onclick: () => state.set({ source: to.name, type: from.name }) }, "swap")),
    optionsPanel(engine, state))];
  const options = castOptionsOf(state, engine.description);
  if (from?.bits && to?.bits) {
    const outcomes = outcomesOf(engine, from, to, options);
    parts.push(segments(engine, state, from, to, outcomes), chart(from, to, outcomes), versions(engine, state, from, to, outcomes, options));
  } else {
    parts.push(h("p", { class: "note" }, "string has no codes; ", h("a", { href: state.link({ type: "float16" }) }, "choose a numeric type"), "."));
  }
  parts.push(matrix(engine, state, numeric, from, to, options));
  return parts;
}

// {rank, code, value, result, event} of codes of `from` by rank: samples, and all where the event changes.
export function outcomesOf(engine, from, to, options) {
  const outcome = rank => {
    const code = hex(from, codeAt(from, rank));
    const [{ source, results: [row] }] = engine.explain(code, { from: from.name, to: to.name, options });
    const value = Number(source.exact_value);
    return { rank, code, value, text: source.exact_value, result: Number(row.exact_value), result_text: row.exact_value, result_code: row.code, event: row.error ? "error" : row.events[0], error: row.error };
  };
  const ranks = new Set(sampledCodes(from, Math.min(most_samples, 2 ** from.bits)).map(code => rankOf(from, BigInt(code))));
  if (2 ** from.bits > most_samples) for (const limit of [...limitsOf(from), ...limitsOf(to)]) around(engine, from, limit).forEach(rank => ranks.add(rank));
  const sorted = [...ranks].filter(rank => codeAt(from, rank) !== null).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)).map(outcome);
  const all = [sorted[0]];
  for (let i = 1; i < sorted.length; ++i) {
    all.push(...changesBetween(sorted[i - 1], sorted[i], outcome), sorted[i]);
  }
  return all;
}

// The last outcome of each class and the first of the next, from `first` to `last`: NaN, infinity and the finite
// numbers may all be between two samples. Numbers that wrap change with every multiple of the range: a few tell.
function changesBetween(first, last, outcome) {
  const most_changes = 4;
  const found = [];
  let start = first;
  for (let changes = 0; changes < most_changes && classOf(start) !== classOf(last); ++changes) {
    let [low, high] = [start, last];
    while (high.rank - low.rank > 1n) {
      const middle = outcome(low.rank + (high.rank - low.rank) / 2n);
      if (classOf(middle) === classOf(start)) low = middle;
      else high = middle;
    }
    if (low !== start) found.push(low);
    if (high !== last) found.push(high);
    start = high;
  }
  return found;
}

const classOf = ({ event, value }) => (Number.isNaN(value) ? "nan" : Number.isFinite(value) ? "" : "infinite") + (kept.has(event) ? "kept" : event);

const limitsOf = type => [type.lowest, type.largest, 0, 1, -1, type.smallest_positive ?? 1, -(type.smallest_positive ?? 1), 2 * type.largest, 2 * type.lowest].filter(Number.isFinite);

// Ranks of codes next to a number.
function around(engine, type, value) {
  const [{ results: [row] }] = engine.explain(String(value), { to: type.name, options: type.family === "integer" ? { out_of_range: "saturate" } : {} });
  if (row.error || !row.code) return [];
  const rank = rankOf(type, BigInt(row.code));
  return [-2n, -1n, 0n, 1n, 2n].map(step => rank + step).filter(each => codeAt(type, each) !== null);
}

// Runs of sources with the same fate.
function segments(engine, state, from, to, outcomes) {
  const runs = [];
  for (const each of outcomes) {
    const last = runs[runs.length - 1];
    if (last && classOf(last.first) === classOf(each)) {
      last.last = each;
      last.events.add(each.event);
    } else {
      runs.push({ first: each, last: each, events: new Set([each.event]) });
    }
  }
  // Wrapping integers change with each multiple of the range: the first runs tell.
  const shown = runs.length > 24 ? runs.filter((_, i) => i < 6 || i > runs.length - 7 || Math.abs(i - runs.length / 2) < 6) : runs;
  const link = each => h("a", { href: state.link({ view: "number", value: each.code, from: from.name, type: to.name }) }, h("span", { class: "digits" }, shortened(each.text, 22)));
  const rows = shown.map(({ first, last, events }) => h("tr", {},
    h("td", {}, link(first)), h("td", {}, first.text === last.text ? "" : link(last)),
    h("td", { class: "digits" }, first.error ? "" : first === last || first.result_text === last.result_text ? shortened(first.result_text, 18) : `${shortened(first.result_text, 18)} … ${shortened(last.result_text, 18)}`),
    h("td", {}, [...events].map(badge))));
  const lossless = outcomes.every(each => each.event === "exact");
  const rounded = outcomes.every(each => kept.has(each.event));
  const verdict = lossless ? `Every number of ${from.name} is a number of ${to.name}: nothing is lost.`
    : rounded ? `All numbers stay in range; some are rounded.` : `Some numbers of ${from.name} leave the range of ${to.name}.`;
  return h("section", { class: "card", "aria-label": "What happens" }, h("h2", {}, `${from.name} → ${to.name}`), h("p", { class: `badge large ${lossless ? "good" : rounded ? "mild" : "warn"}` }, verdict),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Ranges of sources and their results" }, h("table", {},
      h("thead", {}, h("tr", {}, ["sources from", "to", "become", "what happens"].map(text => h("th", { scope: "col" }, text)))), h("tbody", {}, rows))),
    shown.length < runs.length && h("p", { class: "note" }, `${runs.length - shown.length} more ranges in between.`));
}

function chart(from, to, outcomes) {
  const points = outcomes.filter(each => each.value > 0 && Number.isFinite(each.value) && Number.isFinite(each.result));
  const positive = points.filter(each => each.result > 0);
  if (positive.length < 2) return undefined;
  const exponents = points.map(each => Math.log2(each.value));
  const results = positive.map(each => Math.log2(each.result));
  const clip = e => Math.max(-160, Math.min(160, e));
  const x = [Math.floor(clip(exponents[0])), Math.ceil(clip(exponents[exponents.length - 1]))];
  const y = [Math.floor(clip(results.reduce((a, b) => Math.min(a, b)))) - 1, Math.ceil(clip(results.reduce((a, b) => Math.max(a, b)))) + 1];
  const tone = event => color({ good: "good", mild: "exponent", warn: "warn", bad: "bad" }[toneOf(event)]);
  const draw = (context, width, height) => {
    const axes = logAxes(context, width, height, { x, y, x_label: `${from.name} above 0`, y_label: to.name });
    points.forEach((each, i) => {
      if (exponents[i] < x[0] || exponents[i] > x[1]) return;
      context.fillStyle = tone(each.event);
      const place = each.result > 0 ? axes.y(Math.max(y[0], Math.log2(each.result))) : height - 34;
      context.fillRect(axes.x(exponents[i]) - 1.5, place - 1.5, 3, 3);
    });
  };
  const pick = (px, _py, width) => {
    const e = x[0] + (px - 52) / (width - 60) * (x[1] - x[0]);
    const best = points.reduce((a, b) => (Math.abs(Math.log2(b.value) - e) < Math.abs(Math.log2(a.value) - e) ? b : a));
    return `${shortened(best.text, 24)} becomes ${shortened(best.result_text, 24)}: ${best.event}`;
  };
  const events = [...new Set(points.map(each => each.event))];
  return h("section", { "aria-label": "Results against sources" }, h("h2", {}, "Results against sources"), h("p", { class: "legend" }, events.map(badge)),
    canvas({ height: 300, label: `results in ${to.name} of numbers of ${from.name}: ${events.join(", ")}`, draw, pick }));
}

// The opsets of ONNX side by side where they differ.
function versions(engine, state, from, to, outcomes, options) {
  const newest = engine.description.cast_options.options.find(option => option.name === "opset").zero_means;
  const step = Math.max(1, Math.floor(outcomes.length / 60));
  const samples = outcomes.filter((each, i) => i % step === 0 || !Number.isFinite(each.value) || classOf(each) !== classOf(outcomes[i - 1] ?? each) || classOf(each) !== classOf(outcomes[i + 1] ?? each)).slice(0, 160);
  const groups = [];
  for (let opset = 1; opset <= newest; ++opset) {
    const known = Object.fromEntries(Object.entries(options).filter(([name]) => opset >= engine.description.cast_options.options.find(o => o.name === name).since_opset));
    const results = samples.map(each => {
      const [{ results: [row] }] = engine.explain(each.code, { from: from.name, to: to.name, options: { ...known, opset } });
      return row.error ? "not yet" : row.shortest_value;
    });
    const key = results.join();
    const last = groups[groups.length - 1];
    if (last?.key === key) last.to = opset;
    else groups.push({ key, results, from: opset, to: opset });
  }
  const there = groups.filter(group => group.results.some(text => text !== "not yet"));
  const heading = h("h2", {}, "Versions of ONNX");
  if (there.length === 0) return h("section", {}, heading, h("p", {}, "No version of Cast has this pair."));
  const span = group => (group.from === group.to ? `opset ${group.from}` : `opset ${group.from} to ${group.to}`);
  if (there.length === 1) {
    return h("section", { "aria-label": "Versions of ONNX" }, heading, h("p", {}, there[0].from === 1 ? `Cast gives the same in every version, ${span(there[0])}.` : `Cast has this pair since opset ${there[0].from}, with the same results in every version since.`));
  }
  const rows = samples.map((each, i) => [each, there.map(group => group.results[i])]).filter(([, results]) => new Set(results).size > 1).slice(0, 14);
  return h("section", { "aria-label": "Versions of ONNX" }, heading, h("p", { class: "note" }, "Sources whose result is not the same in all versions:"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Results by version of ONNX" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, from.name), there.map(group => h("th", { scope: "col" }, span(group))))),
      h("tbody", {}, rows.map(([each, results]) => h("tr", {}, h("th", { scope: "row" }, h("a", { href: state.link({ view: "number", value: each.code, from: from.name, type: to.name }) }, shortened(each.text, 24))), results.map(text => h("td", { class: "digits" }, shortened(text, 20)))))))));
}

export const shortName = name => name.replace(/^float\d+_/, "").replace("bfloat", "bf").replace("float", "f").replace("uint", "u").replace("int", "i");

const fates = [
  ["=", "good", "every number stays as it is"],
  ["≈", "mild", "numbers are rounded"],
  ["0", "mild", "numbers become zero"],
  ["⊤", "warn", "numbers out of range become its end"],
  ["∞", "bad", "numbers out of range become infinity or NaN"],
  ["↻", "bad", "numbers out of range wrap"],
  ["!", "bad", "numbers out of range are refused"],
];
const cache = new Map();

// The worst that can happen to a finite number of `from`, as an index of fates; -1 where Cast has no such pair.
function fate(engine, from, to, options, codes, values) {
  let results, again;
  try {
    const bytes = engine.cast(packed(from, codes), from.name, to.name, codes.length, options);
    results = new Float64Array(engine.cast(bytes, to.name, "float64", codes.length).buffer);
    again = from.bits === 64 && from.family === "integer" && engine.cast(bytes, to.name, from.name, codes.length, { out_of_range: "saturate" });
  } catch (error) {
    return error.code === "out_of_range" ? 6 : -1;
  }
  const back = again && new BigUint64Array(again.buffer);
  let worst = 0;
  for (let i = 0; i < codes.length; ++i) {
    const [value, result] = [values[i], results[i]];
    if (!Number.isFinite(value) || (value === result && (!back || back[i] === BigInt(codes[i])))) continue;
    let found = 1;
    if (to.family === "bool") {
      worst = Math.max(worst, 1);
      continue;
    }
    if (!Number.isFinite(result)) found = 4;
    else if (value > to.largest || value < to.lowest) found = to.family !== "integer" || result === (value > to.largest ? to.largest : to.lowest) ? 3 : 5;
    else if (result === 0 && Math.abs(value) > 0) found = 2;
    worst = Math.max(worst, found);
  }
  return worst;
}

function matrix(engine, state, types, from, to, options) {
  const key = JSON.stringify(options);
  if (!cache.has(key)) {
    cache.clear();
    cache.set(key, types.map(source => {
      const ranks = new Set(sampledCodes(source, Math.min(600, 2 ** source.bits)).map(BigInt));
      if (source.bits > 8) for (const target of types) for (const limit of limitsOf(target)) around(engine, source, limit).forEach(rank => ranks.add(codeAt(source, rank)));
      const codes = [...ranks];
      const values = valuesOf(engine, source, codes);
      return types.map(target => fate(engine, source, target, options, codes, values));
    }));
  }
  const rows = cache.get(key).map((row, i) => h("tr", {}, h("th", { scope: "row" }, shortName(types[i].name)), row.map((found, j) => {
    const [sign, tone, text] = found < 0 ? ["", "none", "no such Cast at this opset"] : fates[found];
    const chosen = types[i] === from && types[j] === to;
    return h("td", { class: `fate ${tone} ${chosen ? "chosen" : ""}` }, h("a", { href: state.link({ source: types[i].name, type: types[j].name }), tabindex: chosen ? 0 : -1, title: `${types[i].name} to ${types[j].name}: ${text}`, "aria-label": `${types[i].name} to ${types[j].name}: ${text}` }, sign));
  })));
  return h("section", { "aria-label": "All pairs" }, h("h2", {}, "All pairs"),
    h("p", { class: "legend" }, fates.map(([sign, tone, text]) => h("span", {}, h("span", { class: `fate-key ${tone}` }, sign), ` ${text}`))),
    h("p", { class: "note" }, "Rows are sources, columns targets; the worst that can happen to a finite number, with the options above. Arrow keys move."),
    h("div", { class: "scroll", role: "region", "aria-label": "Matrix of all pairs", tabindex: 0 }, h("table", { class: "matrix", onkeydown: moveInMatrix },
      h("thead", {}, h("tr", {}, h("td"), types.map(type => h("th", { scope: "col" }, h("span", {}, shortName(type.name)))))), h("tbody", {}, rows))));
}

export function moveInMatrix(event) {
  const cell = event.target.closest("td");
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (!cell || !step) return;
  const row = cell.parentElement.parentElement.rows[cell.parentElement.sectionRowIndex + step[0]];
  const next = row?.cells[cell.cellIndex + step[1]]?.querySelector("a");
  if (!next) return;
  event.preventDefault();
  next.focus();
}
