// SPDX-License-Identifier: Apache-2.0
// NumPy's arrays: .npy, and .npz, which is a zip archive of them.

import { bytesOf, Cursor, fail, inflated, product } from "./file_bytes.js";

const types = {
  f8: "float64", f4: "float32", f2: "float16", i8: "int64", i4: "int32", i2: "int16", i1: "int8",
  u8: "uint64", u4: "uint32", u2: "uint16", u1: "uint8", b1: "bool",
};

// The header at the beginning of `bytes`: type, shape, where elements begin.
function header(bytes, what) {
  const cursor = new Cursor(bytes);
  if (bytes.length < 10 || String.fromCharCode(...bytes.subarray(1, 6)) !== "NUMPY") fail(`${what} is no array of NumPy`);
  cursor.skip(6);
  const version = cursor.u8();
  cursor.skip(1);
  const length = version === 1 ? cursor.u16() : cursor.u32();
  const text = cursor.text(length);
  const descr = /'descr':\s*'([^']*)'/.exec(text)?.[1];
  const shape = /'shape':\s*\(([\d,\sL]*)\)/.exec(text)?.[1].split(",").map(part => part.trim().replace("L", "")).filter(Boolean).map(Number);
  if (shape === undefined) fail(`${what}: a header without a shape`);
  if (/'fortran_order':\s*True/.test(text)) fail(`${what} is in Fortran order; save numpy.ascontiguousarray of it`);
  if (descr?.startsWith(">") && !descr.endsWith("1")) fail(`${what} is big-endian; tcast convert reads it`);
  const type = types[descr?.slice(1)];
  return { type, foreign: type ? undefined : descr ?? "a record", shape, count: product(shape), start: cursor.at };
}

const sizeOf = (array, available) => array.type ? array.count * Number(/\d+/.exec(array.type)?.[0] ?? 8) / 8 : available;

export async function readNpy(blob) {
  const array = header(await bytesOf(blob, 0, Math.min(blob.size, 1 << 16)), "the file");
  const bytes = sizeOf(array, blob.size - array.start);
  if (array.start + bytes > blob.size) fail("the file ends before its elements do");
  const name = (blob.name ?? "array").replace(/\.npy$/i, "");
  return { format: "npy", tensors: [{ name, ...array, blob, bytes }], metadata: [] };
}

// Entries of the archive's directory: {name, method, packed, size, at}.
async function directory(blob) {
  const tail = await bytesOf(blob, Math.max(0, blob.size - 65557), Math.min(blob.size, 65557));
  let end = tail.length - 22;
  const view = new DataView(tail.buffer);
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) --end;
  if (end < 0) fail("this is no zip archive, or it was cut");
  let [count, length, start] = [view.getUint16(end + 10, true), view.getUint32(end + 12, true), view.getUint32(end + 16, true)];
  if (start === 0xffffffff || count === 0xffff) {  // the directory of a large archive
    const place = end - 20;
    if (place < 0 || view.getUint32(place, true) !== 0x07064b50) fail("the archive's directory is missing");
    const wide = new Cursor(await bytesOf(blob, Number(view.getBigUint64(place + 8, true)), 56));
    wide.skip(32);
    [count, length, start] = [wide.size(), wide.size(), wide.size()];
  }
  const cursor = new Cursor(await bytesOf(blob, start, length));
  return Array.from({ length: count }, () => entry(cursor));
}

function entry(cursor) {
  if (cursor.u32() !== 0x02014b50) fail("the archive's directory is damaged");
  cursor.skip(4);
  const flags = cursor.u16();
  const method = cursor.u16();
  cursor.skip(8);
  let [packed, size] = [cursor.u32(), cursor.u32()];
  const [name_length, extra_length, comment_length] = [cursor.u16(), cursor.u16(), cursor.u16()];
  cursor.skip(8);
  let at = cursor.u32();
  const name = cursor.text(name_length);
  const extra = new Cursor(cursor.slice(extra_length));
  cursor.skip(comment_length);
  while (extra.left >= 4) {
    const [id, bytes] = [extra.u16(), extra.u16()];
    if (id !== 1) {
      extra.skip(bytes);
      continue;
    }
    if (size === 0xffffffff) size = extra.size();
    if (packed === 0xffffffff) packed = extra.size();
    if (at === 0xffffffff) at = extra.size();
    break;
  }
  if (flags & 1) fail(`${name} is encrypted`);
  if (method !== 0 && method !== 8) fail(`${name} is compressed by a method other than deflate`);
  return { name, method, packed, size, at };
}

async function beginning(blob, most) {
  const reader = inflated(blob).getReader();
  const parts = [];
  let length = 0;
  while (length < most) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
  }
  await reader.cancel();
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export async function readNpz(blob) {
  const tensors = [];
  for (const { name, method, packed, size, at } of await directory(blob)) {
    if (!name.endsWith(".npy")) continue;
    const local = new DataView((await bytesOf(blob, at, 30)).buffer);
    if (local.getUint32(0, true) !== 0x04034b50) fail(`${name}: the archive is damaged`);
    const data = at + 30 + local.getUint16(26, true) + local.getUint16(28, true);
    if (data + packed > blob.size) fail(`${name}: the archive was cut`);
    const part = blob.slice(data, data + packed);
    const most = Math.min(size, 1 << 16);
    const array = header(method === 8 ? await beginning(part, most) : await bytesOf(part, 0, most), name);
    const bytes = sizeOf(array, size - array.start);
    if (array.start + bytes > size) fail(`${name} ends before its elements do`);
    tensors.push({ name: name.slice(0, -4), ...array, blob: part, bytes, deflated: method === 8 });
  }
  return { format: "npz", tensors, metadata: [] };
}
