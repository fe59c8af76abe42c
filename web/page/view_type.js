// SPDX-License-Identifier: Apache-2.0
// One type: its facts, all its numbers on a line, all codes, its precision beside another type's.

import { canvas, color, logAxes, powerText } from "./charts.js";
import { codeAt, hex, isSigned, packed, rankOf, sampledCodes, valuesOf } from "./codes.js";
import { powerOfTwo, shortened } from "./decimal.js";
import { h, labelled, select, typeSelect } from "./elements.js";

export const title = "One type";

const line_samples = 4096;

export function show(engine, state) {
  const type = engine.byName.get(state.get("type")) ?? engine.types[0];
  const numeric = engine.types.filter(each => each.bits > 0);
  const other = engine.byName.get(state.get("beside", type.name === "bfloat16" ? "float16" : "bfloat16"));
  const scale = state.get("scale_of_line", "linear");
  const parts = [h("section", { class: "controls", "aria-label": "The type" }, h("div", { class: "fields" },
    labelled("Type", typeSelect(engine.types, type.name, name => state.set({ type: name }), { id: "type" })),
    labelled("beside", typeSelect(numeric, other?.name, beside => state.set({ beside }), { id: "beside" }))))];
  parts.push(factsCard(engine, state, type));
  if (type.bits === 0) return parts;
  const codes = sampledCodes(type, type.bits <= 16 ? 65536 : line_samples);
  const values = valuesOf(engine, type, codes);
  parts.push(line(type, codes, values, scale, state));
  if (type.bits > 1 && type.family !== "bool") parts.push(precision(engine, type, other));
  if (type.bits <= 8) parts.push(codeTable(engine, state, type));
  return parts;
}

function factsCard(engine, state, type) {
  const facts = [];
  const fact = (name, ...content) => facts.push(h("div", { class: "fact" }, h("dt", {}, name), h("dd", {}, content)));
  const number = value => powerOfTwo(value) ?? String(value);
  fact("bits", type.bits === 0 ? "any" : type.bits);
  if (type.family === "float") {
    fact("bias", type.bias);
    fact("largest", number(type.largest));
    fact("smallest above 0", number(type.smallest_positive));
    fact("numbers in each power of two", 2 ** type.mantissa_bits);
  } else if (type.bits > 0) {
    fact("lowest", number(type.lowest));
    fact("largest", number(type.largest));
  }
  fact("special codes", type.special_codes || "none");
  fact("in ONNX since opset", type.since_opset || "not in ONNX");
  return h("section", { class: "card", "aria-label": type.name },
    h("h2", {}, type.name, h("a", { class: "aside", href: state.link({ view: "number", type: type.name }) }, "one number in it")),
    type.family === "float" && layoutBar(type),
    h("dl", { class: "facts" }, facts),
    h("p", { class: "note" }, "also written ", type.spellings.slice(1).map((name, i) => [i ? ", " : "", h("code", {}, name)])),
    type.family === "float" && specials(engine, state, type));
}

function layoutBar(type) {
  const parts = [["sign", isSigned(type) ? 1 : 0], ["exponent", type.exponent_bits], ["mantissa", type.mantissa_bits]];
  return h("div", { class: "layout-bar", role: "img", "aria-label": parts.filter(p => p[1]).map(([kind, n]) => `${n} ${kind}`).join(", ") },
    parts.filter(([, count]) => count).map(([kind, count]) => h("span", { class: `bit ${kind}`, style: `flex:${count}` }, `${count} ${kind}`)));
}

// Codes that are of interest, each a link.
function specials(engine, state, type) {
  const signed = isSigned(type);
  const all = [["zero", "0"], ["minus zero", "-0"], ["one", "1"], ["smallest", type.smallest_positive], ["smallest normal", 2 ** (1 - type.bias)],
    ["largest", type.largest], ["lowest", signed ? -type.largest : undefined], ["infinity", type.has_infinity ? "inf" : undefined], ["NaN", type.has_nan ? "nan" : undefined]];
  const rows = all.filter(([, value]) => value !== undefined).map(([name, value]) => {
    const [{ results: [row] }] = engine.explain(String(value), { to: type.name });
    const there = !row.error && (row.events.includes("exact") || name === "NaN");
    return there && h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, h("a", { href: state.link({ view: "number", type: type.name, value: row.code }) }, h("code", {}, row.code))),
      h("td", {}, h("code", { class: "bits" }, h("span", { class: "sign" }, row.sign_bits), " ", h("span", { class: "exponent" }, row.exponent_bits), " ", h("span", { class: "mantissa" }, row.mantissa_bits))),
      h("td", { class: "digits" }, shortened(row.exact_value, 32)));
  });
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Special codes" }, h("table", {},
    h("thead", {}, h("tr", {}, ["number", "code", "bits", "exact value"].map(text => h("th", { scope: "col" }, text)))), h("tbody", {}, rows)));
}

