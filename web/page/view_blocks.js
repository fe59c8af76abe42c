// SPDX-License-Identifier: Apache-2.0
// Blocks that share scales: the same weights under each scheme and recipe, code by code.

import { quantized } from "./block_losses.js";
import { canvas, color } from "./charts.js";
import { unpacked } from "./codes.js";
import { shortened } from "./decimal.js";
import { h, labelled, select } from "./elements.js";
import { kernelEngine } from "./kernels.js";

export const title = "Blocks";

const shown_elements = 64;
const image_side = 256;
const most_numbers = 16384;  // of a file
const kept = { root: null, kernels: null, recipes: null, image: null, file: null, ready: null, weights: null, results: null };

// The first rows of a tensor that the view of files has open.
export function keepWeights(name, { rows, columns, values }) {
  const [shown_rows, shown_columns] = [Math.max(1, Math.min(rows, Math.floor(most_numbers / columns))), Math.min(columns, most_numbers)];
  kept.file = { name, rows: shown_rows, columns: shown_columns, values: values.slice(0, shown_rows * shown_columns) };
}

export function show(engine, state) {
  kept.root ??= h("div", {});
  if (kept.kernels) {
    render(engine, state);
  } else {
    kept.root.replaceChildren(h("p", { role: "status" }, "loading the kernels"));
    kept.ready ??= kernelEngine(engine).then(kernels => {
      kept.recipes = kernels.recipes();
      kept.kernels = kernels;
    });
    kept.ready.then(() => render(engine, state), error => kept.root.replaceChildren(h("p", { class: "error", role: "alert" }, error.message)));
  }
  return [kept.root];
}

