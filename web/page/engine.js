// SPDX-License-Identifier: Apache-2.0
// The library's C interface in WebAssembly. Structs are filled by what tc_describe says of their fields.

const statuses = ["ok", "invalid_argument", "unsupported", "out_of_range", "parse", "io", "internal", "cancelled"];

export class EngineError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

// What the modules import of WASI: no environment, no files.
function wasi(memory) {
  const set = (at, value) => new DataView(memory().buffer).setUint32(at, value, true);
  const badFile = () => 8;
  return {
    environ_sizes_get: (count, bytes) => (set(count, 0), set(bytes, 0), 0),
    environ_get: () => 0,
    fd_close: badFile,
    fd_seek: badFile,
    fd_write: badFile,
    proc_exit: code => { throw new Error(`the module ended with ${code}`); },
  };
}

const digit = code => (code < 58 ? code - 48 : code - 87);

function bytesOfHex(text) {
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = digit(text.charCodeAt(2 * i)) << 4 | digit(text.charCodeAt(2 * i + 1));
  return bytes;
}

export class Engine {
  #module;
  #memory;
  #held = [];

  // `description`: of another module of the same library; else this one describes itself.
  constructor(module, description) {
    this.#module = module;
    this.#start();
    this.description = description ?? JSON.parse(this.#text(json => this.calls.tc_describe(json)));
    this.types = this.description.types;
    this.byName = new Map(this.types.map(type => [type.name, type]));
  }

  static compile(bytes, description) {
    return new Engine(new WebAssembly.Module(bytes), description);
  }

  get module() { return this.#module; }

  #start() {
    const instance = new WebAssembly.Instance(this.#module, { wasi_snapshot_preview1: wasi(() => this.#memory) });
    this.calls = instance.exports;
    this.#memory = this.calls.memory;
    this.calls._initialize();
    this.#held = [];
  }

  // Runs `body`, then releases what hold() and write() took. Memory that ran out ends the instance: a new one starts.
  run(body) {
    try {
      const result = body();
      this.release();
      return result;
    } catch (error) {
      if (error instanceof EngineError) {
        this.release();
        throw error;
      }
      this.#start();
      throw new EngineError("internal", `out of memory (${error.message})`);
    }
  }

  release() {
    for (const at of this.#held) this.calls.free(at);
    this.#held = [];
  }

  // A block of the module's memory until the end of run().
  hold(bytes) {
    const at = this.calls.malloc(Math.max(1, bytes));
    if (at === 0) throw new Error("malloc");
    this.#held.push(at);
    return at;
  }

  bytes(at, length) { return new Uint8Array(this.#memory.buffer, at, length); }
  view() { return new DataView(this.#memory.buffer); }

  write(bytes) {
    const at = this.hold(bytes.byteLength);
    this.bytes(at, bytes.byteLength).set(bytes);
    return at;
  }

  writeText(text) { return this.write(new TextEncoder().encode(`${text}\0`)); }

  readText(at) {
    const all = new Uint8Array(this.#memory.buffer);
    return new TextDecoder().decode(all.subarray(at, all.indexOf(0, at)));
  }

  check(status) {
    if (status !== 0) throw new EngineError(statuses[status], this.readText(this.calls.tc_last_error()));
  }

  // What a function stores in a `char**`.
  #text(call) {
    return this.run(() => {
      const place = this.hold(4);
      this.check(call(place));
      const at = this.view().getUint32(place, true);
      const text = this.readText(at);
      this.calls.tc_free(at);
      return text;
    });
  }

  // The number of a type by its name, or by any spelling that the library knows.
  number(type) {
    const known = this.byName.get(type);
    if (known) return known.number;
    return this.run(() => {
      const number = this.calls.tc_dtype_parse(this.writeText(type));
      if (number === 0) throw new EngineError("invalid_argument", this.readText(this.calls.tc_last_error()));
      return number;
    });
  }

  // A struct of options in the module's memory, or 0 for the defaults.
  struct(description, initialize, values) {
    if (!values || Object.keys(values).length === 0) return 0;
    const at = this.hold(description.bytes);
    initialize(at, description.bytes);
    const view = this.view();
    for (const option of description.options) {
      let value = values[option.name];
      if (value === undefined) continue;
      if (option.kind === "choice" && typeof value === "string") value = option.words.indexOf(value);
      if (option.kind === "type" && typeof value === "string") value = this.byName.get(value).number;
      if (option.kind === "number") view.setFloat64(at + option.offset, value, true);
      else if (option.bytes === 8) view.setBigInt64(at + option.offset, BigInt(value), true);
      else view.setInt32(at + option.offset, Number(value), true);
    }
    return at;
  }

  castOptions(values) {
    return this.struct(this.description.cast_options, this.calls.tc_cast_options_init_sized, values);
  }

  // What `tcast explain --json` prints: of `literal` in type `to`, or in all. `from`: the type that it is rounded to.
  explain(literal, { from, to, options } = {}) {
    const source = from ? this.number(from) : 0;
    const target = to ? this.number(to) : 0;
    const call = json => this.calls.tc_explain(this.writeText(literal), source, target, this.castOptions(options), json);
    return JSON.parse(this.#text(call));
  }

  storageBytes(type, count) { return this.calls.tc_storage_bytes(this.number(type), count); }

  // Converts packed elements. Returns the target's bytes.
  cast(source, from, to, count, options) {
    const [source_type, target_type] = [this.number(from), this.number(to)];
    return this.run(() => {
      const bytes = this.calls.tc_storage_bytes(target_type, count);
      const src = this.write(source);
      const dst = this.hold(bytes);
      this.check(this.calls.tc_cast(src, source_type, dst, target_type, count, this.castOptions(options)));
      return this.bytes(dst, bytes).slice();
    });
  }

  // The report of a conversion as an object, and the target's bytes if `keep`.
  report(source, from, to, count, { options, keep = false } = {}) {
    const [source_type, target_type] = [this.number(from), this.number(to)];
    return this.run(() => {
      const { bytes: size, numbers } = this.description.report;
      const bytes = this.calls.tc_storage_bytes(target_type, count);
      const src = this.write(source);
      const dst = this.hold(bytes);
      const report = this.hold(size);
      this.calls.tc_cast_report_init_sized(report, size);
      const status = this.calls.tc_cast_with_report(src, source_type, dst, target_type, count,
        this.castOptions(options), report);
      this.check(status);
      const view = this.view();
      const found = {};
      for (const { name, offset, kind } of numbers) {
        found[name] = kind === "number" ? view.getFloat64(report + offset, true)
          : Number(view.getBigUint64(report + offset, true));
      }
      return keep ? { report: found, bytes: this.bytes(dst, bytes).slice() } : { report: found };
    });
  }

  // The numbers of whole blocks of GGUF.
  dequantize(scheme, codes, to) {
    const { block_bytes, block_columns } = this.description.block_formats.find(each => each.scheme === scheme && each.spelling === "gguf");
    const rows = codes.length / block_bytes;
    const target = this.number(to);
    return this.run(() => {
      const bytes = this.calls.tc_storage_bytes(target, rows * block_columns);
      const [name, src, dst] = [this.writeText(scheme), this.write(codes), this.hold(bytes)];
      this.check(this.calls.web_dequantize(name, src, codes.length, rows, block_columns, dst, target));
      return this.bytes(dst, bytes).slice();
    });
  }

  // The recipes by which web_quantize quantizes.
  recipes() { return JSON.parse(this.#text(json => this.calls.web_recipes(json))); }

  // Weights in blocks: bytes of codes and scales, and the numbers that they mean.
  quantize(weights, rows, columns, scheme, recipe) {
    return this.run(() => {
      const source = this.write(new Uint8Array(weights.buffer, weights.byteOffset, weights.byteLength));
      const decoded = this.hold(weights.byteLength);
      const place = this.hold(4);
      this.check(this.calls.web_quantize(source, rows, columns, this.writeText(scheme), this.writeText(recipe), decoded, place));
      const at = this.view().getUint32(place, true);
      const made = JSON.parse(this.readText(at));
      this.calls.tc_free(at);
      for (const name of ["codes", "scales", "elements"]) {
        if (made[name] !== undefined) made[name] = bytesOfHex(made[name]);
      }
      return { ...made, decoded: new Float32Array(this.bytes(decoded, weights.byteLength).slice().buffer) };
    });
  }

  // The common type of two types by the rules of `options`, or the reason why there is none.
  promote(a, b, options = {}, { a_is_scalar = false, b_is_scalar = false } = {}) {
    const place_of = type => this.number(type);
    const [first, second] = [place_of(a), place_of(b)];
    return this.run(() => {
      const common = this.hold(4);
      const struct = this.struct(this.description.promote_options, this.calls.tc_promote_options_init_sized, options);
      const status = this.calls.tc_promote(first, Number(a_is_scalar), second, Number(b_is_scalar), struct, common);
      if (status !== 0) return { reason: this.readText(this.calls.tc_last_error()) };
      const number = this.view().getInt32(common, true);
      return { type: this.types.find(type => type.number === number)?.name };
    });
  }
}
