// SPDX-License-Identifier: Apache-2.0
// A file of the person who looks: what is inside, what each type would lose, converted and saved. It stays on the computer.

import { canvas, color, powerText } from "./charts.js";
import { h, labelled, typeSelect } from "./elements.js";
import { startPagesWorker } from "./kernels.js";
import { optionsPanel } from "./options.js";
import { castOptionsOf } from "./state.js";
import { keepWeights } from "./view_blocks.js";

export const title = "Your file";

const targets = ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "float32", "float64"];
const most_rows = 400;

const kept = { root: null, call: null, file: null, opened: null, index: -1, study: null, filter: "" };

export function show(engine, state) {
  kept.root ??= h("div", {});
  render(engine, state);
  return [kept.root];
}

const sizeText = bytes => {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  const unit = Math.min(4, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3));
  return `${unit ? (bytes / 1000 ** unit).toPrecision(3) : bytes} ${units[unit]}`;
};

function render(engine, state) {
  const parts = [dropZone(engine, state)];
  if (kept.error) parts.push(h("p", { class: "error", role: "alert" }, kept.error));
  if (kept.busy) parts.push(h("p", { role: "status" }, kept.busy));
  if (kept.opened) parts.push(summary(), conversion(engine, state), tensorList(engine, state), studied(engine, state));
  kept.root.replaceChildren(...parts.filter(Boolean));
}

async function work(engine, state, message, body) {
  Object.assign(kept, { busy: message, error: null });
  render(engine, state);
  try {
    kept.call ??= await startPagesWorker(engine);
    await body(kept.call);
  } catch (error) {
    kept.error = error.message;
  }
  kept.busy = null;
  render(engine, state);
}

const open = (engine, state, file) => work(engine, state, `opening ${file.name}`, async call => {
  Object.assign(kept, { file, opened: null, index: -1, study: null, saved: null });
  kept.opened = await call("open", { file });
});

function dropZone(engine, state) {
  const take = files => files.length > 0 && open(engine, state, files[0]);
  const input = h("input", { type: "file", id: "file", accept: ".safetensors,.npy,.npz,.gguf,.onnx", onchange: event => take(event.target.files) });
  const zone = h("section", {
    class: "drop", "aria-label": "Choose a file",
    ondragover: event => { event.preventDefault(); zone.classList.add("over"); },
    ondragleave: () => zone.classList.remove("over"),
    ondrop: event => { event.preventDefault(); zone.classList.remove("over"); take(event.dataTransfer.files); },
  },
  h("p", {}, h("label", { for: "file" }, h("b", {}, "Drop a file here")), ", or choose one: ", input),
  h("p", { class: "note" }, ".safetensors, .npy, .npz, .gguf or .onnx. It is read by this page and goes nowhere else. ",
    h("button", { type: "button", class: "quiet", onclick: () => open(engine, state, sample()) }, "try a made-up one")));
  return zone;
}

// A small safetensors file: weights as layers have them, and some that are hard to narrow.
function sample() {
  const random = (seed => () => {
    seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0;
    return ((seed ^ seed >>> 13) >>> 0) / 2 ** 32;
  })(7);
  const normal = () => Math.sqrt(-2 * Math.log(random() + 1e-12)) * Math.cos(2 * Math.PI * random());
  const tensors = [
    ["model.embed.weight", [256, 128], () => 0.8 * normal()],
    ["model.layers.0.attention.weight", [128, 128], () => 0.02 * normal()],
    ["model.layers.0.mlp.weight", [512, 128], () => 0.02 * normal() * (random() < 0.002 ? 60 : 1)],
    ["model.layers.0.norm.weight", [128], () => 1 + 0.1 * normal()],
    ["optimizer.exp_avg_sq", [512, 128], () => 1e-9 * normal() ** 2],
  ];
  const arrays = tensors.map(([, shape, value]) => Float32Array.from({ length: shape.reduce((a, b) => a * b) }, value));
  let at = 0;
  const header = Object.fromEntries(tensors.map(([name, shape], i) => [name, { dtype: "F32", shape, data_offsets: [at, at += arrays[i].byteLength] }]));
  const text = JSON.stringify(header);
  const padded = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8));
  return new File([new BigUint64Array([BigInt(padded.length)]), padded, ...arrays], "made-up.safetensors");
}

