// SPDX-License-Identifier: Apache-2.0
// Damaged files for the page's readers, without a browser: node readers_fuzz.mjs PAGE_FOLDER MUTANTS [FILE...]
// Each is read as a file that is whole, whose conversion is whole too, or refused by a FileError. With FILEs instead,
// prints a line for each: the reason of the refusal, or "read".
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, mutants, ...given] = process.argv.slice(2);
const load = name => import(pathToFileURL(`${folder}/${name}`));
const { FileError } = await load("file_bytes.js");
const { openFile } = await load("file_open.js");
const { castPart, convert } = await load("file_work.js");

const bits = {
  float32: 32, float16: 16, bfloat16: 16, float64: 64, int8: 8, uint8: 8, int32: 32, int64: 64, bool: 8, float8_e4m3fn: 8, int16: 16,
  uint16: 16, uint32: 32, uint64: 64, float4_e2m1fn: 4, float8_e5m2: 8,
};
const row = name => ({ name, bits: bits[name], family: /float/.test(name) ? "float" : "integer", onnx_number: { float32: 1, float16: 10, int64: 7 }[name] });
const types = Object.keys(bits).map(row);
const block_formats = [{ scheme: "q8_0", spelling: "gguf", block_columns: 32, block_bytes: 34 }];
const engine = {  // of layouts alone: all numbers are zero
  byName: new Map(types.map(type => [type.name, type])), description: { block_formats, types },
  dequantize: (_scheme, piece) => new Uint8Array(piece.length / 34 * 128),
  report: (_bytes, _from, to, count) => ({ bytes: new Uint8Array(Math.ceil(count * bits[to] / 8)), report: { count, signal_power: 1, noise_power: 0 } }),
};
const crew = { start: async (_, { tensor, part, begin, to, options }) => ({ done: castPart(engine, tensor, part, begin, to, options) }) };

// Reads and converts; throws an Error, not a FileError, for a result that is not whole.
async function check(file) {
  const opened = await openFile(file, engine.description);
  for (const { name, type, count, bytes, start, blob, deflated, shape } of opened.tensors) {
    const whole = [count, bytes, start, ...shape].every(Number.isSafeInteger) && start >= 0 && bytes >= 0;
    if (!whole || (!deflated && bytes > 0 && start + bytes > blob.size)) throw new Error(`${name} is not in the file`);
    if (type && bytes !== count * bits[type] / 8) throw new Error(`${name} has ${bytes} bytes for ${count} of ${type}`);
  }
  if (opened.tensors.every(tensor => tensor.foreign)) return;
  const result = await convert(engine, opened.tensors, opened.metadata, "bfloat16", {}, () => {}, crew);
  const again = await openFile(new File([result.blob], "out.safetensors"), engine.description);
  if (again.tensors.length !== opened.tensors.filter(tensor => !tensor.foreign || tensor.foreign === "C64").length) throw new Error("tensors are missing");
}

if (given.length > 0) {
  for (const path of given) {
    const file = new File([fs.readFileSync(path)], path);
    console.log(await openFile(file, engine.description).then(() => "read", error => error instanceof FileError ? error.message : `BROKEN ${error.stack}`));
  }
  process.exit(0);
}

const text = words => new TextEncoder().encode(words);
const number = (bytes, value) => Uint8Array.from({ length: bytes }, (_, i) => Number(BigInt(value) >> BigInt(8 * i) & 255n));
const joined = async parts => new Uint8Array(await new Blob(parts).arrayBuffer());
const floats = new Uint8Array(Float32Array.from({ length: 64 }, (_, i) => i).buffer);
const safetensors = (header, data) => joined([number(8, header.length), text(header), data]);
const word = words => [number(8, words.length), text(words)];
const gguf = joined([
  text("GGUF"), number(4, 3), number(8, 2), number(8, 3), ...word("general.name"), number(4, 8), ...word("abc"),
  ...word("k"), number(4, 9), number(4, 4), number(8, 2), number(8, 7), ...word("general.alignment"), number(4, 4), number(4, 32),
  ...word("a"), number(4, 1), number(8, 4), number(4, 0), number(8, 0), ...word("b"), number(4, 2), number(8, 8), number(8, 2), number(4, 1),
  number(8, 32), new Uint8Array(32), floats.subarray(0, 80),
]);
const dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }".padEnd(117) + "\n";
const npy = joined([text("\u0093NUMPY").subarray(1), number(2, 1), number(2, dictionary.length), text(dictionary), floats.subarray(0, 16)]);
const seeds = [
  ["m.safetensors", safetensors('{"__metadata__":{"10":"x","2":"y"},"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[2,2],"data_offsets":[16,24]},"c":{"dtype":"F32","shape":[0],"data_offsets":[24,24]}}', floats.subarray(0, 24))],
  ["m.gguf", gguf], ["m.npy", npy],
];

let seed = 1;
const random = below => (seed = Math.imul(seed, 1103515245) + 12345 & 0x7fffffff) % below;
const counts = { read: 0, refused: 0 };
for (const [name, made] of seeds) {
  const original = await made;
  await check(new File([original], name));
  for (let i = 0; i < Number(mutants); ++i) {
    const bytes = original.slice(0, random(10) === 0 ? random(original.length) : original.length);
    for (let k = 0; k <= random(3); ++k) bytes[random(Math.min(bytes.length, 300))] = random(3) > 0 ? random(256) : [0, 255, 0x30 + random(10), 0x2d][random(4)];
    try {
      await check(new File([bytes], name));
      ++counts.read;
    } catch (error) {
      if (!(error instanceof FileError)) {
        console.error(`${name}, mutant ${i}: ${error.stack}\n${Buffer.from(bytes).toString("base64")}`);
        process.exit(1);
      }
      ++counts.refused;
    }
  }
}
console.log(JSON.stringify(counts));
