// SPDX-License-Identifier: Apache-2.0
// The package as its users get it: node --test, with the packed and installed package beside it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { EngineError, load } from "tensorcast";

const tc = await load();

test("numbers are rounded once", () => {
  assert.deepEqual([...tc.cast(new Float32Array([1, 0.1, 1e6, NaN]), "float8_e4m3fn")], [0x38, 0x1d, 0x7e, 0x7f]);
  assert.deepEqual(tc.cast(new Float64Array([1.5, -2.5]), "int8"), new Int8Array([1, -2]));
  assert.deepEqual(tc.cast(new Float32Array([1.5, 2.5]), "int64", { rounding: "nearest_away" }), new BigInt64Array([2n, 3n]));
  assert.deepEqual(tc.cast(new Float32Array([3]), "float32", { scale: 0.5 }), new Float32Array([1.5]));
  assert.deepEqual(tc.cast(new Float32Array(0), "int8"), new Int8Array(0));
});

test("bytes of types that JavaScript lacks", () => {
  assert.deepEqual(tc.cast(new Uint8Array([0x80, 0x3f]), "float32", { from: "bf16" }), new Float32Array([1]));
  const packed = tc.cast(new Float32Array([1, -2, 6]), "float4_e2m1fn");
  assert.deepEqual([...packed], [0xc2, 0x07]);
  assert.deepEqual(tc.cast(packed, "float32", { from: "float4_e2m1fn", count: 3 }), new Float32Array([1, -2, 6]));
  assert.throws(() => tc.cast(new Uint8Array(3), "float32", { from: "bfloat16" }), RangeError);
});

test("every code of 16 bits goes to float64 and back", () => {
  const codes = Uint16Array.from({ length: 65536 }, (_, i) => i);
  for (const name of ["float16", "bfloat16"]) {
    const numbers = tc.cast(codes, "float64", { from: name });
    const again = new Uint16Array(tc.cast(numbers, name).buffer);
    const wrong = codes.filter(code => again[code] !== code && !Number.isNaN(numbers[code]));
    assert.equal(wrong.length, 0, name);
  }
});

test("errors say what is wrong", () => {
  const error = caught(() => tc.cast(new Float32Array([1, 300]), "int8", { out_of_range: "error" }));
  assert.ok(error instanceof EngineError && error.code === "out_of_range" && error.message.includes("element 1"));
  assert.equal(caught(() => tc.cast(new Float32Array(1), "float9")).code, "invalid_argument");
  assert.throws(() => tc.cast([1, 2], "int8"), TypeError);
  assert.throws(() => tc.cast(new Float32Array(1), "int8", { rounds: 1 }), /no option "rounds"/);
  assert.throws(() => tc.cast(new Float32Array(1), "int8", { rounding: "up" }), /nearest_even/);
});

test("reports, explanations, promotions, blocks", () => {
  const { result, report } = tc.castWithReport(new Float32Array([1, 1e9]), "float16");
  assert.equal(result.byteLength, 4);
  assert.equal(report.overflowed, 1);
  assert.equal(tc.explain("0.1", { to: "float16" })[0].results[0].code, "0x2E66");
  assert.deepEqual(tc.promote("int64", "float16"), { type: "float16" });
  assert.ok(tc.promote("int64", "uint64").reason);
  const made = tc.quantize(Float32Array.from({ length: 64 }, (_, i) => i / 64), 32, "mxfp8");
  assert.deepEqual([made.codes.length, made.decoded.length], [64, 64]);
  assert.ok(tc.recipes().some(row => row.scheme === "nvfp4"));
  assert.throws(() => tc.quantize(new Float32Array(64), 63, "mxfp8"), RangeError);
});

test("the examples of the README give what their comments say", () => {
  const readme = readFileSync(new URL(import.meta.resolve("tensorcast")).pathname.replace("index.js", "README.md"), "utf8");
  const lines = readme.match(/```js\n([^]*?)```/)[1].split("\n").filter(line => line.startsWith("tc."));
  assert.equal(lines.length, 6);
  const made = lines.map(line => {
    try {
      return new Function("tc", `return ${line.split("; //")[0]}`)(tc);
    } catch (error) {
      return error.code;
    }
  });
  assert.deepEqual(made, [new Uint8Array([0x38, 0x1d, 0x7e]), new Float32Array([1]), "out_of_range", "0x2E66", "float16", 64]);
});

function caught(work) {
  try {
    work();
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was thrown");
}
