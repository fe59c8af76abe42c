// SPDX-License-Identifier: Apache-2.0
// safetensors: a JSON header, then the elements.

import { bytesOf, fail, product } from "./file_bytes.js";
import { parseHeader } from "./json_header.js";

// The format's words for types, which are among the spellings that the engine knows.
const words = {
  bool: "BOOL", float4_e2m1fn: "F4", float6_e2m3fn: "F6_E2M3", float6_e3m2fn: "F6_E3M2", float8_e5m2: "F8_E5M2",
  float8_e4m3fn: "F8_E4M3", float8_e8m0fnu: "F8_E8M0", float8_e4m3fnuz: "F8_E4M3FNUZ", float8_e5m2fnuz: "F8_E5M2FNUZ",
  float16: "F16", bfloat16: "BF16", float32: "F32", float64: "F64", int8: "I8", int16: "I16", int32: "I32", int64: "I64",
  uint8: "U8", uint16: "U16", uint32: "U32", uint64: "U64",
};
const types = new Map(Object.entries(words).map(([type, word]) => [word, type]));
const bitsOf = type => /^float4/.test(type) ? 4 : /^float6/.test(type) ? 6 : type === "bool" ? 8 : Number(/\d+/.exec(type)[0]);
const most_dimensions = 64;

export const canHold = type => Object.hasOwn(words, type);

const size = value => typeof value === "bigint" && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : undefined;

// An entry of the header, checked as tcast checks it.
function entryOf(name, entry) {
  const wrong = what => fail(`tensor "${name}": ${what}`);
  if (!(entry instanceof Map)) wrong("its entry is not an object");
  for (const key of entry.keys()) if (!["dtype", "shape", "data_offsets"].includes(key)) wrong(`unknown field "${key}"`);
  for (const key of ["dtype", "shape", "data_offsets"]) if (!entry.has(key)) wrong(`${key} is missing`);
  const [dtype, dims, offsets] = [entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")];
  if (typeof dtype !== "string") wrong("dtype is not a string");
  if (dtype !== "C64" && !types.has(dtype)) wrong(`"${dtype}" is not a type of safetensors`);
  if (!Array.isArray(dims) || !Array.isArray(offsets) || offsets.length !== 2) wrong("shape and data_offsets are not arrays of numbers");
  if (dims.length > most_dimensions) wrong(`more than ${most_dimensions} dimensions`);
  const [shape, [begin, end]] = [dims.map(size), offsets.map(size)];
  if ([...shape, begin, end].includes(undefined)) wrong("shape or data_offsets has a number that is no size");
  const count = product(shape);
  const bits = count * (dtype === "C64" ? 64 : bitsOf(types.get(dtype)));
  if (bits % 8 !== 0) wrong(`${count} elements of ${dtype} are not whole bytes`);
  if (end - begin !== bits / 8) wrong(`data_offsets [${begin}, ${end}] span ${end - begin} bytes, but type and shape take ${bits / 8}`);
  return { name, type: types.get(dtype), foreign: types.has(dtype) ? undefined : dtype, shape, count, begin, end };
}

function metadataOf(header) {
  const metadata = header.get("__metadata__") ?? new Map();
  if (header.has("__metadata__") && !(header.get("__metadata__") instanceof Map)) fail("__metadata__ is not an object of strings");
  for (const [key, text] of metadata) if (typeof text !== "string") fail(`__metadata__ "${key}" is not a string`);
  return [...metadata];
}

export async function readSafetensors(blob) {
  const length = new DataView((await bytesOf(blob, 0, 8)).buffer).getBigUint64(0, true);
  if (length > BigInt(Math.min(blob.size - 8, 100_000_000))) fail("this is no safetensors file: its header would be longer than the file");
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await bytesOf(blob, 8, Number(length)));
  } catch {
    fail("the header is not UTF-8");
  }
  const header = parseHeader(text);
  const data = 8 + Number(length);
  const entries = [...header].filter(([name]) => name !== "__metadata__").map(([name, entry]) => entryOf(name, entry));
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let expected = 0;
  for (const { name, begin, end } of entries) {
    if (begin < expected) fail(`tensor "${name}": the data overlap those of another tensor`);
    if (begin > expected) fail(`tensor "${name}": a hole of ${begin - expected} bytes before the data`);
    if (end > blob.size - data) fail(`tensor "${name}": the data end behind the file`);
    expected = end;
  }
  if (expected !== blob.size - data) fail(`${blob.size - data - expected} bytes follow the last tensor`);
  const tensors = entries.map(({ begin, end, ...entry }) => ({ ...entry, blob, start: data + begin, bytes: end - begin }));
  return { format: "safetensors", tensors, metadata: metadataOf(header) };
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
  if (new Set(metadata.map(([key]) => key)).size < metadata.length) fail("the metadata have a key twice, and safetensors can hold it once");
  let begin = 0;
  const entries = order.map(({ name, type, foreign, shape, bytes }) => {
    const entry = `${JSON.stringify(name)}:${JSON.stringify({ dtype: words[type] ?? foreign, shape, data_offsets: [begin, begin + bytes] })}`;
    begin += bytes;
    return entry;
  });
  const pairs = metadata.map(([key, text]) => `${JSON.stringify(key)}:${JSON.stringify(text)}`);  // an object would sort numbers
  const meta = metadata.length > 0 ? [`"__metadata__":{${pairs.join(",")}}`] : [];
  const text = new TextEncoder().encode(`{${[...meta, ...entries].join(",")}}`);
  const padded = Math.ceil(text.length / 8) * 8;
  const bytes = new Uint8Array(8 + padded).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true);
  bytes.set(text, 8);
  return { bytes, order };
}
