// SPDX-License-Identifier: Apache-2.0

/** An array of numbers whose type is that of its elements, or bytes of another type. */
export type Source =
  | Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint8ClampedArray | Uint16Array | Uint32Array | BigUint64Array;

/** What a type is: the same as `tcast types --json`. */
export interface DType {
  name: string;
  /** ONNX's number; from 1001 on of types that ONNX lacks. */
  number: number;
  /** Of one packed element; 0 for string. */
  bits: number;
  family: string;
  [fact: string]: unknown;
}

/** The options of a cast; `castOptions` lists them with their words and defaults. */
export interface CastOptions {
  opset?: number;
  saturate?: boolean;
  round_mode?: "up" | "down" | "nearest";
  out_of_range?: "auto" | "wrap" | "saturate" | "error";
  rounding?:
    | "auto" | "nearest_even" | "nearest_away" | "toward_zero" | "toward_positive" | "toward_negative" | "to_odd"
    | "stochastic";
  seed?: number | bigint;
  inexact?: "auto" | "error";
  invalid?: "default" | "error";
  fnuz_inf?: "spec" | "flt_max";
  scale?: number;
}

export interface SourceOptions extends CastOptions {
  /** What the bytes of the source are, if not its own type: `"bfloat16"`. Types under 8 bits are packed, low bits first. */
  from?: string;
  /** How many elements there are, where the last byte of a packed type is not full. */
  count?: number;
}

/** What happened to the numbers of a cast. */
export interface CastReport {
  count: number;
  overflowed: number;
  saturated: number;
  underflowed_to_zero: number;
  inexact: number;
  nan_made: number;
  nan_lost: number;
  wrapped: number;
  sign_lost: number;
  max_abs_error: number;
  max_rel_error: number;
  signal_power: number;
  noise_power: number;
  snr_db: number;
  [number: string]: number;
}

/** A weight in blocks that share scales. */
export interface Quantized {
  codes: Uint8Array;
  scales?: Uint8Array;
  elements?: Uint8Array;
  /** The numbers that codes and scales mean. */
  decoded: Float32Array;
  [part: string]: unknown;
}

export class EngineError extends Error {
  /** `"invalid_argument"`, `"unsupported"`, `"out_of_range"`, `"parse"`, `"io"`, `"internal"`, `"cancelled"`. */
  readonly code: string;
}

export interface Tensorcast {
  readonly types: readonly DType[];
  readonly castOptions: readonly { name: string; kind: string; words?: string[]; default: number; help: string }[];
  /** The result is a typed array where JavaScript has the type, else the bytes as the library stores them. */
  cast(source: Source, to: string, options?: SourceOptions): Source;
  castWithReport(source: Source, to: string, options?: SourceOptions): { result: Source; report: CastReport };
  /** What `tcast explain --json` prints. */
  explain(literal: string, options?: { from?: string; to?: string } & CastOptions): any[];
  /** The common type, or the reason why there is none. */
  promote(a: string, b: string, options?: Record<string, unknown>): { type?: string; reason?: string };
  quantize(weight: Float32Array, columns: number, scheme: string, recipe?: string): Quantized;
  recipes(): { scheme: string; recipe: string; [word: string]: unknown }[];
  /** The numbers of whole blocks of a GGUF type. */
  dequantizeGguf(blocks: Uint8Array, scheme: string, to?: string): Source;
}

/** Starts the modules, once. */
export function load(): Promise<Tensorcast>;