function summary() {
  const { tensors, metadata, format } = kept.opened;
  const counts = new Map();
  for (const { type, scheme, foreign, count } of tensors) {
    const name = type ?? scheme?.toUpperCase() ?? foreign;
    counts.set(name, (counts.get(name) ?? 0) + count);
  }
  const numbers = tensors.reduce((sum, tensor) => sum + tensor.count, 0);
  return h("section", { class: "card", "aria-label": "The file" }, h("h2", {}, kept.file.name),
    h("p", {}, `${format}, ${sizeText(kept.file.size)}, ${tensors.length} tensors, ${numbers.toLocaleString("en")} numbers: `,
      [...counts].map(([name, count]) => h("span", { class: "badge mild" }, `${name} ${(100 * count / (numbers || 1)).toFixed(count === numbers ? 0 : 1)} %`))),
    metadata.length > 0 && h("details", {}, h("summary", {}, `${metadata.length} metadata`),
      h("dl", { class: "metadata" }, metadata.slice(0, 200).map(([key, value]) => [h("dt", {}, key), h("dd", { class: "digits" }, value.length > 300 ? `${value.slice(0, 300)}…` : value)]))));
}

function conversion(engine, state) {
  const to = targets.includes(state.get("to")) ? state.get("to") : "bfloat16";
  const status = h("p", { role: "status", class: "note" });
  if (kept.saved) status.append(...kept.saved);
  const bar = h("progress", { max: kept.file.size, value: 0, hidden: true, "aria-label": "Progress" });
  const run = async event => {
    const button = event.currentTarget;
    button.disabled = true;
    bar.hidden = false;
    const start = performance.now();
    try {
      const result = await kept.call("convert", { to, options: castOptionsOf(state, engine.description) }, { progress: read => { bar.value = read; } });
      const seconds = (performance.now() - start) / 1000;
      const name = kept.file.name.replace(/\.[a-z]+$/i, "") + `-${to}.safetensors`;
      kept.saved = [savedText(result, seconds), h("a", { href: URL.createObjectURL(result.blob), download: name, id: "download", class: "button" }, `Save ${name} (${sizeText(result.blob.size)})`)];
    } catch (error) {
      kept.saved = [h("span", { class: "error" }, error.message)];
    }
    render(engine, state);
  };
  return h("section", { class: "card", "aria-label": "Convert" }, h("h2", {}, "Convert"),
    h("div", { class: "fields" },
      labelled("floating-point tensors to", typeSelect(targets.map(name => engine.byName.get(name)), to, value => { kept.saved = null; state.set({ to: value }); }, { id: "to" })),
      h("button", { type: "button", class: "main", id: "convert", onclick: run }, "Convert to safetensors")),
    optionsPanel(engine, state, ["saturate", "scale", "out_of_range", "round_mode"]),
    bar, status);
}

function savedText({ report, converted, kept: others, blob }, seconds) {
  const events = [["saturated", "saturated"], ["overflowed", "overflowed"], ["underflowed_to_zero", "became zero"], ["nan_made", "became NaN"]]
    .filter(([name]) => report[name] > 0).map(([name, text]) => `${report[name].toLocaleString("en")} ${text}`);
  const ratio = Number.isFinite(report.snr_db) ? `, signal to noise ${report.snr_db.toFixed(1)} dB` : "";
  return `${converted} tensors converted, ${others} kept, ${seconds.toFixed(2)} s, ${(kept.file.size / 1e6 / seconds).toFixed(0)} MB/s${ratio}${events.length ? `; of ${report.count.toLocaleString("en")} numbers ${events.join(", ")}` : ""}. `;
}

