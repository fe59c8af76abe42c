// SPDX-License-Identifier: Apache-2.0
// What a program in TypeScript writes, and mistakes that the types find. Checked, not run: package_test.js runs calls.
import { EngineError, load, type CastReport, type Quantized, type Source, type Tensorcast } from "tensorcast";

const tc: Tensorcast = await load();

const codes: Source = tc.cast(new Float32Array([1, 2.5]), "float16", { rounding: "to_odd", inexact: "error" });
const numbers = tc.cast(new Uint8Array([0x21]), "float32", { from: "float4_e2m1", count: 2, seed: 1n });
const { report }: { report: CastReport } = tc.castWithReport(new Float64Array(3), "float8_e4m3fn", { scale: 0.5 });
const lost: number = report.saturated + report.underflowed_to_zero;

const weight: Quantized = tc.quantize(new Float32Array(32), 32, "mxfp8");
const scales: Uint8Array | undefined = weight.scales;
const schemes: string[] = tc.recipes().map(({ scheme, recipe }) => `${scheme}:${recipe}`);
const narrow: string[] = tc.types.filter((type) => type.bits < 8).map((type) => type.name);
const common = tc.promote("float16", "bfloat16");
const said: string = common.type ?? common.reason ?? "";

try {
  tc.explain("0.1", { to: "float8_e4m3fn", rounding: "toward_zero" });
} catch (error) {
  if (error instanceof EngineError && error.code === "unsupported") throw error;
}

// @ts-expect-error: there is no such word of rounding
tc.cast(new Float32Array(1), "float16", { rounding: "up" });
// @ts-expect-error: numbers come in an array that has a type
tc.cast([1, 2], "float16");
// @ts-expect-error: the columns of a weight are missing
tc.quantize(new Float32Array(32), "mxfp8");
// @ts-expect-error: the modules are not started yet
load().cast(new Float32Array(1), "float16");

export { codes, lost, narrow, numbers, said, scales, schemes };
