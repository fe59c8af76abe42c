// SPDX-License-Identifier: Apache-2.0
// GGUF, versions 2 and 3: metadata, the list of tensors, then their elements or blocks.

import { fail, parseBeginning, product } from "./file_bytes.js";

// ggml's numbers of types: of tensorcast, or the name of a block format.
const types = { 0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 30: "bfloat16" };
const blocks = {
  2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 10: "q2_k", 11: "q3_k", 12: "q4_k", 13: "q5_k", 14: "q6_k", 20: "iq4_nl",
  23: "iq4_xs", 39: "mxfp4", 40: "nvfp4",
};

const readers = ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "size", "i64", "f64"];

function value(cursor, kind, depth = 0) {
  const reader = readers[kind] ?? fail(`metadata of the unknown type ${kind}`);
  if (reader === "bool") return cursor.u8() !== 0;
  if (reader === "string") return cursor.text(cursor.size());
  if (reader !== "array") return cursor[reader]();
  if (depth > 3) fail("arrays in arrays in arrays in the metadata");
  const element = cursor.u32();
  const count = cursor.size();
  const shown = [];
  for (let i = 0; i < count; ++i) {
    const one = value(cursor, element, depth + 1);
    if (i < 8) shown.push(one);
  }
  return `[${shown.join(", ")}${count > 8 ? `, … ${count}` : ""}]`;
}

export async function readGguf(blob, blockFormats) {
  return parseBeginning(blob, cursor => {
    if (cursor.text(4) !== "GGUF") fail("this is no GGUF file");
    const version = cursor.u32();
    if (version !== 2 && version !== 3) fail(`version ${version} of GGUF is not known`);
    const [tensor_count, metadata_count] = [cursor.size(), cursor.size()];
    const metadata = [];
    let alignment = 32;
    for (let i = 0; i < metadata_count; ++i) {
      const key = cursor.text(cursor.size());
      const found = value(cursor, cursor.u32());
      if (key === "general.alignment") alignment = found;
      metadata.push([key, String(found)]);
    }
    const listed = [];
    for (let i = 0; i < tensor_count; ++i) {
      const name = cursor.text(cursor.size());
      const rank = cursor.u32();
      if (rank > 8) fail(`tensor "${name}" has ${rank} dimensions`);
      const shape = Array.from({ length: rank }, () => cursor.size()).reverse();
      listed.push({ name, shape, count: product(shape), kind: cursor.u32(), offset: cursor.size() });
    }
    const begin = Math.ceil(cursor.at / alignment) * alignment;
    const tensors = listed.map(({ name, shape, count, kind, offset }) => {
      const scheme = blocks[kind];
      const format = scheme && blockFormats.find(each => each.scheme === scheme && each.spelling === "gguf");
      const bits = types[kind] ? Number(/\d+/.exec(types[kind])[0]) : 0;
      const bytes = format ? count / format.block_columns * format.block_bytes : count * bits / 8;
      if (begin + offset + bytes > blob.size) fail(`tensor "${name}" ends behind the file`);
      return { name, shape, count, type: types[kind], scheme, foreign: types[kind] || scheme ? undefined : `ggml type ${kind}`, blob, start: begin + offset, bytes };
    });
    return { format: "gguf", tensors, metadata };
  });
}
