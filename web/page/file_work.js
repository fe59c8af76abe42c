// SPDX-License-Identifier: Apache-2.0
// What is done with a tensor's elements, piece by piece: histograms, losses, conversion.

import { lossesOfSchemes } from "./block_losses.js";
import { fail, partsOf, piecesOf } from "./file_bytes.js";
import { canHold, safetensorsHeader } from "./file_safetensors.js";

const part_bytes = 64 << 20;  // that a worker reads and converts: reading is slower in smaller ones
const cached_bytes = 2 << 20;  // that are converted at a time: fits the cache with its result
const studied_bytes = 32 << 20;  // of a large tensor, its beginning
const sample_count = 1 << 17;  // numbers that are quantized in blocks: the first rows

// Elements of a piece as `to`: of a type, or of blocks that share scales.
function converted(engine, tensor, piece, to, options) {
  if (tensor.type) {
    const count = piece.length * 8 / engine.byName.get(tensor.type).bits;
    const { bytes, report } = engine.report(piece, tensor.type, to, count, { options, keep: true });
    return { bytes, report };
  }
  const numbers = engine.dequantize(tensor.scheme, piece, "float32");
  return to === "float32" ? { bytes: numbers } : engine.report(numbers, "float32", to, numbers.length / 4, { options, keep: true });
}

// Whole elements, and whole blocks.
function pieceSize(engine, tensor, most) {
  if (tensor.type) return most;
  const { block_bytes } = engine.description.block_formats.find(each => each.scheme === tensor.scheme && each.spelling === "gguf");
  return Math.floor(most / block_bytes) * block_bytes;
}

export function mergeReports(reports) {
  const total = {};
  for (const report of reports.filter(Boolean)) {
    for (const [name, value] of Object.entries(report)) {
      total[name] = name.startsWith("max_") ? Math.max(total[name] ?? 0, value) : (total[name] ?? 0) + value;
    }
  }
  total.snr_db = total.noise_power === 0 ? Infinity : 10 * Math.log10(total.signal_power / total.noise_power);
  return total;
}

class Histogram {
  constructor() {
    Object.assign(this, { exponents: new Float64Array(256), zeros: 0, negative: 0, nan: 0, infinite: 0, low: Infinity, high: -Infinity, count: 0 });
  }

  add(bytes) {
    const bits = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    const counts = new Int32Array(256);
    let [low, high, negative, zeros] = [this.low, this.high, 0, 0];
    for (let i = 0; i < bits.length; ++i) {
      const word = bits[i];
      ++counts[word >>> 23 & 255];
      if (word < 0) ++negative;
      if ((word & 0x7fffffff) === 0) ++zeros;
      const value = values[i];
      if (value < low && value !== -Infinity) low = value;
      if (value > high && value !== Infinity) high = value;
    }
    let infinite = 0;
    if (counts[255] > 0) for (const value of values) if (value === Infinity || value === -Infinity) ++infinite;
    for (let e = 0; e < 255; ++e) this.exponents[e] += counts[e];
    this.exponents[0] -= zeros;
    this.nan += counts[255] - infinite;
    this.infinite += infinite;
    this.zeros += zeros;
    this.negative += negative;
    this.count += bits.length;
    [this.low, this.high] = [low, high];
  }
}

// Whole rows of a tensor from its beginning: {rows, columns, values}.
function sampleOf(shape, pieces) {
  const all = new Float32Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  const columns = Math.min(shape[shape.length - 1] ?? 1, all.length);
  const rows = Math.floor(Math.min(all.length, Math.max(columns, sample_count)) / (columns || 1));
  return { rows, columns, values: all.slice(0, rows * columns) };
}

