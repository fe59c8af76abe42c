// SPDX-License-Identifier: Apache-2.0
// Made by scripts/make/rust-bindings from the headers of the C interface.

use core::ffi::{c_char, c_int, c_void};

pub type tc_dtype = i32;
pub const TC_UNDEFINED: tc_dtype = 0;
pub const TC_FLOAT32: tc_dtype = 1;
pub const TC_UINT8: tc_dtype = 2;
pub const TC_INT8: tc_dtype = 3;
pub const TC_UINT16: tc_dtype = 4;
pub const TC_INT16: tc_dtype = 5;
pub const TC_INT32: tc_dtype = 6;
pub const TC_INT64: tc_dtype = 7;
pub const TC_STRING: tc_dtype = 8;
pub const TC_BOOL: tc_dtype = 9;
pub const TC_FLOAT16: tc_dtype = 10;
pub const TC_FLOAT64: tc_dtype = 11;
pub const TC_UINT32: tc_dtype = 12;
pub const TC_UINT64: tc_dtype = 13;
pub const TC_BFLOAT16: tc_dtype = 16;
pub const TC_FLOAT8_E4M3FN: tc_dtype = 17;
pub const TC_FLOAT8_E4M3FNUZ: tc_dtype = 18;
pub const TC_FLOAT8_E5M2: tc_dtype = 19;
pub const TC_FLOAT8_E5M2FNUZ: tc_dtype = 20;
pub const TC_UINT4: tc_dtype = 21;
pub const TC_INT4: tc_dtype = 22;
pub const TC_FLOAT4_E2M1FN: tc_dtype = 23;
pub const TC_FLOAT8_E8M0FNU: tc_dtype = 24;
pub const TC_UINT2: tc_dtype = 25;
pub const TC_INT2: tc_dtype = 26;
pub const TC_FLOAT6_E2M3FN: tc_dtype = 27;
pub const TC_FLOAT6_E3M2FN: tc_dtype = 28;
pub const TC_UINT1: tc_dtype = 1001;
pub const TC_FLOAT8_E4M3: tc_dtype = 1002;
pub const TC_FLOAT8_E3M4: tc_dtype = 1003;
pub const TC_FLOAT8_E4M3B11FNUZ: tc_dtype = 1004;
pub const TC_FLOAT8_E5M3FNU: tc_dtype = 1005;
pub const TC_BINARY8P4SE: tc_dtype = 1006;
pub const TC_BINARY8P3SE: tc_dtype = 1007;
pub type tc_status = c_int;
pub const TC_OK: tc_status = 0;
pub const TC_INVALID_ARGUMENT: tc_status = 1;
pub const TC_UNSUPPORTED: tc_status = 2;
pub const TC_OUT_OF_RANGE: tc_status = 3;
pub const TC_PARSE: tc_status = 4;
pub const TC_IO: tc_status = 5;
pub const TC_INTERNAL: tc_status = 6;
pub const TC_CANCELLED: tc_status = 7;
pub const TC_ROUND_UP: i32 = 0;
pub const TC_ROUND_DOWN: i32 = 1;
pub const TC_ROUND_NEAREST: i32 = 2;
pub const TC_RANGE_AUTO: i32 = 0;
pub const TC_RANGE_WRAP: i32 = 1;
pub const TC_RANGE_SATURATE: i32 = 2;
pub const TC_RANGE_ERROR: i32 = 3;
pub const TC_ROUNDING_AUTO: i32 = 0;
pub const TC_ROUNDING_NEAREST_EVEN: i32 = 1;
pub const TC_ROUNDING_NEAREST_AWAY: i32 = 2;
pub const TC_ROUNDING_TOWARD_ZERO: i32 = 3;
pub const TC_ROUNDING_TOWARD_POSITIVE: i32 = 4;
pub const TC_ROUNDING_TOWARD_NEGATIVE: i32 = 5;
pub const TC_ROUNDING_TO_ODD: i32 = 6;
pub const TC_ROUNDING_STOCHASTIC: i32 = 7;
pub const TC_INEXACT_AUTO: i32 = 0;
pub const TC_INEXACT_ERROR: i32 = 1;
pub const TC_INVALID_DEFAULT: i32 = 0;
pub const TC_INVALID_ERROR: i32 = 1;
pub const TC_FNUZ_INF_SPEC: i32 = 0;
pub const TC_FNUZ_INF_FLT_MAX: i32 = 1;
pub const TC_STRING_PLAIN: i32 = 0;
pub const TC_STRING_SHORTEST: i32 = 1;
pub const TC_STRING_G8: i32 = 2;
pub const TC_RULES_OPENVINO: i32 = 0;
pub const TC_RULES_NUMPY: i32 = 1;
pub const TC_RULES_TORCH: i32 = 2;
pub const TC_RULES_JAX: i32 = 3;
pub const TC_RULES_JAX_STRICT: i32 = 4;
pub const TC_RULES_TENSORFLOW: i32 = 5;
pub type tc_task = Option<unsafe extern "C" fn(work: *mut c_void, index: usize)>;
pub type tc_executor = Option<unsafe extern "C" fn(executor_data: *mut c_void, count: usize, task: tc_task, work: *mut c_void)>;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_cast_options {
    pub struct_size: usize,
    pub opset: i32,
    pub saturate: i32,
    pub round_mode: i32,
    pub out_of_range: i32,
    pub rounding: i32,
    pub invalid: i32,
    pub fnuz_inf: i32,
    pub float_string: i32,
    pub threads: i32,
    pub scale: f64,
    pub executor: tc_executor,
    pub executor_data: *mut c_void,
    pub seed: u64,
    pub inexact: i32,
    pub first_element: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_prepared_cast {
    pub opaque: [u64; 10],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_cast_report {
    pub struct_size: usize,
    pub count: u64,
    pub overflowed: u64,
    pub saturated: u64,
    pub underflowed_to_zero: u64,
    pub inexact: u64,
    pub nan_made: u64,
    pub nan_lost: u64,
    pub wrapped: u64,
    pub max_abs_error: f64,
    pub max_rel_error: f64,
    pub signal_power: f64,
    pub noise_power: f64,
    pub snr_db: f64,
    pub sign_lost: u64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_promote_options {
    pub struct_size: usize,
    pub promote_unsafe: i32,
    pub pytorch_scalar_promotion: i32,
    pub u64_integer_promotion_target: tc_dtype,
    pub rules: i64,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_dtype_facts {
    pub struct_size: usize,
    pub dtype: tc_dtype,
    pub family: i32,
    pub bits: i32,
    pub is_signed: i32,
    pub exponent_bits: i32,
    pub mantissa_bits: i32,
    pub bias: i32,
    pub has_infinity: i32,
    pub has_nan: i32,
    pub since_opset: i32,
    pub lowest: f64,
    pub largest: f64,
    pub smallest_positive: f64,
    pub name: *const c_char,
    pub special_codes: *const c_char,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_array {
    pub data: *const c_void,
    pub shape: *const i64,
    pub rank: usize,
    pub dtype: tc_dtype,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_block_tensor {
    pub struct_size: usize,
    pub scheme: *const c_char,
    pub spelling: *const c_char,
    pub shape: *const i64,
    pub rank: usize,
    pub block_rows: i64,
    pub block_columns: i64,
    pub codes: tc_array,
    pub scales: tc_array,
    pub global_scale: tc_array,
    pub zero_points: tc_array,
    pub biases: tc_array,
    pub group_index: tc_array,
    pub table: tc_array,
    pub is_plain: i32,
}
#[repr(C)]
pub struct tc_prepared_dequantize {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_quantize_options {
    pub struct_size: usize,
    pub recipe: *const c_char,
    pub group_size: i64,
    pub compute_dtype: tc_dtype,
    pub is_asymmetric: i32,
    pub power_of_two_scales: i32,
    pub allows_nonfinite: i32,
    pub to_gguf: i32,
    pub threads: i32,
    pub clip: i32,
    pub importance: *const f32,
    pub importance_count: usize,
    pub maximum: *const f32,
}
#[repr(C)]
pub struct tc_quantized {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_quantized_parts {
    pub struct_size: usize,
    pub recipe: *const c_char,
    pub codes: tc_array,
    pub scales: tc_array,
    pub zero_points: tc_array,
    pub global_scale: f32,
    pub has_global_scale: i32,
    pub global_is_divisor: i32,
    pub scheme: *const c_char,
    pub spelling: *const c_char,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_quantized_layout {
    pub struct_size: usize,
    pub rows: i64,
    pub codes_bytes: usize,
    pub codes_row_bytes: usize,
    pub scales_bytes: usize,
    pub zero_points_bytes: usize,
    pub block_rows: i64,
    pub codes_dtype: tc_dtype,
    pub scales_dtype: tc_dtype,
    pub global_scale: f32,
    pub has_global_scale: i32,
    pub spelling: *const c_char,
    pub block_columns: i64,
    pub global_is_divisor: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_quantized_buffers {
    pub struct_size: usize,
    pub codes: *mut c_void,
    pub codes_bytes: usize,
    pub scales: *mut c_void,
    pub scales_bytes: usize,
    pub zero_points: *mut i8,
    pub zero_points_bytes: usize,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_source {
    pub struct_size: usize,
    pub context: *mut c_void,
    pub size: u64,
    pub read: Option<unsafe extern "C" fn(context: *mut c_void, offset: u64, dst: *mut c_void, bytes: usize) -> tc_status>,
}
#[repr(C)]
pub struct tc_convert_request {
    _private: [u8; 0],
}
pub type tc_convert_flag = c_int;
pub const TC_CONVERT_OVERWRITE: tc_convert_flag = 1;
pub const TC_CONVERT_PARENTS: tc_convert_flag = 2;
pub const TC_CONVERT_ALLOW_ODD: tc_convert_flag = 3;
pub const TC_CONVERT_RAW_CODES: tc_convert_flag = 4;
pub const TC_CONVERT_REFUSE_WRAP: tc_convert_flag = 5;
pub const TC_CONVERT_DRY_RUN: tc_convert_flag = 6;
pub const TC_CONVERT_REPORT: tc_convert_flag = 7;
pub const TC_CONVERT_VERIFY: tc_convert_flag = 8;
pub const TC_CONVERT_TELL_LOSS: tc_convert_flag = 9;
pub const TC_CONVERT_FAIL_LOSS: tc_convert_flag = 10;
pub type tc_progress = Option<unsafe extern "C" fn(progress_data: *mut c_void, bytes_done: u64, bytes_total: u64, tensor: *const c_char) -> c_int>;
#[repr(C)]
pub struct tc_convert_outcome {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_tensor_outcome {
    pub struct_size: usize,
    pub name: *const c_char,
    pub from: tc_dtype,
    pub to: tc_dtype,
    pub shape: *const i64,
    pub rank: usize,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub reason: *const c_char,
    pub damage: *const c_char,
    pub remedy: *const c_char,
    pub is_left: i32,
    pub has_report: i32,
}
#[repr(C)]
pub struct tc_file {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_open_options {
    pub struct_size: usize,
    pub source: *const tc_source,
    pub format: *const c_char,
    pub shape: *const i64,
    pub rank: usize,
    pub from: tc_dtype,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_tensor_info {
    pub struct_size: usize,
    pub name: *const c_char,
    pub shape: *const i64,
    pub rank: usize,
    pub bytes: u64,
    pub foreign_dtype: *const c_char,
    pub problem: *const c_char,
    pub dtype: tc_dtype,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_write_options {
    pub struct_size: usize,
    pub format: *const c_char,
    pub metadata_names: *const *const c_char,
    pub metadata_texts: *const *const c_char,
    pub metadata_count: usize,
    pub overwrite: i32,
    pub parents: i32,
}
#[repr(C)]
pub struct tc_quantized_file {
    _private: [u8; 0],
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_quantized_layer {
    pub struct_size: usize,
    pub name: *const c_char,
    pub spelling: *const c_char,
    pub scheme: *const c_char,
    pub shape: *const i64,
    pub rank: usize,
    pub block_rows: i64,
    pub block_columns: i64,
    pub part_count: usize,
    pub problem: *const c_char,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_quantized_part {
    pub struct_size: usize,
    pub role: *const c_char,
    pub name: *const c_char,
    pub shape: *const i64,
    pub rank: usize,
    pub bytes: u64,
    pub dtype: tc_dtype,
}
pub const TC_RUNTIME_ONNXRUNTIME_CPU: i32 = 0;
pub const TC_RUNTIME_ONNXRUNTIME_CUDA: i32 = 1;
pub const TC_RUNTIME_TENSORRT: i32 = 2;
pub const TC_RUNTIME_OPENVINO: i32 = 3;
pub const TC_RUNTIME_ANY: i32 = 4;
pub const TC_OVERFLOW_KEEP_HIGH: i32 = 0;
pub const TC_OVERFLOW_CLAMP: i32 = 1;
pub const TC_OVERFLOW_INF: i32 = 2;
pub const TC_OVERFLOW_ERROR: i32 = 3;
pub type tc_onnx_progress = Option<unsafe extern "C" fn(progress_data: *mut c_void) -> c_int>;
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_onnx_convert_options {
    pub struct_size: usize,
    pub weights_scheme: *const c_char,
    pub keep: *const *const c_char,
    pub keep_count: usize,
    pub only: *const *const c_char,
    pub only_count: usize,
    pub keep_io_names: *const *const c_char,
    pub keep_io_name_count: usize,
    pub progress: tc_onnx_progress,
    pub progress_data: *mut c_void,
    pub opset: i64,
    pub runtime: i32,
    pub on_overflow: i32,
    pub keep_io_types: i32,
    pub weights_only: i32,
    pub overwrite: i32,
    pub dry_run: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tc_onnx_convert_outcome {
    pub struct_size: usize,
    pub nodes: u64,
    pub nodes_converted: u64,
    pub nodes_kept: u64,
    pub casts_before: u64,
    pub casts_added: u64,
    pub casts_removed: u64,
    pub casts_after: u64,
    pub initializers_converted: u64,
    pub initializer_bytes_before: u64,
    pub initializer_bytes_after: u64,
    pub opset_before: i64,
    pub opset_after: i64,
    pub to: tc_dtype,
}

unsafe extern "C" {
    pub fn tc_cast_options_init(options: *mut tc_cast_options);
    pub fn tc_cast_options_init_sized(options: *mut tc_cast_options, size: usize);
    pub fn tc_storage_bytes(dtype: tc_dtype, count: usize) -> usize;
    pub fn tc_cast(src: *const c_void, from: tc_dtype, dst: *mut c_void, to: tc_dtype, count: usize, options: *const tc_cast_options) -> tc_status;
    pub fn tc_prepare_cast(from: tc_dtype, to: tc_dtype, options: *const tc_cast_options, prepared: *mut tc_prepared_cast) -> tc_status;
    pub fn tc_run_prepared(prepared: *const tc_prepared_cast, src: *const c_void, dst: *mut c_void, count: usize) -> tc_status;
    pub fn tc_cast_strided(src: *const c_void, from: tc_dtype, src_strides: *const i64, dst: *mut c_void, to: tc_dtype, dst_strides: *const i64, shape: *const i64, rank: usize, options: *const tc_cast_options) -> tc_status;
    pub fn tc_cast_scaled(src: *const c_void, from: tc_dtype, src_strides: *const i64, dst: *mut c_void, to: tc_dtype, dst_strides: *const i64, scales: *const c_void, scale_type: tc_dtype, scale_strides: *const i64, shape: *const i64, rank: usize, options: *const tc_cast_options) -> tc_status;
    pub fn tc_cast_report_init(report: *mut tc_cast_report);
    pub fn tc_cast_report_init_sized(report: *mut tc_cast_report, size: usize);
    pub fn tc_cast_with_report(src: *const c_void, from: tc_dtype, dst: *mut c_void, to: tc_dtype, count: usize, options: *const tc_cast_options, report: *mut tc_cast_report) -> tc_status;
    pub fn tc_cast_from_strings(data: *const c_char, offsets: *const i64, dst: *mut c_void, to: tc_dtype, count: usize, options: *const tc_cast_options) -> tc_status;
    pub fn tc_cast_to_strings(src: *const c_void, from: tc_dtype, count: usize, data: *mut *mut c_char, offsets: *mut *mut i64, options: *const tc_cast_options) -> tc_status;
    pub fn tc_free(memory: *mut c_void);
    pub fn tc_promote_options_init(options: *mut tc_promote_options);
    pub fn tc_promote_options_init_sized(options: *mut tc_promote_options, size: usize);
    pub fn tc_promote(a: tc_dtype, a_is_scalar: c_int, b: tc_dtype, b_is_scalar: c_int, options: *const tc_promote_options, common: *mut tc_dtype) -> tc_status;
    pub fn tc_promote_tensors(a: *const c_void, a_dtype: tc_dtype, a_count: usize, a_is_scalar: c_int, b: *const c_void, b_dtype: tc_dtype, b_count: usize, b_is_scalar: c_int, promotion: *const tc_promote_options, options: *const tc_cast_options, common: *mut tc_dtype, a_result: *mut *mut c_void, b_result: *mut *mut c_void) -> tc_status;
    pub fn tc_dtype_get_facts(dtype: tc_dtype, facts: *mut tc_dtype_facts) -> tc_status;
    pub fn tc_dtype_at(index: usize) -> tc_dtype;
    pub fn tc_dtype_spelling(dtype: tc_dtype, index: usize) -> *const c_char;
    pub fn tc_explain(literal: *const c_char, from: tc_dtype, to: tc_dtype, options: *const tc_cast_options, json: *mut *mut c_char) -> tc_status;
    pub fn tc_describe(json: *mut *mut c_char) -> tc_status;
    pub fn tc_last_error() -> *const c_char;
    pub fn tc_last_error_code() -> tc_status;
    pub fn tc_last_error_message() -> *const c_char;
    pub fn tc_last_error_hint() -> *const c_char;
    pub fn tc_last_error_tensor() -> *const c_char;
    pub fn tc_last_error_file() -> *const c_char;
    pub fn tc_last_error_element() -> i64;
    pub fn tc_last_error_system_error() -> i32;
    pub fn tc_dtype_name(dtype: tc_dtype) -> *const c_char;
    pub fn tc_dtype_parse(spelling: *const c_char) -> tc_dtype;
    pub fn tc_version() -> *const c_char;
    pub fn tc_dequantize(tensor: *const tc_block_tensor, first: i64, rows: i64, dst: *mut c_void, to: tc_dtype, options: *const tc_cast_options) -> tc_status;
    pub fn tc_prepare_dequantize(tensor: *const tc_block_tensor, to: tc_dtype, options: *const tc_cast_options, prepared: *mut *mut tc_prepared_dequantize) -> tc_status;
    pub fn tc_dequantize_rows(prepared: *mut tc_prepared_dequantize, codes: *const c_void, first: i64, rows: i64, dst: *mut c_void) -> tc_status;
    pub fn tc_prepared_dequantize_free(prepared: *mut tc_prepared_dequantize);
    pub fn tc_quantize(weight: *const tc_array, scheme: *const c_char, options: *const tc_quantize_options, quantized: *mut *mut tc_quantized) -> tc_status;
    pub fn tc_quantized_free(quantized: *mut tc_quantized);
    pub fn tc_quantized_get(quantized: *const tc_quantized, parts: *mut tc_quantized_parts) -> tc_status;
    pub fn tc_quantized_block_tensor(quantized: *const tc_quantized, tensor: *mut tc_block_tensor) -> tc_status;
    pub fn tc_quantized_sizes(scheme: *const c_char, shape: *const i64, rank: usize, options: *const tc_quantize_options, layout: *mut tc_quantized_layout) -> tc_status;
    pub fn tc_quantize_rows(scheme: *const c_char, rows: *const tc_array, first_row: i64, out: *const tc_quantized_buffers, options: *const tc_quantize_options) -> tc_status;
    pub fn tc_convert_request_new() -> *mut tc_convert_request;
    pub fn tc_convert_request_free(request: *mut tc_convert_request);
    pub fn tc_convert_request_set_input(request: *mut tc_convert_request, path: *const c_char) -> tc_status;
    pub fn tc_convert_request_set_source(request: *mut tc_convert_request, source: *const tc_source) -> tc_status;
    pub fn tc_convert_request_set_output(request: *mut tc_convert_request, path: *const c_char) -> tc_status;
    pub fn tc_convert_request_set_to(request: *mut tc_convert_request, to: tc_dtype) -> tc_status;
    pub fn tc_convert_request_set_scheme(request: *mut tc_convert_request, scheme: *const c_char, recipe: *const c_char, spelling: *const c_char) -> tc_status;
    pub fn tc_convert_request_set_budget(request: *mut tc_convert_request, bits: f64, candidates: *const c_char, spelling: *const c_char) -> tc_status;
    pub fn tc_convert_request_set_search(request: *mut tc_convert_request, clip: i32, importance: *const c_char) -> tc_status;
    pub fn tc_convert_request_set_options(request: *mut tc_convert_request, options: *const tc_cast_options) -> tc_status;
    pub fn tc_convert_request_add_rule(request: *mut tc_convert_request, pattern: *const c_char, to: tc_dtype) -> tc_status;
    pub fn tc_convert_request_add_scaled_rule(request: *mut tc_convert_request, pattern: *const c_char, to: tc_dtype, scale: f64) -> tc_status;
    pub fn tc_convert_request_add_include(request: *mut tc_convert_request, pattern: *const c_char) -> tc_status;
    pub fn tc_convert_request_add_exclude(request: *mut tc_convert_request, pattern: *const c_char) -> tc_status;
    pub fn tc_convert_request_set_raw(request: *mut tc_convert_request, dtype: tc_dtype, shape: *const i64, rank: usize) -> tc_status;
    pub fn tc_convert_request_set_from(request: *mut tc_convert_request, tensor: *const c_char, dtype: tc_dtype) -> tc_status;
    pub fn tc_convert_request_set_input_format(request: *mut tc_convert_request, format: *const c_char) -> tc_status;
    pub fn tc_convert_request_set_output_format(request: *mut tc_convert_request, format: *const c_char) -> tc_status;
    pub fn tc_convert_request_set_flag(request: *mut tc_convert_request, flag: i32, is_on: c_int) -> tc_status;
    pub fn tc_convert_request_set_zero_limit(request: *mut tc_convert_request, share: f64) -> tc_status;
    pub fn tc_convert_request_set_progress(request: *mut tc_convert_request, progress: tc_progress, progress_data: *mut c_void) -> tc_status;
    pub fn tc_convert(request: *const tc_convert_request, outcome: *mut *mut tc_convert_outcome) -> tc_status;
    pub fn tc_convert_outcome_free(outcome: *mut tc_convert_outcome);
    pub fn tc_convert_outcome_input_format(outcome: *const tc_convert_outcome) -> *const c_char;
    pub fn tc_convert_outcome_output_format(outcome: *const tc_convert_outcome) -> *const c_char;
    pub fn tc_convert_outcome_bytes_read(outcome: *const tc_convert_outcome) -> u64;
    pub fn tc_convert_outcome_bytes_written(outcome: *const tc_convert_outcome) -> u64;
    pub fn tc_convert_outcome_is_verified(outcome: *const tc_convert_outcome) -> c_int;
    pub fn tc_convert_outcome_tensor_count(outcome: *const tc_convert_outcome) -> usize;
    pub fn tc_convert_outcome_tensor(outcome: *const tc_convert_outcome, index: usize, tensor: *mut tc_tensor_outcome) -> tc_status;
    pub fn tc_convert_outcome_report(outcome: *const tc_convert_outcome, index: usize, report: *mut tc_cast_report) -> tc_status;
    pub fn tc_file_open(path: *const c_char, file: *mut *mut tc_file) -> tc_status;
    pub fn tc_file_open_source(source: *const tc_source, name: *const c_char, file: *mut *mut tc_file) -> tc_status;
    pub fn tc_file_open_with(path: *const c_char, options: *const tc_open_options, file: *mut *mut tc_file) -> tc_status;
    pub fn tc_file_close(file: *mut tc_file);
    pub fn tc_file_count(file: *const tc_file) -> usize;
    pub fn tc_file_format(file: *const tc_file) -> *const c_char;
    pub fn tc_file_tensor(file: *const tc_file, index: usize, info: *mut tc_tensor_info) -> tc_status;
    pub fn tc_file_read(file: *mut tc_file, index: usize, first: u64, count: u64, dst: *mut c_void, dst_bytes: usize, to: tc_dtype, options: *const tc_cast_options) -> tc_status;
    pub fn tc_file_read_slice(file: *mut tc_file, index: usize, begin: *const u64, end: *const u64, ranges: usize, dst: *mut c_void, dst_bytes: usize, to: tc_dtype, options: *const tc_cast_options) -> tc_status;
    pub fn tc_write_file(path: *const c_char, names: *const *const c_char, arrays: *const tc_array, count: usize, options: *const tc_write_options) -> tc_status;
    pub fn tc_quantized_file_open(path: *const c_char, file: *mut *mut tc_quantized_file) -> tc_status;
    pub fn tc_quantized_file_open_source(source: *const tc_source, name: *const c_char, file: *mut *mut tc_quantized_file) -> tc_status;
    pub fn tc_quantized_file_close(file: *mut tc_quantized_file);
    pub fn tc_quantized_file_layer_count(file: *const tc_quantized_file) -> usize;
    pub fn tc_quantized_file_layer(file: *const tc_quantized_file, layer: usize, description: *mut tc_quantized_layer) -> tc_status;
    pub fn tc_quantized_file_part(file: *const tc_quantized_file, layer: usize, part: usize, description: *mut tc_quantized_part) -> tc_status;
    pub fn tc_quantized_file_read_part(file: *mut tc_quantized_file, layer: usize, part: usize, dst: *mut c_void) -> tc_status;
    pub fn tc_quantized_file_dequantize(file: *mut tc_quantized_file, layer: usize, first: u64, count: u64, dst: *mut c_void, to: tc_dtype, options: *const tc_cast_options) -> tc_status;
    pub fn tc_quantized_file_dequantize_slice(file: *mut tc_quantized_file, layer: usize, begin: *const u64, end: *const u64, ranges: usize, dst: *mut c_void, dst_bytes: usize, to: tc_dtype, options: *const tc_cast_options) -> tc_status;
    pub fn tc_onnx_convert(input: *const c_char, output: *const c_char, to: tc_dtype, options: *const tc_onnx_convert_options, outcome: *mut tc_onnx_convert_outcome) -> tc_status;
}
