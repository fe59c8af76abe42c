// SPDX-License-Identifier: Apache-2.0
// tensorcast in WebAssembly, for Node and browsers: README.md shows how.

import { Engine, EngineError } from "./engine.js";

export { EngineError };

const names = new Map([
  [Float32Array, "float32"], [Float64Array, "float64"], [Int8Array, "int8"], [Int16Array, "int16"], [Int32Array, "int32"],
  [BigInt64Array, "int64"], [Uint8Array, "uint8"], [Uint8ClampedArray, "uint8"], [Uint16Array, "uint16"],
  [Uint32Array, "uint32"], [BigUint64Array, "uint64"],
]);
const arrays = new Map([...names].filter(([array]) => array !== Uint8ClampedArray).map(([array, name]) => [name, array]));

async function bytesBeside(file) {
  const address = new URL(file, import.meta.url);
  if (address.protocol !== "file:") {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
    return answer.arrayBuffer();
  }
  const { readFile } = await import("node:fs/promises");
  return readFile(address);
}

const bytesOf = array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

class Tensorcast {
  #words;
  #kernels;

  constructor(words, kernels) {
    this.#words = words;
    this.#kernels = kernels;
  }

  get types() { return this.#words.types; }
  get castOptions() { return this.#words.description.cast_options.options; }

  // Without `from`, a typed array's own type counts; with it, `source` is bytes as the library stores the type.
  #source(source, { from, count }) {
    const own = names.get(source?.constructor);
    if (own === undefined) throw new TypeError("the source must be a typed array");
    const type = from ?? own;
    const facts = this.types.find(each => each.number === this.#words.number(type));
    if (!facts.bits) throw new TypeError(`${facts.name} has no elements of one size`);
    const bits = facts.bits;
    const bytes = bytesOf(source);
    const elements = count ?? Math.floor(bytes.length * 8 / bits);
    const needs = this.#words.storageBytes(type, elements);
    if (needs !== bytes.length) {
      throw new RangeError(`${elements} elements of ${facts.name} take ${needs} bytes, and the source has ${bytes.length}`);
    }
    return { bytes, type, elements };
  }

  #typed(bytes, to) {
    const array = arrays.get(this.types.find(each => each.number === this.#words.number(to)).name);
    return array === undefined ? bytes : new array(bytes.buffer, bytes.byteOffset, bytes.byteLength / array.BYTES_PER_ELEMENT);
  }

  cast(source, to, { from, count, ...options } = {}) {
    const { bytes, type, elements } = this.#source(source, { from, count });
    this.#check(options);
    return this.#typed(this.#kernels.cast(bytes, type, to, elements, options), to);
  }

  castWithReport(source, to, { from, count, ...options } = {}) {
    const { bytes, type, elements } = this.#source(source, { from, count });
    this.#check(options);
    const done = this.#kernels.report(bytes, type, to, elements, { options, keep: true });
    return { result: this.#typed(done.bytes, to), report: done.report };
  }

  #check(options) {
    for (const [name, value] of Object.entries(options)) {
      const known = this.castOptions.find(option => option.name === name);
      if (known === undefined) throw new TypeError(`there is no option "${name}"`);
      if (known.kind === "choice" && !known.words.includes(value)) {
        throw new TypeError(`${name} is one of ${known.words.join(", ")}, not ${JSON.stringify(value)}`);
      }
    }
  }

  explain(literal, { from, to, ...options } = {}) {
    this.#check(options);
    return this.#words.explain(literal, { from, to, options });
  }

  promote(a, b, options = {}) { return this.#words.promote(a, b, options); }
  dequantizeGguf(blocks, scheme, to = "float32") { return this.#typed(this.#kernels.dequantize(scheme, blocks, to), to); }
  recipes() { return this.#kernels.recipes(); }

  quantize(weight, columns, scheme, recipe = "") {
    if (!(weight instanceof Float32Array)) throw new TypeError("a weight is a Float32Array");
    if (!Number.isInteger(columns) || columns < 1 || weight.length % columns !== 0) {
      throw new RangeError(`${weight.length} elements are no rows of ${columns}`);
    }
    return this.#kernels.quantize(weight, weight.length / columns, columns, scheme, recipe);
  }
}

let loading;

// Starts both modules, once.
export function load() {
  loading ??= (async () => {
    const [words, kernels] = await Promise.all(["./explain.wasm", "./kernels.wasm"].map(bytesBeside));
    const first = new Engine(await WebAssembly.compile(words));
    return new Tensorcast(first, new Engine(await WebAssembly.compile(kernels), first.description));
  })();
  loading.catch(() => { loading = undefined; });
  return loading;
}