function tensorList(engine, state) {
  const { tensors } = kept.opened;
  const rows = tensors.map((tensor, index) => ({ ...tensor, index })).filter(({ name }) => name.includes(kept.filter));
  const candidates = targets.filter(name => name !== "float64");
  const choose = index => work(engine, state, `reading ${tensors[index].name}`, async call => {
    kept.index = index;
    const bits = engine.byName.get(tensors[index].type)?.bits ?? 32;
    kept.study = await call("study", { index, candidates: [...candidates.filter(name => engine.byName.get(name).bits <= bits), "int8"] });
    keepWeights(tensors[index].name, kept.study.sample);
  });
  return h("section", { "aria-label": "Tensors" }, h("h2", {}, "Tensors"),
    tensors.length > 20 && labelled("name contains", h("input", { type: "text", id: "filter", value: kept.filter, onchange: event => { kept.filter = event.target.value; render(engine, state); } })),
    h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "List of tensors" }, h("table", {},
      h("thead", {}, h("tr", {}, ["tensor", "type", "shape", "size"].map(text => h("th", { scope: "col" }, text)))),
      h("tbody", {}, rows.slice(0, most_rows).map(({ name, type, scheme, foreign, hidden, shape, bytes, index }) => h("tr", { class: index === kept.index && "chosen" },
        h("th", { scope: "row" }, (type || scheme) && bytes > 0 ? h("button", { type: "button", class: "link", onclick: () => choose(index), "aria-pressed": index === kept.index }, name) : name),
        h("td", {}, type ?? scheme ?? `${hidden ?? ""} ${foreign}`), h("td", {}, `[${shape.join(", ")}]`), h("td", {}, sizeText(bytes))))))),
    rows.length > most_rows && h("p", { class: "note" }, `${rows.length - most_rows} more`));
}

function studied(engine, state) {
  if (!kept.study || kept.index < 0) return undefined;
  const tensor = kept.opened.tensors[kept.index];
  const { histogram, losses, share, schemes, sample } = kept.study;
  const count = value => (value > 0 ? value.toLocaleString("en") : "0");
  const facts = [`${histogram.count.toLocaleString("en")} numbers from ${histogram.low.toPrecision(4)} to ${histogram.high.toPrecision(4)}`, `${count(histogram.zeros)} zeros`, histogram.nan > 0 && `${count(histogram.nan)} NaN`, histogram.infinite > 0 && `${count(histogram.infinite)} infinite`, share < 1 && `the first ${(100 * share).toFixed(0)} % of the tensor`].filter(Boolean);
  const sorted = [...losses].sort((a, b) => (Number.isNaN(a.snr_db) ? -Infinity : a.snr_db) < (Number.isNaN(b.snr_db) ? -Infinity : b.snr_db) ? 1 : -1);
  const rows = sorted.map(loss => {
    const out = loss.saturated + loss.overflowed + loss.wrapped;
    const bits = engine.byName.get(loss.type).bits;
    return h("tr", {}, h("th", { scope: "row" }, loss.type), h("td", {}, bits),
      h("td", {}, loss.inexact === 0 && out === 0 ? h("span", { class: "badge good" }, "nothing lost") : Number.isFinite(loss.snr_db) ? h("span", { class: "meter", style: `--share:${Math.max(0, Math.min(1, loss.snr_db / 80))}` }, `${loss.snr_db.toFixed(1)} dB`) : ""),
      h("td", {}, loss.max_rel_error ? `${(100 * loss.max_rel_error).toPrecision(3)} %` : "0"),
      h("td", { class: loss.underflowed_to_zero > 0 && "warn-text" }, count(loss.underflowed_to_zero)), h("td", { class: out > 0 && "bad-text" }, count(out)), h("td", { class: loss.nan_made > 0 && "bad-text" }, count(loss.nan_made)));
  });
  return h("section", { class: "card", "aria-label": tensor.name, id: "study" }, h("h2", {}, tensor.name), h("p", {}, facts.join(", ")),
    magnitudes(engine, histogram),
    h("h3", {}, "What each type would lose"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Losses by type" }, h("table", { class: "losses" },
      h("thead", {}, h("tr", {}, ["type", "bits", "signal to noise", "largest relative error", "become zero", "out of range", "become NaN"].map(text => h("th", { scope: "col" }, text)))), h("tbody", {}, rows))),
    h("p", { class: "note" }, "Casts without scales, by the report of the library."),
    schemes.length > 0 && lossesInBlocks(state, schemes, sample));
}