// Reproducible pseudorandom numbers of the normal distribution.
function* normal(seed) {
  let word = (Number(seed) || 1) >>> 0;
  const uniform = () => {
    word = word + 0x6d2b79f5 >>> 0;
    let t = Math.imul(word ^ word >>> 15, 1 | word);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
  };
  for (;;) yield Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

function madeUpImage() {
  const values = new Float32Array(image_side * image_side);
  for (let y = 0; y < image_side; ++y) {
    for (let x = 0; x < image_side; ++x) {
      const [u, v] = [x / image_side - 0.5, y / image_side - 0.5];
      const ball = Math.hypot(u + 0.1, v + 0.05) < 0.3 ? Math.max(0, 1 - 2.6 * Math.hypot(u + 0.18, v + 0.15)) : 0;
      const rings = 0.5 + 0.5 * Math.sin(120 * (u * u + v * v));
      values[y * image_side + x] = Math.min(1, ball > 0 ? 0.15 + ball : 0.08 + 0.5 * (0.2 + 0.8 * y / image_side) * rings);
    }
  }
  return values;
}

function weightsOf(state) {
  const source = state.get("weights", "random");
  if (source === "own") {
    const numbers = state.get("numbers", "0.1 -0.35 0.02 1.5 -0.7 0.004 0.25 -0.06").split(/[\s,;]+/).filter(Boolean).map(Number);
    const columns = Math.max(1, Math.min(4096, numbers.length));
    return { rows: 1, columns, values: Float32Array.from(numbers.slice(0, columns)) };
  }
  if (source === "image") return { rows: image_side, columns: image_side, values: kept.image ?? madeUpImage(), isImage: true };
  if (source === "file" && kept.file) return kept.file;
  const columns = Math.max(1, Math.min(4096, Number(state.get("count", 256)) || 256));
  const numbers = normal(state.get("seed", 1));
  const spread = Number(state.get("spread", 0.02)) || 0.02;
  const values = Float32Array.from({ length: columns }, () => spread * numbers.next().value);
  if (state.get("outliers") === "true") for (let i = 5; i < columns; i += 41) values[i] *= 25;
  return { rows: 1, columns, values };
}

// Keeps results while the weights are the same.
function useWeights(weights) {
  const { rows, columns, values } = kept.weights ?? {};
  if (rows === weights.rows && columns === weights.columns && values.every((value, i) => Object.is(value, weights.values[i]))) return;
  kept.weights = weights;
  kept.results = new Map();
}

function resultOf(recipe) {
  if (!kept.results.has(recipe)) kept.results.set(recipe, { recipe, ...quantized(kept.kernels, recipe, kept.weights) });
  return kept.results.get(recipe);
}

function render(engine, state) {
  const weights = weightsOf(state);
  useWeights(weights);
  // "nvfp4:modelopt", or "nvfp4": the default recipe of the scheme, its first.
  const find = text => kept.recipes.find(recipe => nameOf(recipe) === text || recipe.scheme === text);
  const [first, second] = [find(state.get("scheme")) ?? find("nvfp4"), find(state.get("other")) ?? find("mxfp4")].map(resultOf);
  const table = h("section", { "aria-label": "All schemes and recipes" });
  kept.root.replaceChildren(...[
    controls(state, weights),
    h("section", { "aria-label": "Side by side" }, h("div", { class: "pair" }, card(state, first, "scheme"), card(state, second, "other"))),
    weights.isImage && images(weights, first, second),
    plot(weights, first, second), elements(engine, weights, first, second), table].filter(Boolean));
  compareAll(table, state, first, second);
}

// Fills the table of all recipes, a few at a time, so that the page answers meanwhile.
async function compareAll(table, state, first, second) {
  const heading = h("h2", {}, "All schemes and recipes");
  const { results } = kept;
  for (let next = 0; next < kept.recipes.length;) {
    const until = performance.now() + 40;
    while (next < kept.recipes.length && performance.now() < until) resultOf(kept.recipes[next++]);
    if (next === kept.recipes.length) break;
    table.replaceChildren(heading, h("p", { role: "status" }, `comparing ${next} of ${kept.recipes.length} recipes`));
    await new Promise(resolve => setTimeout(resolve));
    if (kept.results !== results || !table.isConnected) return;
  }
  table.replaceChildren(heading, everything(state, kept.recipes.map(resultOf), first, second));
}

function controls(state, weights) {
  const source = state.get("weights", "random");
  const choices = [["random", "random numbers"], ["own", "numbers of your own"], ["image", "an image"], ...(kept.file ? [["file", kept.file.name]] : [])];
  const set = name => event => state.set({ [name]: event.target.value }, { replace: true });
  const field = (name, text, value, size) => labelled(text, h("input", { type: "text", id: name, value, size, onchange: set(name), autocomplete: "off" }));
  const own = source === "own" && labelled("Numbers", h("textarea", { id: "numbers", rows: 2, oninput: set("numbers"), spellcheck: "false" }, state.get("numbers", "0.1 -0.35 0.02 1.5 -0.7 0.004 0.25 -0.06")), { class: "field wide" });
  const random = source === "random" && [
    field("count", "how many", state.get("count", "256"), 5), field("spread", "standard deviation", state.get("spread", "0.02"), 6), field("seed", "seed", state.get("seed", "1"), 4),
    h("label", { class: "check" }, h("input", { type: "checkbox", id: "outliers", checked: state.get("outliers") === "true", onchange: event => state.set({ outliers: event.target.checked || undefined }, { replace: true }) }), " outliers")];
  const image = source === "image" && labelled("another image", h("input", { type: "file", id: "image", accept: "image/*", onchange: event => readImage(event.target.files[0], state) }));
  return h("section", { class: "controls", "aria-label": "The weights" },
    h("div", { class: "fields" }, labelled("Weights", select(choices, source, value => state.set({ weights: value === "random" ? undefined : value }), { id: "weights" })), random, own, image),
    h("p", { class: "note" }, `${weights.rows * weights.columns} float32 numbers. Each scheme stores codes of a few bits, and a scale for each block of them.`));
}

async function readImage(file, state) {
  const bitmap = await createImageBitmap(file);
  const context = h("canvas", { width: image_side, height: image_side }).getContext("2d");
  const side = Math.min(bitmap.width, bitmap.height);  // its middle
  context.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2, side, side, 0, 0, image_side, image_side);
  const { data } = context.getImageData(0, 0, image_side, image_side);
  kept.image = Float32Array.from({ length: image_side * image_side }, (_, i) => (0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]) / 255);
  state.set({ weights: "image", image: (Number(state.get("image", 0)) || 0) + 1 }, { replace: true });
}

const nameOf = ({ scheme, recipe }) => `${scheme}:${recipe}`;

