// SPDX-License-Identifier: Apache-2.0
// GGUF, versions 2 and 3: metadata, the list of tensors, then their elements or blocks.

import { checkNames, fail, parseBeginning, product } from "./file_bytes.js";

// ggml's numbers of types: of tensorcast, or the name of a block format.
const types = { 0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 30: "bfloat16" };
const blocks = {
  2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 10: "q2_k", 11: "q3_k", 12: "q4_k", 13: "q5_k", 14: "q6_k", 20: "iq4_nl",
  23: "iq4_xs", 39: "mxfp4", 40: "nvfp4", 16: "iq2_xxs", 17: "iq2_xs", 18: "iq3_xxs", 19: "iq1_s", 21: "iq3_s", 22: "iq2_s", 29: "iq1_m",
  34: "tq1_0", 35: "tq2_0",
};

const removed = { 4: [16, 10], 5: [16, 12], 9: [32, 40], 15: [256, 292], 31: [32, 18], 32: [32, 18], 33: [32, 18], 36: [32, 18], 37: [32, 18],
  38: [32, 18], 41: [128, 18] };  // elements and bytes of blocks that the page does not decode
const readers = ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"];
const [uint32, most_alignment] = [4, 1 << 20];

// A number as tcast writes it: the fewest digits that give it back, an exponent of two digits.
function real(number, isSame, most) {
  if (Number.isNaN(number)) return "nan";
  if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
  let digits = 1;
  while (digits < most && !isSame(Number(number.toPrecision(digits)))) ++digits;
  const [mantissa, exponent] = number.toExponential(digits - 1).split("e");
  if (Object.is(number, -0)) return "-0";
  if (Number(exponent) >= -4 && Number(exponent) < 16) return String(Number(number.toPrecision(digits)));
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

function value(cursor, kind, depth = 0) {
  const reader = readers[kind] ?? fail(`metadata of the unknown type ${kind}`);
  if (reader === "bool") return String(cursor.u8() !== 0);
  if (reader === "f32") return (number => real(number, other => Math.fround(other) === number, 9))(cursor.f32());
  if (reader === "f64") return (number => real(number, other => other === number, 17))(cursor.f64());
  if (reader === "string") return (text => depth > 0 ? JSON.stringify(text) : text)(cursor.text(cursor.size()));
  if (reader !== "array") return String(cursor[reader]());
  if (depth > 3) fail("arrays in arrays in arrays in the metadata");
  const element = cursor.u32();
  const count = cursor.size();
  const found = [];
  for (let i = 0; i < count; ++i) found.push(value(cursor, element, depth + 1));
  return `[${found.join(",")}]`;
}

function alignmentOf(kind, text) {
  const alignment = Number(text);
  if (kind !== uint32) fail("general.alignment is not an integer of type uint32");
  if (alignment === 0 || (alignment & (alignment - 1)) !== 0) fail(`general.alignment is ${text}, which is not a power of two`);
  return alignment <= most_alignment ? alignment : fail(`general.alignment is ${text}; ${most_alignment} is allowed`);
}

// The bytes of a tensor, whose rows are whole blocks; undefined for a type that nobody knows.
function bytesOfTensor({ name, shape, count, kind }, format) {
  const bits = types[kind] ? Number(/\d+/.exec(types[kind])[0]) : 0;
  const [elements, bytes] = format ? [format.block_columns, format.block_bytes] : bits > 0 ? [1, bits / 8] : removed[kind] ?? [0, 0];
  if (elements === 0) return undefined;
  if ((shape[shape.length - 1] ?? 1) % elements !== 0) fail(`tensor "${name}": its rows are not whole blocks of ${elements}`);
  return count / elements * bytes;
}

// The data of all tensors lie inside the file, aligned and apart.
function checkPlaces(tensors, begin, alignment, size) {
  let end = begin;
  for (const { name, start, bytes } of [...tensors].sort((a, b) => a.start - b.start || a.bytes - b.bytes)) {
    if ((start - begin) % alignment !== 0) fail(`tensor "${name}": the data begin at ${start - begin}, which is not a multiple of ${alignment}`);
    if (bytes === 0) continue;
    if (start < end) fail(`tensor "${name}": the data overlap those of another tensor`);
    if (start + bytes > size) fail(`tensor "${name}" ends behind the file`);
    end = start + bytes;
  }
}

export async function readGguf(blob, blockFormats) {
  return parseBeginning(blob, cursor => {
    if (cursor.text(4) !== "GGUF") fail("this is no GGUF file");
    const version = cursor.u32();
    if (version !== 2 && version !== 3) fail(`version ${version} of GGUF is not known`);
    const [tensor_count, metadata_count] = [cursor.size(), cursor.size()];
    const metadata = new Map();
    let alignment = 32;
    for (let i = 0; i < metadata_count; ++i) {
      const key = cursor.name(cursor.size());
      if (metadata.has(key)) fail(`the key "${key}" occurs twice`);
      const kind = cursor.u32();
      const found = value(cursor, kind);
      if (key === "general.alignment") alignment = alignmentOf(kind, found);
      metadata.set(key, found);
    }
    const listed = [];
    for (let i = 0; i < tensor_count; ++i) {
      const name = cursor.name(cursor.size());
      const rank = cursor.u32();
      if (rank > 64) fail(`tensor "${name}" has ${rank} dimensions`);
      const shape = Array.from({ length: rank }, () => cursor.size()).reverse();
      listed.push({ name, shape, count: product(shape), kind: cursor.u32(), offset: cursor.size() });
    }
    const begin = Math.ceil(cursor.at / alignment) * alignment;
    const tensors = checkNames(listed).map(tensor => {
      const { name, shape, count, kind, offset } = tensor;
      const scheme = blocks[kind];
      const format = scheme && blockFormats.find(each => each.scheme === scheme && each.spelling === "gguf");
      const bytes = bytesOfTensor(tensor, format) ?? 0;
      const foreign = types[kind] || format ? undefined : `ggml type ${kind}`;
      return { name, shape, count, type: types[kind], scheme: foreign ? undefined : scheme, foreign, blob, start: begin + offset, bytes };
    });
    checkPlaces(tensors, begin, alignment, blob.size);
    return { format: "gguf", tensors, metadata: [...metadata] };
  });
}
