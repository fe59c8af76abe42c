// SPDX-License-Identifier: Apache-2.0
// safetensors: a JSON header, then the elements.

import { bytesOf, fail, product } from "./file_bytes.js";

// The format's words for types, which are among the spellings that the engine knows.
const words = {
  bool: "BOOL", float4_e2m1fn: "F4", float6_e2m3fn: "F6_E2M3", float6_e3m2fn: "F6_E3M2", float8_e5m2: "F8_E5M2",
  float8_e4m3fn: "F8_E4M3", float8_e8m0fnu: "F8_E8M0", float8_e4m3fnuz: "F8_E4M3FNUZ", float8_e5m2fnuz: "F8_E5M2FNUZ",
  float16: "F16", bfloat16: "BF16", float32: "F32", float64: "F64", int8: "I8", int16: "I16", int32: "I32", int64: "I64",
  uint8: "U8", uint16: "U16", uint32: "U32", uint64: "U64",
};
const types = Object.fromEntries(Object.entries(words).map(([type, word]) => [word, type]));

export const canHold = type => words[type] !== undefined;

export async function readSafetensors(blob) {
  const length = new DataView((await bytesOf(blob, 0, 8)).buffer).getBigUint64(0, true);
  if (length > BigInt(Math.min(blob.size - 8, 100_000_000))) fail("this is no safetensors file: its header would be longer than the file");
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await bytesOf(blob, 8, Number(length))));
  } catch {
    fail("the header is no JSON");
  }
  const begin = 8 + Number(length);
  const tensors = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const { dtype, shape, data_offsets: [first, last] = [] } = entry;
    const wrong = !Array.isArray(shape) || shape.some(n => !Number.isSafeInteger(n) || n < 0) || !Number.isSafeInteger(first) || !Number.isSafeInteger(last) || first > last || begin + last > blob.size;
    if (wrong) fail(`tensor "${name}": its entry does not fit the file`);
    tensors.push({ name, type: types[dtype], foreign: types[dtype] ? undefined : String(dtype), shape, count: product(shape), blob, start: begin + first, bytes: last - first });
  }
  tensors.sort((a, b) => a.start - b.start);
  return { format: "safetensors", tensors, metadata: Object.entries(header.__metadata__ ?? {}) };
}

// The order of tcast: as given, or the widest elements first if a tensor would not be aligned.
function ordered(tensors) {
  let [begin, aligned] = [0, true];
  for (const { bytes, alignment } of tensors) {
    aligned &&= begin % alignment === 0;
    begin += bytes;
  }
  return aligned ? tensors : [...tensors].sort((a, b) => b.alignment - a.alignment);
}

// The header of a file with `tensors` of name, type, shape and bytes; and their order in it.
export function safetensorsHeader(tensors, metadata, typesByName) {
  const order = ordered(tensors.map(tensor => ({ ...tensor, alignment: Math.max(1, (typesByName.get(tensor.type)?.bits ?? 8) / 8) })));
  const header = {};
  if (metadata.length > 0) header.__metadata__ = Object.fromEntries(metadata);
  let begin = 0;
  const entries = order.map(({ name, type, foreign, shape, bytes }) => {
    const entry = `${JSON.stringify(name)}:${JSON.stringify({ dtype: words[type] ?? foreign, shape, data_offsets: [begin, begin + bytes] })}`;
    begin += bytes;
    return entry;
  });
  const meta = metadata.length > 0 ? [`"__metadata__":${JSON.stringify(Object.fromEntries(metadata))}`] : [];
  const text = new TextEncoder().encode(`{${[...meta, ...entries].join(",")}}`);
  const padded = Math.ceil(text.length / 8) * 8;
  const bytes = new Uint8Array(8 + padded).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true);
  bytes.set(text, 8);
  return { bytes, order };
}