function card(state, each, key) {
  const { recipe, made, error, bits, snr, largest } = each;
  const choice = select(kept.recipes.map(one => [nameOf(one), `${one.scheme}, ${one.recipe}`]), nameOf(recipe), value => state.set({ [key]: value }), { id: key, "aria-label": key === "scheme" ? "First scheme and recipe" : "Second scheme and recipe" });
  const facts = made && [["bits a number, scales included", bits.toFixed(2)], ["signal to noise", `${snr.toFixed(2)} dB`], ["largest error", largest.toPrecision(4)], ["layout", made.spelling], made.global_scale !== undefined && ["scale of the tensor", made.global_scale.toPrecision(9)]].filter(Boolean);
  return h("div", { class: `card ${key}` }, choice,
    error ? h("p", { class: "error" }, error) : h("dl", {}, facts.map(([name, value]) => [h("dt", {}, name), h("dd", { class: "digits" }, value)])),
    h("p", { class: "note" }, h("b", {}, "scale s: "), recipe.scale), h("p", { class: "note" }, h("b", {}, "code: "), recipe.element));
}

function images(weights, first, second) {
  const picture = (values, text) => {
    const element = h("canvas", { width: image_side, height: image_side, class: "pixels", role: "img", "aria-label": text });
    const context = element.getContext("2d");
    const data = context.createImageData(image_side, image_side);
    values.forEach((value, i) => data.data.set([255 * value, 255 * value, 255 * value, 255], 4 * i));
    context.putImageData(data, 0, 0);
    return h("figure", {}, element, h("figcaption", {}, text));
  };
  const of = each => each.made && picture(each.made.decoded, `${each.recipe.scheme}, ${each.recipe.recipe}: ${each.snr.toFixed(1)} dB`);
  return h("section", { "aria-label": "The image", class: "images" }, picture(weights.values, "float32"), of(first), of(second));
}

function plot({ values }, first, second) {
  const count = Math.min(values.length, shown_elements);
  const shown = [first, second].filter(each => each.made);
  const magnitudes = [...values.slice(0, count)].map(Math.abs).sort((a, b) => a - b);
  // Outliers reach the edge, so that the others are seen, too.
  const most = Math.max(Math.min(magnitudes[count - 1], 6 * magnitudes[count >> 1] || Infinity), 1e-30);
  const is_cut = magnitudes[count - 1] > most;
  const draw = (context, width, height) => {
    const x = i => 8 + (i + 0.5) * (width - 16) / count;
    const y = value => height / 2 - Math.max(-1, Math.min(1, value / most)) * (height / 2 - 12);
    const each = (width - 16) / count;
    shown.forEach(({ made }, k) => {
      if (!made.block_columns) return;
      context.fillStyle = color("edge");
      for (let i = 0; i < count; i += made.block_columns) context.fillRect(x(i) - each / 2, k ? height - 5 : 0, made.block_columns * each - 2, 4);
    });
    context.fillStyle = color("mild");
    context.globalAlpha = 0.35;
    for (let i = 0; i < count; ++i) context.fillRect(x(i) - each * 0.35, Math.min(y(0), y(values[i])), each * 0.7, Math.max(1, Math.abs(y(values[i]) - y(0))));
    context.globalAlpha = 1;
    shown.forEach(({ made }, k) => {
      context.fillStyle = color(k ? "sign" : "exponent");
      for (let i = 0; i < count; ++i) context.fillRect(x(i) - each * 0.45 + k * each * 0.45, y(made.decoded[i]) - 1.5, each * 0.45, 3);
    });
  };
  return h("section", { "aria-label": "Weights and what they become" }, h("h2", {}, `The first ${count} weights and what they become`),
    h("p", { class: "legend" }, h("span", {}, "bars: float32"), shown.map((each, k) => h("span", { class: k ? "sign" : "exponent" }, `${each.recipe.scheme}, ${each.recipe.recipe}`)), h("span", { class: "muted" }, `lines at the edge: blocks${is_cut ? `; larger than ${most.toPrecision(2)}: at the edge` : ""}`)),
    canvas({ height: 220, label: `${count} weights and their quantized values`, draw }));
}

