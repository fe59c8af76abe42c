// SPDX-License-Identifier: Apache-2.0
// Reading a file that the page was given, bounded by its size.

export class FileError extends Error {}

export const fail = message => { throw new FileError(message); };

export async function bytesOf(blob, start, length) {
  if (start < 0 || length < 0 || start + length > blob.size) fail("the file is shorter than its header says");
  return new Uint8Array(await blob.slice(start, start + length).arrayBuffer());
}

// Reads numbers and texts one after the other; little endian.
export class Cursor {
  #view;
  #at = 0;

  constructor(bytes) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get at() { return this.#at; }
  get left() { return this.bytes.length - this.#at; }

  #take(length) {
    if (length > this.left) throw new NeedMore(this.#at + length);
    this.#at += length;
    return this.#at - length;
  }

  skip(length) { this.#take(length); }
  u8() { return this.#view.getUint8(this.#take(1)); }
  u16() { return this.#view.getUint16(this.#take(2), true); }
  u32() { return this.#view.getUint32(this.#take(4), true); }
  i8() { return this.#view.getInt8(this.#take(1)); }
  i16() { return this.#view.getInt16(this.#take(2), true); }
  i32() { return this.#view.getInt32(this.#take(4), true); }
  f32() { return this.#view.getFloat32(this.#take(4), true); }
  f64() { return this.#view.getFloat64(this.#take(8), true); }
  u64() { return this.#view.getBigUint64(this.#take(8), true); }
  i64() { return this.#view.getBigInt64(this.#take(8), true); }

  // Sizes and places: below 2^53, as no file is larger.
  size() {
    const value = this.#view.getBigUint64(this.#take(8), true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) fail("a size in the file is larger than any file");
    return Number(value);
  }

  slice(length) {
    const at = this.#take(length);
    return this.bytes.subarray(at, at + length);
  }

  name(length) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.slice(length));
    } catch (error) {
      if (error instanceof NeedMore) throw error;
      return fail("the file has a name that is not UTF-8");
    }
  }

  text(length) { return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.slice(length)); }
}

// Thrown by a Cursor at the end of its bytes.
export class NeedMore extends FileError {
  constructor(bytes) {
    super("the file ends within its header");
    this.bytes = bytes;
  }
}

// Calls parse(cursor) on more and more of the beginning of a file, until it does not need more.
export async function parseBeginning(blob, parse, first = 1 << 20, most = 1 << 28) {
  for (let size = Math.min(first, blob.size); ; size = Math.min(size * 4, blob.size)) {
    try {
      return parse(new Cursor(await bytesOf(blob, 0, size)));
    } catch (error) {
      if (!(error instanceof NeedMore)) throw error;
      if (size === blob.size) fail("the file ends within its header");
      if (size > most) fail("the header is too large");
    }
  }
}

// The elements of a shape. No dimension is larger than any file.
export function product(shape) {
  if (shape.some(length => !Number.isSafeInteger(length) || length < 0)) fail("a shape has a dimension that is no size");
  if (shape.includes(0)) return 0;
  const count = shape.reduce((all, length) => all * length, 1);
  return Number.isSafeInteger(count) ? count : fail("a shape has more elements than any file");
}

// Names are those of one tensor each.
export function checkNames(tensors) {
  const seen = new Set();
  for (const { name } of tensors) {
    if (seen.has(name)) fail(`tensor "${name}": the name occurs twice`);
    seen.add(name);
  }
  return tensors;
}

// The rest of a compressed part of a file, in pieces.
export function inflated(blob) {
  return blob.stream().pipeThrough(new DecompressionStream("deflate-raw"));
}

// The elements of a tensor in pieces of at most `size` bytes, each but the last of exactly `size`.
export async function* piecesOf(tensor, size) {
  if (!tensor.deflated) {
    for (let at = 0; at < tensor.bytes; at += size) yield await bytesOf(tensor.blob, tensor.start + at, Math.min(size, tensor.bytes - at));
    return;
  }
  const reader = inflated(tensor.blob).getReader();
  const piece = new Uint8Array(size);
  let [filled, skipped, total] = [0, 0, 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    let at = Math.min(value.length, tensor.start - skipped);  // the header of the array
    skipped += at;
    while (at < value.length && total < tensor.bytes) {
      const count = Math.min(value.length - at, size - filled, tensor.bytes - total);
      piece.set(value.subarray(at, at + count), filled);
      [at, filled, total] = [at + count, filled + count, total + count];
      if (filled === size) {
        yield piece.slice();
        filled = 0;
      }
    }
    if (total === tensor.bytes) break;
  }
  await reader.cancel();
  if (total < tensor.bytes) fail(`${tensor.name}: the archive ends early`);
  if (filled > 0) yield piece.slice(0, filled);
}

// The same as blobs; what is not compressed is not read yet.
export async function* partsOf(tensor, size) {
  if (tensor.deflated) {
    for await (const piece of piecesOf(tensor, size)) yield new Blob([piece]);
    return;
  }
  const end = tensor.start + tensor.bytes;
  for (let at = tensor.start; at < end; at += size) yield tensor.blob.slice(at, Math.min(at + size, end));
}