function line(type, codes, values, scale, state) {
  const finite = [...values].map((value, i) => [value, codes[i]]).filter(([value]) => Number.isFinite(value)).sort((a, b) => a[0] - b[0]);
  const logarithmic = scale === "logarithmic";
  const magnitudes = finite.map(([value]) => Math.abs(value)).filter(value => value > 0);
  const [low, high] = [Math.log2(Math.min(...take(magnitudes, Math.min))), Math.log2(Math.max(...take(magnitudes, Math.max)))];
  const [least, most] = [finite[0][0], finite[finite.length - 1][0]];
  const signed = least < 0;
  const margin = 16;
  const place = (value, width) => {
    const room = width - 2 * margin;
    if (!logarithmic) return margin + (value / most - least / most) / (1 - least / most || 1) * room;
    const share = value === 0 ? 0 : (Math.log2(Math.abs(value)) - low + (high - low) * 0.06) / ((high - low) * 1.06 || 1);
    return signed ? margin + room / 2 * (1 + Math.sign(value) * share) : margin + room * share;
  };
  const draw = (context, width, height) => {
    const middle = height / 2 + 2;
    context.strokeStyle = color("edge");
    context.beginPath();
    context.moveTo(margin, middle);
    context.lineTo(width - margin, middle);
    context.stroke();
    context.globalAlpha = finite.length > 2000 ? 0.25 : finite.length > 300 ? 0.6 : 1;
    context.lineWidth = finite.length > 300 ? 1 : 2;
    for (const [value] of finite) {
      context.strokeStyle = value < 0 ? color("sign") : value === 0 ? color("ink") : color("exponent");
      const x = place(value, width);
      context.beginPath();
      context.moveTo(x, middle - 22);
      context.lineTo(x, middle + 22);
      context.stroke();
    }
    context.globalAlpha = 1;
    context.fillStyle = color("muted");
    const label = (value, text, align) => {
      context.textAlign = align;
      context.fillText(text, place(value, width), middle + 40);
    };
    if (finite.length > 1) label(least, numberText(least), "left"), label(most, numberText(most), "right");
    if (signed) label(0, "0", "center");
    if (logarithmic && width > 500) {
      for (const e of [Math.round(low + (high - low) * 0.35), Math.round(low + (high - low) * 0.7)]) {
        label(2 ** e, powerText(e), "center");
        if (signed) label(-(2 ** e), `-${powerText(e)}`, "center");
      }
    }
  };
  const pick = (x, _y, width) => {
    let best = finite[0];
    let [from, to] = [0, finite.length - 1];
    while (from < to) {  // places ascend with values
      const between = from + to >> 1;
      if (place(finite[between][0], width) < x) from = between + 1;
      else to = between;
    }
    for (const candidate of [finite[from], finite[from - 1]]) {
      if (candidate && Math.abs(place(candidate[0], width) - x) <= Math.abs(place(best[0], width) - x)) best = candidate;
    }
    return `${hex(type, BigInt(best[1]))} is ${best[0]}`;
  };
  const all = type.bits <= 16;
  return h("section", { "aria-label": "Number line" },
    h("h2", {}, all ? `All ${finite.length} finite numbers on a line` : `${finite.length} of its numbers on a line`),
    labelled("scale", select(["linear", "logarithmic"], scale, value => state.set({ scale_of_line: value === "linear" ? undefined : value }, { replace: true }), { id: "scale_of_line" }), { class: "field inline" }),
    canvas({ height: 110, label: `${type.name}: ${finite.length} numbers from ${least} to ${most}, ${scale}`, draw, pick }));
}

// Math.min and Math.max take some thousand arguments only.
const take = (numbers, best) => [numbers.reduce((a, b) => best(a, b), numbers[0])];

const numberText = value => powerOfTwo(value) ?? (Math.abs(value) >= 1e6 ? value.toExponential(2) : String(value));