// The scale of each block of the first row, as text.
function scalesOf(engine, { made }, columns) {
  if (!made?.scale_type) return null;
  const type = engine.byName.get(made.scale_type);
  const count = made.scales.length * 8 / type.bits;
  const codes = unpacked(type, made.scales, count);
  const values = new Float32Array(engine.cast(made.scales, type.name, "float32", count).buffer);
  const place = block => (made.spelling === "comfyui" && made.block_columns ? Math.floor(block / 4) * 512 + block % 4 : block);
  const length = made.block_columns || columns;
  return Array.from({ length: Math.ceil(columns / length) }, (_, block) => ({ length, code: type.bits <= 8 ? `0x${codes[place(block)].toString(16).padStart(2, "0").toUpperCase()}` : "", value: values[place(block)] }));
}

function elements(engine, { values, columns }, first, second) {
  const count = Math.min(columns, shown_elements);
  const sides = [first, second].filter(each => each.made).map(each => ({ ...each, scales: scalesOf(engine, each, columns) }));
  const heads = sides.map(({ recipe }) => [h("th", { scope: "col" }, "scale s"), h("th", { scope: "col" }, `${recipe.scheme} code`), h("th", { scope: "col" }, "number"), h("th", { scope: "col" }, "error")]);
  const cells = ({ made, scales }, i) => {
    const block = scales?.[0] && i % scales[0].length === 0 ? scales[i / scales[0].length] : null;
    const scale = block ? h("td", { rowspan: Math.min(scales[0].length, count - i), class: "scale" }, block.code && h("code", {}, block.code), " ", h("span", { class: "digits" }, shortened(String(block.value), 14)))
      : scales ? null : h("td", { class: "muted" }, "inside");
    const code = made.elements?.[i];
    const bits = Math.max(1, Math.ceil((made.bits || 8) / 4));
    const error = made.decoded[i] - values[i];
    const share = Math.min(1, Math.abs(error) / (Math.abs(values[i]) || 1));
    return [scale, h("td", {}, code === undefined ? "" : h("code", {}, `0x${(code & 2 ** (made.bits || 8) - 1).toString(16).toUpperCase().padStart(bits, "0")}`)),
      h("td", { class: "digits" }, String(Number(made.decoded[i].toPrecision(6)))), h("td", { class: "digits heat", style: `--share:${share.toFixed(3)}` }, error === 0 ? "0" : error.toExponential(2))];
  };
  return h("section", { "aria-label": "Code by code" }, h("h2", {}, "Code by code"),
    h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Codes, scales and errors" }, h("table", { class: "elements" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "weight"), heads)),
      h("tbody", {}, Array.from({ length: count }, (_, i) => h("tr", {}, h("th", { scope: "row", class: "digits" }, String(Number(values[i].toPrecision(7)))), sides.map(side => cells(side, i))))))),
    sides.some(({ made }) => !made.elements) && h("p", { class: "note" }, "GGUF keeps scales and codes in its own blocks: ", sides.filter(({ made }) => !made.elements).map(({ made, recipe }) => [h("b", {}, recipe.scheme), " ", h("code", {}, [...made.codes.slice(0, 40)].map(byte => byte.toString(16).padStart(2, "0")).join(" ")), " … "])));
}

function everything(state, results, first, second) {
  const best = Math.max(...results.map(each => (Number.isFinite(each.snr) ? each.snr : 0)));
  const rows = results.map(each => h("tr", { class: (each === first || each === second) && "chosen" },
    h("th", { scope: "row" }, h("a", { href: state.link({ scheme: nameOf(each.recipe) }) }, each.recipe.scheme)), h("td", {}, each.recipe.recipe),
    each.error ? h("td", { colspan: 4, class: "muted" }, each.error)
      : [h("td", { class: "digits" }, each.bits.toFixed(2)), h("td", {}, Number.isFinite(each.snr) ? h("span", { class: "meter", style: `--share:${Math.max(0, each.snr / best)}` }, `${each.snr.toFixed(2)} dB`) : "exact or not finite"), h("td", { class: "digits" }, each.largest.toPrecision(3)),
        h("td", {}, h("a", { href: state.link({ other: nameOf(each.recipe) }), "aria-label": `${each.recipe.scheme} ${each.recipe.recipe} beside the first` }, "beside"))]));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of schemes and recipes" }, h("table", {},
    h("thead", {}, h("tr", {}, ["scheme", "recipe", "bits a number", "signal to noise", "largest error", ""].map(text => (text ? h("th", { scope: "col" }, text) : h("td"))))), h("tbody", {}, rows)));
}
