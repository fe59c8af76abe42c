// SPDX-License-Identifier: Apache-2.0
// NumPy's arrays: .npy, and .npz, which is a zip archive of them.

import { bytesOf, checkNames, Cursor, fail, inflated, product } from "./file_bytes.js";

const types = {
  f8: "float64", f4: "float32", f2: "float16", i8: "int64", i4: "int32", i2: "int16", i1: "int8",
  u8: "uint64", u4: "uint32", u2: "uint16", u1: "uint8", b1: "bool",
};

// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } only: the three keys once each, plain integers.
function parseDictionary(text, what) {
  const wrong = () => fail(`${what}: a header that NumPy does not write`);
  const values = {
    descr: /(?:'([^'\\\n]*)'|"([^"\\\n]*)")/y, fortran_order: /(True|False)/y, shape: /\(((?:\s*\d+L?\s*,)*(?:\s*\d+L?)?)\s*\)/y,
  };
  const found = new Map();
  let at = 0;
  const next = pattern => {
    pattern.lastIndex = at;
    const match = pattern.exec(text) ?? wrong();
    at += match[0].length;
    return match;
  };
  next(/\s*\{\s*/y);
  while (text[at] !== "}") {
    const [, , key] = next(/(['"])(descr|fortran_order|shape)\1\s*:\s*/y);
    if (found.has(key)) wrong();
    const [, first, second] = next(values[key]);
    found.set(key, first ?? second);
    if (next(/\s*(,?)\s*/y)[1] === "" && text[at] !== "}") wrong();
  }
  next(/\}\s*$/y);
  if (found.size < 3) wrong();
  const dims = found.get("shape").split(",").map(part => part.trim().replace("L", ""));
  if (dims.length === 1 && dims[0] !== "") wrong();  // (3) is a number
  const shape = dims.filter(Boolean).map(Number);
  if (shape.length > 64) wrong();
  return { descr: found.get("descr"), fortran_order: found.get("fortran_order") === "True", shape };
}

// The header at the beginning of `bytes`: type, shape, where elements begin.
function header(bytes, what) {
  const cursor = new Cursor(bytes);
  if (bytes.length < 10 || String.fromCharCode(...bytes.subarray(1, 6)) !== "NUMPY") fail(`${what} is no array of NumPy`);
  cursor.skip(6);
  const [version, minor] = [cursor.u8(), cursor.u8()];
  if (version < 1 || version > 3 || minor !== 0) fail(`${what}: npy version ${version}.${minor} is unknown`);
  const length = version === 1 ? cursor.u16() : cursor.u32();
  if (length > cursor.left) fail(`${what} ends within its header`);
  const { descr, fortran_order, shape } = parseDictionary(cursor.text(length), what);
  if (fortran_order) fail(`${what} is in Fortran order; save numpy.ascontiguousarray of it`);
  if (descr.startsWith(">") && !descr.endsWith("1")) fail(`${what} is big-endian; tcast convert reads it`);
  if (!/^[<>=|][a-zA-Z]\d*(\[\w+\])?$/.test(descr)) fail(`${what}: unknown descriptor "${descr}"`);
  const type = Object.hasOwn(types, descr.slice(1)) ? types[descr.slice(1)] : undefined;
  return { type, foreign: type ? undefined : descr, shape, count: product(shape), start: cursor.at };
}

const sizeOf = (array, available) => array.type ? array.count * Number(/\d+/.exec(array.type)?.[0] ?? 8) / 8 : available;

export async function readNpy(blob) {
  const array = header(await bytesOf(blob, 0, Math.min(blob.size, 1 << 16)), "the file");
  const bytes = sizeOf(array, blob.size - array.start);
  if (array.start + bytes > blob.size) fail("the file ends before its elements do");
  if (array.start + bytes < blob.size) fail(`${blob.size - array.start - bytes} bytes follow the array's last`);
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
    if (array.start + bytes < size) fail(`${name}: ${size - array.start - bytes} bytes follow the array's last`);
    tensors.push({ name: name.slice(0, -4), ...array, blob: part, bytes, deflated: method === 8 });
  }
  return { format: "npz", tensors: checkNames(tensors), metadata: [] };
}