// [exponent, bits of precision] at numbers above 0: -log2 of the gap to the next number, over the number.
export function precisionOf(engine, type) {
  const codes = sampledCodes(type, type.bits <= 16 ? 65536 : 6000).filter(code => rankOf(type, BigInt(code)) > 0n);
  const next = codes.map(code => codeAt(type, rankOf(type, BigInt(code)) + 1n) ?? code);
  const [here, above] = [valuesOf(engine, type, codes), valuesOf(engine, type, next)];
  const points = [];
  for (let i = 0; i < codes.length; ++i) {
    const gap = above[i] - here[i];
    if (here[i] > 0 && Number.isFinite(gap) && gap > 0) points.push([Math.log2(here[i]), Math.log2(here[i]) - Math.log2(gap)]);
  }
  return points.sort((a, b) => a[0] - b[0]);
}

function precision(engine, type, other) {
  const series = [[type, "exponent"], ...(other && other !== type && other.bits > 1 && other.family !== "bool" ? [[other, "sign"]] : [])]
    .map(([each, tone]) => ({ type: each, tone, points: precisionOf(engine, each) })).filter(each => each.points.length > 1);
  const xs = series.flatMap(({ points }) => [points[0][0], points[points.length - 1][0]]);
  const clipped = value => Math.max(-160, Math.min(160, value));
  const x = [Math.floor(clipped(Math.min(...xs))), Math.ceil(clipped(Math.max(...xs)))];
  const top = Math.ceil(Math.max(...series.map(({ points }) => points.reduce((a, b) => Math.max(a, b[1]), 0)))) + 1;
  const draw = (context, width, height) => {
    const axes = logAxes(context, width, height, { x, y: [0, top], x_label: "magnitude", y_label: "bits", y_text: String });
    for (const { points, tone } of series) {
      context.strokeStyle = color(tone);
      context.lineWidth = 2;
      context.beginPath();
      points.filter(([e]) => e >= x[0] && e <= x[1]).forEach(([e, bits], i) => context[i ? "lineTo" : "moveTo"](axes.x(e), axes.y(Math.max(0, bits))));
      context.stroke();
    }
  };
  return h("section", { "aria-label": "Precision" }, h("h2", {}, "How dense it is"),
    h("p", { class: "legend" }, series.map(({ type: each, tone }) => h("span", { class: tone }, each.name))),
    canvas({ height: 230, label: `bits of precision against magnitude: ${series.map(s => s.type.name).join(" and ")}`, draw }),
    h("p", { class: "note" }, "Bits of precision at each magnitude: how much smaller than the number itself the gap to the next one is. Where the line ends, so does the range."));
}

function codeTable(engine, state, type) {
  const count = 2 ** type.bits;
  const columns = Math.min(16, Math.max(2, count / 8));
  const codes = Array.from({ length: count }, (_, i) => i);
  const values = valuesOf(engine, type, codes);
  const strings = [...values].map((value, i) => {
    if (Number.isNaN(value)) return "NaN";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    if (value === 0) return Object.is(value, -0) ? "-0" : "0";
    const size = Math.abs(value);
    if (size < 0.001 || size > 99999) return powerOfTwo(value) ?? value.toExponential(2);
    return String(Number(value.toPrecision(4)));
  });
  const rows = Array.from({ length: count / columns }, (_, row) => h("tr", {},
    h("th", { scope: "row" }, h("code", {}, hex(type, BigInt(row * columns)))),
    Array.from({ length: columns }, (_, column) => {
      const code = row * columns + column;
      const value = values[code];
      const kind = Number.isNaN(value) ? "bad" : !Number.isFinite(value) ? "warn" : value === 0 ? "zero" : value < 0 ? "negative" : "positive";
      return h("td", { class: `cell ${kind}` }, h("a", { href: state.link({ view: "number", type: type.name, value: hex(type, BigInt(code)), from: undefined }), title: `${hex(type, BigInt(code))} = ${value}` }, strings[code]));
    })));
  const heads = Array.from({ length: columns }, (_, column) => h("th", { scope: "col" }, h("code", {}, `+${column.toString(16).toUpperCase()}`)));
  return h("section", { "aria-label": "All codes" }, h("h2", {}, `All ${count} codes`),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of all codes" }, h("table", { class: "codes" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "code"), heads)), h("tbody", {}, rows))));
}