// The histogram of a tensor's magnitudes, and what each of `candidates` and each scheme of blocks would lose.
export async function study(engine, tensor, candidates) {
  const histogram = new Histogram();
  const reports = new Map(candidates.map(type => [type, []]));
  const first = [];
  let [seen, sampled] = [0, 0];
  for await (const piece of piecesOf(tensor, pieceSize(engine, tensor, 4 << 20))) {
    const numbers = tensor.type === "float32" ? piece : converted(engine, tensor, piece, "float32").bytes;
    histogram.add(numbers);
    if (sampled < sample_count) {
      const values = new Float32Array(numbers.buffer, numbers.byteOffset, numbers.length / 4).slice();
      first.push(values);
      sampled += values.length;
    }
    for (const type of candidates) {
      const [bytes, from] = tensor.type ? [piece, tensor.type] : [numbers, "float32"];
      const count = bytes.length * 8 / engine.byName.get(from).bits;
      reports.get(type).push(engine.report(bytes, from, type, count).report);
    }
    seen += piece.length;
    if (seen >= studied_bytes) break;
  }
  const sample = sampleOf(tensor.shape, first);
  const schemes = sample.values.length > 0 && isFloating(engine, tensor) ? lossesOfSchemes(engine, sample) : [];
  return { histogram: { ...histogram }, sample, schemes, losses: candidates.map(type => ({ type, ...mergeReports(reports.get(type)) })), share: tensor.bytes === 0 ? 1 : Math.min(1, seen / tensor.bytes) };
}

const isFloating = (engine, tensor) => tensor.scheme !== undefined || engine.byName.get(tensor.type)?.family === "float";

// What becomes of each tensor: {…tensor, to, to_bytes, reason}. Floating-point tensors are converted, the others kept.
export function plan(engine, tensors, to) {
  const { bits } = engine.byName.get(to);
  return tensors.map(tensor => {
    const kept = reason => ({ ...tensor, to: tensor.type, to_bytes: tensor.bytes, reason });
    if (tensor.foreign && (tensor.bytes === 0 || !/^C64$/.test(tensor.foreign))) return { ...tensor, to: undefined, to_bytes: 0, reason: `left out: ${tensor.foreign}` };
    if (!isFloating(engine, tensor)) return kept("not floating point");
    if (bits < 8 && (tensor.shape[tensor.shape.length - 1] ?? 1) * bits % 8 !== 0) return kept("its last dimension does not fill whole bytes");
    return { ...tensor, to, to_bytes: tensor.count * bits / 8 };
  });
}

// Converts a part of a file that begins `begin` bytes after the tensor's elements do: {blob, report}.
export async function castPart(engine, tensor, part, begin, to, options) {
  const read = new Uint8Array(await part.arrayBuffer());
  const size = pieceSize(engine, tensor, cached_bytes);
  const results = [];
  const reports = [];
  for (let at = 0; at < read.length; at += size) {
    try {
      const { bytes, report } = converted(engine, tensor, read.subarray(at, at + size), to, options);
      results.push(bytes);
      reports.push(report);
    } catch (error) {  // names an element of these
      const first = (begin + at) * (tensor.count / tensor.bytes);
      throw new Error(`${tensor.name}: ${error.message.replace(/^element (\d+)/, (_, n) => `element ${first + Number(n)}`)}`);
    }
  }
  return { blob: new Blob(results), report: mergeReports(reports) };
}

// Converts to a safetensors file, a Blob. progress(bytes read so far). Each of `crew` reads and converts parts.
export async function convert(engine, tensors, metadata, to, options, progress, crew) {
  if (!canHold(to)) fail(`safetensors has no ${to}`);
  const planned = plan(engine, tensors, to).filter(tensor => tensor.to !== undefined || tensor.foreign === "C64");
  const { bytes: header, order } = safetensorsHeader(planned.map(({ name, to: type, foreign, shape, to_bytes }, index) => ({ index, name, type, foreign, shape, bytes: to_bytes })), metadata, engine.byName);
  const parts = [header];
  let [read, failed] = [0, null];
  for (const { index } of order) {
    const tensor = planned[index];
    const { name, type, scheme, count, bytes, reason } = tensor;
    let begin = 0;
    for await (const part of partsOf(tensor, pieceSize(engine, reason ? { type: "uint8" } : tensor, part_bytes))) {
      const { size } = part;
      if (reason) {
        parts.push(part);
        progress(read += size);
        continue;
      }
      const { done } = await crew.start("part", { tensor: { name, type, scheme, count, bytes }, part, begin, to, options });
      begin += size;
      done.then(() => progress(read += size), error => { failed ??= error; });
      parts.push(done);
      if (failed) throw failed;
    }
  }
  const finished = await Promise.all(parts);
  return {
    blob: new Blob(finished.map(part => part.blob ?? part), { type: "application/octet-stream" }),
    report: mergeReports(finished.map(part => part.report)),
    converted: planned.filter(tensor => !tensor.reason).length, kept: planned.filter(tensor => tensor.reason).length,
  };
}