function lossesInBlocks(state, schemes, { rows, columns }) {
  const order = each => (each.error ? -Infinity : each.snr);
  const lines = [...schemes].sort((a, b) => order(b) - order(a)).map(each => h("tr", {},
    h("th", { scope: "row" }, h("a", { href: state.link({ view: "blocks", weights: "file", scheme: `${each.scheme}:${each.recipe}` }) }, each.scheme)),
    h("td", {}, each.recipe),
    each.error ? h("td", { colspan: 3, class: "muted" }, each.error) : [h("td", {}, each.bits.toFixed(2)),
      h("td", {}, Number.isFinite(each.snr) ? h("span", { class: "meter", style: `--share:${Math.max(0, Math.min(1, each.snr / 80))}` }, `${each.snr.toFixed(1)} dB`) : "nothing lost"),
      h("td", {}, each.largest.toPrecision(3))]));
  return h("div", {}, h("h3", {}, "What each scheme of blocks would lose"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Losses by scheme" }, h("table", { class: "losses", id: "schemes" },
      h("thead", {}, h("tr", {}, ["scheme", "recipe", "bits a number", "signal to noise", "largest error"].map(text => h("th", { scope: "col" }, text)))), h("tbody", {}, lines))),
    h("p", { class: "note" }, `By each scheme's default recipe, on the first ${rows.toLocaleString("en")} rows of ${columns.toLocaleString("en")} numbers.`));
}

function magnitudes(engine, histogram) {
  const bins = [...histogram.exponents];
  const used = bins.flatMap((n, e) => (n > 0 ? [e] : []));
  if (used.length === 0) return undefined;
  const shown = targets.slice(1, 9).map(name => engine.byName.get(name));
  const [low, high] = [used[0] - 4, used[used.length - 1] + 4];
  const most = Math.max(...bins);
  const height = 150 + shown.length * 16;
  const draw = (context, width) => {
    const left = 120, room = width - left - 10;
    const x = e => left + (e - low) / (high - low + 1) * room;
    const each = room / (high - low + 1);
    context.fillStyle = color("exponent");
    for (let e = low; e <= high; ++e) if (bins[e] > 0) context.fillRect(x(e), 120 - 110 * Math.max(0.01, bins[e] / most), Math.max(1, each - 1), 110 * Math.max(0.01, bins[e] / most));
    context.fillStyle = color("muted");
    context.textAlign = "center";
    for (let e = low; e <= high; ++e) if ((e - 127) % (high - low > 40 ? 10 : 5) === 0) context.fillText(powerText(e - 127), x(e) + each / 2, 136);
    shown.forEach((type, i) => {
      const y = 150 + i * 16;
      const clip = e => Math.min(high + 1, Math.max(low, e));
      const [from, normal, to] = [Math.log2(type.smallest_positive), 1 - type.bias, Math.log2(type.largest)].map(e => x(clip(Math.floor(e) + 127)));
      context.textAlign = "right";
      context.fillStyle = color("ink");
      context.fillText(type.name, left - 8, y + 10);
      context.fillStyle = color("accent");
      context.globalAlpha = 0.35;
      context.fillRect(from, y + 2, Math.max(0, normal - from), 9);
      context.globalAlpha = 1;
      context.fillRect(normal, y + 2, Math.max(2, to + each - normal), 9);
    });
  };
  return h("div", {}, canvas({ height, label: `histogram of magnitudes from 2^${used[0] - 127} to 2^${used[used.length - 1] - 127}, above the ranges of types`, draw }),
    h("p", { class: "note" }, "Magnitudes by powers of two, and the ranges of types below; pale: subnormal, fewer bits."));
}
