/* SPDX-License-Identifier: Apache-2.0 */
/* Component core. The C interface of tensorcast. Stable: numbers and layouts never change, structs only grow at
 * their end. */
#ifndef TENSORCAST_C_API_H
#define TENSORCAST_C_API_H

#include <stddef.h>
#include <stdint.h>

#if !defined(_WIN32)
#define TC_API __attribute__((visibility("default")))
#elif !defined(TC_API) /* the build of a DLL defines it */
#define TC_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ONNX TensorProto.DataType, named below: 1 float32, 2 uint8, 3 int8, 4 uint16, 5 int16, 6 int32, 7 int64, 8 string, 9
   bool, 10 float16, 11 float64, 12 uint32, 13 uint64, 16 bfloat16, 17 float8_e4m3fn, 18 float8_e4m3fnuz, 19
   float8_e5m2, 20 float8_e5m2fnuz, 21 uint4, 22 int4, 23 float4_e2m1fn, 24 float8_e8m0fnu, 25 uint2, 26 int2, 27
   float6_e2m3fn, 28 float6_e3m2fn. From 1001 on, types that ONNX lacks: 1001 is OpenVINO's u1 (tc_promote accepts it,
   tc_cast does not), 1002 float8_e4m3 (IEEE's), 1003 float8_e3m4, 1004 float8_e4m3b11fnuz, 1005 float8_e5m3fnu (CUDA's
   UE5M3), 1006 binary8p4se and 1007 binary8p3se (IEEE P3109's). */
typedef int32_t tc_dtype;

enum {
  TC_UNDEFINED = 0,
  TC_FLOAT32 = 1,
  TC_UINT8 = 2,
  TC_INT8 = 3,
  TC_UINT16 = 4,
  TC_INT16 = 5,
  TC_INT32 = 6,
  TC_INT64 = 7,
  TC_STRING = 8,
  TC_BOOL = 9,
  TC_FLOAT16 = 10,
  TC_FLOAT64 = 11,
  TC_UINT32 = 12,
  TC_UINT64 = 13,
  TC_BFLOAT16 = 16,
  TC_FLOAT8_E4M3FN = 17,
  TC_FLOAT8_E4M3FNUZ = 18,
  TC_FLOAT8_E5M2 = 19,
  TC_FLOAT8_E5M2FNUZ = 20,
  TC_UINT4 = 21,
  TC_INT4 = 22,
  TC_FLOAT4_E2M1FN = 23,
  TC_FLOAT8_E8M0FNU = 24,
  TC_UINT2 = 25,
  TC_INT2 = 26,
  TC_FLOAT6_E2M3FN = 27,
  TC_FLOAT6_E3M2FN = 28,
  TC_UINT1 = 1001,
  TC_FLOAT8_E4M3 = 1002,
  TC_FLOAT8_E3M4 = 1003,
  TC_FLOAT8_E4M3B11FNUZ = 1004,
  TC_FLOAT8_E5M3FNU = 1005,
  TC_BINARY8P4SE = 1006,
  TC_BINARY8P3SE = 1007
};

typedef enum {
  TC_OK = 0,
  TC_INVALID_ARGUMENT = 1, /* null buffer, unknown type or option value */
  TC_UNSUPPORTED = 2,      /* a type or attribute newer than the opset, a promotion that the rules do not allow */
  TC_OUT_OF_RANGE = 3,     /* the target cannot hold an element, and the options demand an error */
  TC_PARSE = 4,            /* a string that is not a number */
  TC_IO = 5,
  TC_INTERNAL = 6, /* out of memory, or a defect of tensorcast */
  TC_CANCELLED = 7 /* a progress function asked for it */
} tc_status;

/* Values of the fields of tc_cast_options and tc_promote_options. */
enum { TC_ROUND_UP = 0, TC_ROUND_DOWN = 1, TC_ROUND_NEAREST = 2 };
enum { TC_RANGE_AUTO = 0, TC_RANGE_WRAP = 1, TC_RANGE_SATURATE = 2, TC_RANGE_ERROR = 3 };
enum {
  TC_ROUNDING_AUTO = 0,
  TC_ROUNDING_NEAREST_EVEN = 1,
  TC_ROUNDING_NEAREST_AWAY = 2,
  TC_ROUNDING_TOWARD_ZERO = 3,
  TC_ROUNDING_TOWARD_POSITIVE = 4,
  TC_ROUNDING_TOWARD_NEGATIVE = 5,
  TC_ROUNDING_TO_ODD = 6,
  TC_ROUNDING_STOCHASTIC = 7
};
enum { TC_INEXACT_AUTO = 0, TC_INEXACT_ERROR = 1 };
enum { TC_INVALID_DEFAULT = 0, TC_INVALID_ERROR = 1 };
enum { TC_FNUZ_INF_SPEC = 0, TC_FNUZ_INF_FLT_MAX = 1 };
enum { TC_STRING_PLAIN = 0, TC_STRING_SHORTEST = 1, TC_STRING_G8 = 2 };
enum {
  TC_RULES_OPENVINO = 0,
  TC_RULES_NUMPY = 1,
  TC_RULES_TORCH = 2,
  TC_RULES_JAX = 3,
  TC_RULES_JAX_STRICT = 4,
  TC_RULES_TENSORFLOW = 5
};

/* One task of a call, to be run once; never fails. */
typedef void (*tc_task)(void* work, size_t index);

/* A pool of threads of the caller: runs task(work, 0) ... task(work, count - 1), each once, in any order, on any
   threads, and returns when all have returned. Several threads may call it at once. If a task is left out, the call
   that needed the pool fails with TC_INTERNAL, as any call does whose callback throws an exception of C++. */
typedef void (*tc_executor)(void* executor_data, size_t count, tc_task task, void* work);

/* Structs grow at their end. What a library reads beyond the end of an older caller's struct are the defaults. A newer
   caller's fields, which the library does not know, must be zero, else the call fails with TC_INVALID_ARGUMENT; the
   default of every new field is zero. A struct_size below the first release's is refused.
   A struct gets its defaults in its definition, tc_cast_options options = TC_CAST_OPTIONS_INIT; or later, by
   tc_cast_options_init(&options). Zeros alone are no defaults. */
typedef struct tc_cast_options {
  size_t struct_size;   /* sizeof(tc_cast_options): lets the struct grow */
  int32_t opset;        /* 0 = newest */
  int32_t saturate;     /* 1 */
  int32_t round_mode;   /* 0 up, 1 down, 2 nearest */
  int32_t out_of_range; /* of every source and target: 0 auto, 1 wrap, 2 saturate, 3 error */
  int32_t rounding;     /* 0 auto, 1 nearest_even, 2 nearest_away, 3 toward_zero, 4 toward_positive, 5 toward_negative,
                           6 to_odd, 7 stochastic */
  int32_t invalid;      /* 0 default, 1 error */
  int32_t fnuz_inf;     /* 0 spec, 1 flt_max */
  int32_t float_string; /* 0 plain, 1 shortest, 2 g8 */
  int32_t threads;      /* 0 = all cores; 1: the calling thread alone; below 0: an error */
  double scale;         /* 1.0; finite, and not 0, which is the scale of a struct without its defaults */
  tc_executor executor; /* NULL: the library's own threads; not used if threads is 1 */
  void* executor_data;  /* handed to executor */
  uint64_t seed;        /* of stochastic rounding, and of no other */
  int32_t inexact;      /* numbers whose value would change: 0 auto, 1 error */
  uint64_t first_element; /* the place in its tensor, in C order, of the first element that is given, on which
                             stochastic rounding depends; of tc_cast, _with_report, _strided, _scaled and _from_strings,
                             and of tc_dequantize, whose weight begins there: others refuse another than 0 */
} tc_cast_options;

#define TC_CAST_OPTIONS_INIT \
  { sizeof(tc_cast_options), 0, 1, 0, 0, 0, 0, 0, 0, 0, 1.0, NULL, NULL, 0, 0, 0 }

/* Sets struct_size and the defaults: those that the comments above name, else 0. `options` is not NULL.
   tc_cast_options_init() is a macro that passes the size of the struct in the caller's header, so that the library
   reads all of its fields. The function of that name is for programs that were compiled before there was the macro: it
   sets the fields before `executor`, and a struct_size that ends there. tc_cast_options_init_sized() sets `size` bytes,
   or nothing if they are fewer than those. */
TC_API void tc_cast_options_init(tc_cast_options* options);
TC_API void tc_cast_options_init_sized(tc_cast_options* options, size_t size);
#define tc_cast_options_init(options) tc_cast_options_init_sized((options), sizeof(*(options)))

/* Bytes of `count` packed elements: ceil(count * bits / 8); 0 for string and unknown types, SIZE_MAX on overflow. */
TC_API size_t tc_storage_bytes(tc_dtype dtype, size_t count);

/* Converts `count` elements of a numeric or bool type to another, with one rounding.
   Sizes    src holds tc_storage_bytes(from, count) bytes, dst tc_storage_bytes(to, count); any alignment.
            Types under 8 bits are packed, low bits first; unused bits of dst's last byte become zero.
   Overlap  src == dst is allowed when the target is not wider; any other overlap is not.
   Options  NULL means the defaults.
   Errors   the statuses above; tc_last_error() says what and where. After an error dst is unspecified. */
TC_API tc_status tc_cast(const void* src, tc_dtype from, void* dst, tc_dtype to, size_t count,
                         const tc_cast_options* options);

/* A conversion between two types whose types and options are checked already, for casts of a few elements at a time. A
   plain struct, which may be copied within the process and used by several threads at once; nothing is to be freed. */
typedef struct tc_prepared_cast {
  uint64_t opaque[10];
} tc_prepared_cast;

#define TC_PREPARED_CAST_INIT \
  {                           \
    { 0 }                     \
  }

/* Fills *prepared for tc_run_prepared().
   Options  NULL means the defaults. `threads` and `executor` are not used.
   Errors   as tc_cast, of types and options; *prepared is then unchanged. */
TC_API tc_status tc_prepare_cast(tc_dtype from, tc_dtype to, const tc_cast_options* options,
                                 tc_prepared_cast* prepared);

/* Converts `count` elements on the calling thread: sizes, overlap, results and errors are those of tc_cast.
   Errors   also TC_INVALID_ARGUMENT: a struct that tc_prepare_cast() did not fill in this process, or that has changed
            since.
   Cost     about 5 ns for up to 16 elements. Options that demand errors, and a scale, prepare their work in each call:
            0.1 to 0.5 us. Allocates nothing unless it fails. */
TC_API tc_status tc_run_prepared(const tc_prepared_cast* prepared, const void* src, void* dst, size_t count);

/* Converts arrays whose elements are any distance apart, in blocks.
   Sizes    shape and strides have `rank` entries. Strides are bytes, of any sign; NULL: C order, packed. Types under 8
            bits are packed in C order: their strides are NULL, and others an error; C has no codes of a byte each. src
            and dst point at the element of indices 0.
   Overlap  src and dst are disjoint, though they may take turns in one range of memory, or have the same address and
            strides with elements of dst no wider. The elements of dst are disjoint.
   Errors   as tc_cast; elements are counted in C order of the indices. */
TC_API tc_status tc_cast_strided(const void* src, tc_dtype from, const int64_t* src_strides, void* dst, tc_dtype to,
                                 const int64_t* dst_strides, const int64_t* shape, size_t rank,
                                 const tc_cast_options* options);

/* Does the same with a scale for each element, of TC_FLOAT32 or TC_FLOAT64: exact products are rounded once, and
   options->scale is 1. A stride of 0 repeats a scale along an axis; NULL: C order. dst and scales are disjoint. */
TC_API tc_status tc_cast_scaled(const void* src, tc_dtype from, const int64_t* src_strides, void* dst, tc_dtype to,
                                const int64_t* dst_strides, const void* scales, tc_dtype scale_type,
                                const int64_t* scale_strides, const int64_t* shape, size_t rank,
                                const tc_cast_options* options);

/* What conversions did to numbers. Grows as tc_cast_options. */
typedef struct tc_cast_report {
  size_t struct_size;           /* sizeof(tc_cast_report) */
  uint64_t count;               /* elements converted */
  uint64_t overflowed;          /* finite, out of the target's range, became infinite or NaN */
  uint64_t saturated;           /* out of the target's range, became its lowest or largest */
  uint64_t underflowed_to_zero; /* finite and nonzero, became zero */
  uint64_t inexact;             /* finite in and out, value changed */
  uint64_t nan_made;            /* was not NaN, became NaN */
  uint64_t nan_lost;            /* was NaN, became a number */
  uint64_t wrapped;             /* out of the target integer's range, kept the low bits */
  double max_abs_error;
  double max_rel_error;
  double signal_power; /* sums of squares of the sources and of the errors */
  double noise_power;
  double snr_db;      /* 10 log10(signal_power / noise_power); +infinity without noise */
  uint64_t sign_lost; /* below zero, became its magnitude in a type without sign */
} tc_cast_report;

#define TC_CAST_REPORT_INIT \
  { sizeof(tc_cast_report), 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0 }

/* Set struct_size, and all else to zero. As tc_cast_options_init() and _sized(). */
TC_API void tc_cast_report_init(tc_cast_report* report);
TC_API void tc_cast_report_init_sized(tc_cast_report* report, size_t size);
#define tc_cast_report_init(report) tc_cast_report_init_sized((report), sizeof(*(report)))

/* tc_cast that adds what happened to the numbers to *report, unless it fails. */
TC_API tc_status tc_cast_with_report(const void* src, tc_dtype from, void* dst, tc_dtype to, size_t count,
                                     const tc_cast_options* options, tc_cast_report* report);

/* Reads `count` strings as numbers, each rounded once to type `to`.
   Sizes    strings are one UTF-8 buffer with count + 1 ascending offsets (Arrow's large_utf8 layout): string i is
            data[offsets[i]] up to, not including, data[offsets[i + 1]]. dst as in tc_cast.
   Options  NULL means the defaults.
   Errors   TC_PARSE: an element is not a number, tc_last_error() names it; otherwise as tc_cast. */
TC_API tc_status tc_cast_from_strings(const char* data, const int64_t* offsets, void* dst, tc_dtype to, size_t count,
                                      const tc_cast_options* options);

/* Prints `count` elements of src, as many bytes as in tc_cast, in the layout of tc_cast_from_strings.
   Results  on success *data and *offsets (count + 1 entries) belong to the caller, who gives each to tc_free.
   Options  NULL means the defaults; scale must be 1.
   Errors   as tc_cast, and TC_INTERNAL without memory. After an error *data and *offsets are unchanged. */
TC_API tc_status tc_cast_to_strings(const void* src, tc_dtype from, size_t count, char** data, int64_t** offsets,
                                    const tc_cast_options* options);

/* Releases a block of tc_cast_to_strings, tc_explain or tc_describe; NULL is allowed. */
TC_API void tc_free(void* memory);

typedef struct tc_promote_options {
  size_t struct_size;                    /* sizeof(tc_promote_options): lets the struct grow, as tc_cast_options */
  int32_t promote_unsafe;                /* 0 */
  int32_t pytorch_scalar_promotion;      /* 0 */
  tc_dtype u64_integer_promotion_target; /* 1, float32 */
  int64_t rules;                         /* 0 openvino, 1 numpy, 2 torch, 3 jax, 4 jax_strict, 5 tensorflow */
} tc_promote_options;

#define TC_PROMOTE_OPTIONS_INIT \
  { sizeof(tc_promote_options), 0, 0, TC_FLOAT32, TC_RULES_OPENVINO }

/* As tc_cast_options_init() and _sized(); the function sets the fields before `rules`. */
TC_API void tc_promote_options_init(tc_promote_options* options);
TC_API void tc_promote_options_init_sized(tc_promote_options* options, size_t size);
#define tc_promote_options_init(options) tc_promote_options_init_sized((options), sizeof(*(options)))

/* Stores in *common the common type of two types by OpenVINO's ConvertPromoteTypes-14, or by the rules that the options
   name. a_is_scalar and b_is_scalar: not 0 for a tensor of rank 0.
   Options  NULL means: both flags off, float32, openvino.
   Errors   TC_UNSUPPORTED: the rules do not know a type, the pair has no common type, or the promotion could lose
            values. TC_INVALID_ARGUMENT: a type or rules that do not exist, common is NULL. *common is then
            unchanged. */
TC_API tc_status tc_promote(tc_dtype a, int a_is_scalar, tc_dtype b, int b_is_scalar, const tc_promote_options* options,
                            tc_dtype* common);

/* Converts two tensors to their common type, which is stored in *common.
   Results  *a_result and *b_result, as many elements as before, belong to the caller, who gives each to tc_free.
   Errors   as tc_promote and tc_cast. The results are then unchanged. */
TC_API tc_status tc_promote_tensors(const void* a, tc_dtype a_dtype, size_t a_count, int a_is_scalar, const void* b,
                                    tc_dtype b_dtype, size_t b_count, int b_is_scalar,
                                    const tc_promote_options* promotion, const tc_cast_options* options,
                                    tc_dtype* common, void** a_result, void** b_result);

/* The facts of a type. Grows as tc_cast_options. */
typedef struct tc_dtype_facts {
  size_t struct_size; /* sizeof(tc_dtype_facts) */
  tc_dtype dtype;
  int32_t family; /* 0 boolean, 1 integer, 2 floating, 3 text */
  int32_t bits;   /* of one packed element; 0 for string */
  int32_t is_signed;
  int32_t exponent_bits, mantissa_bits, bias; /* floating */
  int32_t has_infinity, has_nan;
  int32_t since_opset;
  double lowest, largest, smallest_positive; /* finite values */
  const char* name;                          /* static strings */
  const char* special_codes;                 /* "NaN 0x7F 0xFF" */
} tc_dtype_facts;

#define TC_DTYPE_FACTS_INIT \
  { sizeof(tc_dtype_facts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, NULL, NULL }

/* Fills *facts, whose struct_size is set. Errors: TC_INVALID_ARGUMENT for a number without a type. */
TC_API tc_status tc_dtype_get_facts(tc_dtype dtype, tc_dtype_facts* facts);

/* The types in the order of the project, from index 0: TC_UNDEFINED behind the last. */
TC_API tc_dtype tc_dtype_at(size_t index);

/* The spellings of a type, from index 0, the canonical one: NULL behind the last. The strings are static. */
TC_API const char* tc_dtype_spelling(tc_dtype dtype, size_t index);

/* Explains one number in type `to`, or in every type if `to` is 0: bits, exact value, error, what happened.
   Literal  a decimal number, inf or nan, rounded first to `from` unless that is 0; or a code of `from`, 0x... or 0b...
   Results  *json belongs to the caller, who gives it to tc_free: what `tcast explain --json` prints, on one line.
   Options  NULL means the defaults.
   Errors   TC_PARSE: the literal is not a number; TC_INVALID_ARGUMENT: a code that `from` does not have, an unknown
            type. *json is then unchanged. If the options demand an error, the JSON says so. */
TC_API tc_status tc_explain(const char* literal, tc_dtype from, tc_dtype to, const tc_cast_options* options,
                            char** json);

/* Describes the interface, for programs that fill structs by name and for pages that list what there is.
   Results  *json belongs to the caller, who gives it to tc_free. An object: "version"; "types", as `tcast types
   --json`; "cast_options" and "promote_options", with the "bytes" of the struct and, for each option, its name, offset,
            bytes, kind (boolean, choice, integer, number, type), default, words, first opset and help; "report", the
            same of tc_cast_report; "block_formats". Members may be added.
   Errors   TC_INVALID_ARGUMENT: json is NULL. */
TC_API tc_status tc_describe(char** json);

/* The message of this thread's last failed call; "" before the first failure. Valid until the thread's next call. */
TC_API const char* tc_last_error(void);

/* The parts of that message, as long valid: what happened, what to do about it, where. Empty if there is no such part.
 */
TC_API tc_status tc_last_error_code(void); /* TC_OK before the first failure */
TC_API const char* tc_last_error_message(void);
TC_API const char* tc_last_error_hint(void);
TC_API const char* tc_last_error_tensor(void);
TC_API const char* tc_last_error_file(void);
TC_API int64_t tc_last_error_element(void);      /* index of the element at fault; -1 if there is none */
TC_API int32_t tc_last_error_system_error(void); /* errno if the operating system failed; else 0 */

/* The canonical name, such as "float16"; "undefined" for numbers without a type. The string is static. */
TC_API const char* tc_dtype_name(tc_dtype dtype);

/* The type that `spelling` names, in any of its spellings; 0 if there is none or it could mean several, and
   tc_last_error() says which. NULL is none. */
TC_API tc_dtype tc_dtype_parse(const char* spelling);

/* The version of the library, such as "0.1.0". The string is static. */
TC_API const char* tc_version(void);

/* An array, dense in C order. data == NULL: not given, unless it has a dtype and no elements. */
typedef struct tc_array {
  const void* data;
  const int64_t* shape; /* may be NULL if rank is 0 */
  size_t rank;
  tc_dtype dtype;
} tc_array;

#define TC_ARRAY_INIT \
  { NULL, NULL, 0, TC_UNDEFINED }

/* A weight in blocks that share scales; docs/blocks.md lists schemes, spellings and formulas. Start with
   TC_BLOCK_TENSOR_INIT: zero is the default of every field but struct_size, scheme, shape, rank and codes. */
typedef struct tc_block_tensor {
  size_t struct_size;    /* sizeof(tc_block_tensor): lets the struct grow */
  const char* scheme;    /* "fp8-block", "nvfp4", "q4_k" */
  const char* spelling;  /* whose layout; NULL: the first of the scheme. Not NULL with a global_scale that is a factor
                            in one layout of the scheme and a divisor in another, as nvfp4's */
  const int64_t* shape;  /* of the weight */
  size_t rank;           /* its dimensions */
  int64_t block_rows;    /* 0: as usual for the scheme; -1: all */
  int64_t block_columns; /* the same */
  tc_array codes;        /* as they are stored */
  tc_array scales;
  tc_array global_scale; /* floating point: one number, or one for each matrix */
  tc_array zero_points;
  tc_array biases;
  tc_array group_index;
  tc_array table;   /* numbers; NULL: those of the scheme */
  int32_t is_plain; /* 1: as tc_quantize() returns them: codes have their low bits first, scales are in rows, and zero
                       points are less by the offset of the codes, even if the layout of files differs */
} tc_block_tensor;

#define TC_BLOCK_TENSOR_INIT                                                                                        \
  {                                                                                                                 \
    sizeof(tc_block_tensor), NULL, NULL, NULL, 0, 0, 0, TC_ARRAY_INIT, TC_ARRAY_INIT, TC_ARRAY_INIT, TC_ARRAY_INIT, \
        TC_ARRAY_INIT, TC_ARRAY_INIT, TC_ARRAY_INIT, 0                                                              \
  }

/* Converts rows [first, first + rows) of a weight to a floating-point type of 8 bits or more: one float32 operation
   after the other as the tool computes them, then one rounding.
   Sizes    dst holds rows times the weight's last dimension, and shares no memory with the arrays of the tensor.
   Options  NULL means the defaults. Stochastic rounding takes the places of elements in the weight.
   Errors   TC_INVALID_ARGUMENT: no such scheme, sizes that contradict each other; as tc_cast. */
TC_API tc_status tc_dequantize(const tc_block_tensor* tensor, int64_t first, int64_t rows, void* dst, tc_dtype to,
                               const tc_cast_options* options);

/* Rows of one weight to one type, a few at a time: what tc_dequantize() checks and prepares is done once. Borrows the
   arrays of the tensor; its global scale, group index and table are read once, the others in each call. For one thread
   at a time: each thread prepares its own.
   Codes    have their dtype and shape, but data may be NULL if each tc_dequantize_rows() is given its own.
   Options  NULL means the defaults. `threads` and `executor` are not used.
   Results  *prepared belongs to the caller, who gives it to tc_prepared_dequantize_free().
   Errors   as tc_dequantize, of the tensor, the type and the options; *prepared is unchanged. */
typedef struct tc_prepared_dequantize tc_prepared_dequantize;
TC_API tc_status tc_prepare_dequantize(const tc_block_tensor* tensor, tc_dtype to, const tc_cast_options* options,
                                       tc_prepared_dequantize** prepared);
/* Converts rows [first, first + rows) to dst, as tc_dequantize does, on the calling thread.
   Codes    NULL: the tensor's. Else the codes of these rows alone, which are elsewhere: from the first byte of the
            first row to the last byte of the last one.
   Errors   TC_INVALID_ARGUMENT: rows that the weight lacks, a null buffer, dst that overlaps what is read; codes
            elsewhere in layouts whose rows are no bytes in a row: gptq-*, awq, mxfp4 of gpt-oss, int4-group of
            modelopt, and nf4 and fp4 if the first row begins within a byte. Otherwise as tc_cast. */
TC_API tc_status tc_dequantize_rows(tc_prepared_dequantize* prepared, const void* codes, int64_t first, int64_t rows,
                                    void* dst);
TC_API void tc_prepared_dequantize_free(tc_prepared_dequantize* prepared); /* NULL is allowed */

/* How a weight is quantized. Start with TC_QUANTIZE_OPTIONS_INIT: zero is the default of every field but struct_size.
 */
typedef struct tc_quantize_options {
  size_t struct_size;          /* sizeof(tc_quantize_options): lets the struct grow */
  const char* recipe;          /* whose bytes: "rceil", "modelopt"; NULL: the scheme's default */
  int64_t group_size;          /* int4-group: 32, 64 or 128; 0: 128 */
  tc_dtype compute_dtype;      /* round the weights to it first; 0: their own type */
  int32_t is_asymmetric;       /* int4-group: store zero points */
  int32_t power_of_two_scales; /* fp8-block */
  int32_t allows_nonfinite;    /* NaN and infinity become what the recipe's tool makes of them; 0: an error */
  int32_t to_gguf;             /* ggml's blocks, for schemes that GGUF has, too */
  int32_t threads;             /* 0: automatic */
  int32_t clip;                /* 1: search the scale of each block for the smallest sum of squared errors; 0: do not */
  const float* importance;     /* how much squared errors of each column count, or of each column of each matrix, with
                                  `clip` and for q2_k to q6_k and iq4_* of GGUF; NULL: all the same */
  size_t importance_count;     /* numbers of `importance`; not 0 if it is given and the weight has columns */
  const float* maximum;        /* schemes with a scale for the whole weight: take this number for its largest magnitude,
                                  as several weights share a scale, or rows are quantized; it is rounded as the
                                  weights; NULL: the weight's own */
} tc_quantize_options;

#define TC_QUANTIZE_OPTIONS_INIT \
  { sizeof(tc_quantize_options), NULL, 0, TC_UNDEFINED, 0, 0, 0, 0, 0, 0, NULL, 0, NULL }

typedef struct tc_quantized tc_quantized;

/* The parts of a quantized weight. Pointers are valid until tc_quantized_free(). Grows as tc_cast_options. */
typedef struct tc_quantized_parts {
  size_t struct_size;        /* sizeof(tc_quantized_parts) */
  const char* recipe;        /* its name */
  tc_array codes;            /* packed, low bits first */
  tc_array scales;           /* in rows of blocks; data == NULL: inside of the codes */
  tc_array zero_points;      /* int8, one for each scale, of signed codes; data == NULL: none */
  float global_scale;        /* as the recipe's tool stores it */
  int32_t has_global_scale;  /* 0: there is none */
  int32_t global_is_divisor; /* 0: it is a factor of the scales */
  const char* scheme;        /* with `spelling` and is_plain, says how the parts are read, as in tc_block_tensor */
  const char* spelling;
} tc_quantized_parts;

#define TC_QUANTIZED_PARTS_INIT \
  { sizeof(tc_quantized_parts), NULL, TC_ARRAY_INIT, TC_ARRAY_INIT, TC_ARRAY_INIT, 0.0f, 0, 0, NULL, NULL }

/* Quantizes float32, bfloat16 or float16 weights in blocks along the last dimension, byte for byte as the recipe's tool
   does. docs/recipes.md lists schemes and recipes.
   Options  NULL means the defaults. A struct_size of the first release, without `clip`, is accepted.
   Results  *quantized belongs to the caller, who gives it to tc_quantized_free().
   Errors   TC_INVALID_ARGUMENT: no such scheme or recipe, options that it lacks, sizes, types; TC_OUT_OF_RANGE: NaN or
            infinity; *quantized is unchanged. */
TC_API tc_status tc_quantize(const tc_array* weight, const char* scheme, const tc_quantize_options* options,
                             tc_quantized** quantized);
TC_API void tc_quantized_free(tc_quantized* quantized); /* NULL is allowed */
/* Fills the struct, whose struct_size is set. */
TC_API tc_status tc_quantized_get(const tc_quantized* quantized, tc_quantized_parts* parts);
/* Fills the struct, whose struct_size is set, so that tc_dequantize() reads the weight right. Its pointers are valid
   until tc_quantized_free(). */
TC_API tc_status tc_quantized_block_tensor(const tc_quantized* quantized, tc_block_tensor* tensor);

/* The bytes of a quantized weight, and how they are read. Grows as tc_cast_options.
   A tc_block_tensor that reads the buffers has the scheme, `spelling`, `block_columns` and is_plain = 1; codes of
   TC_UINT8 and [rows, codes_row_bytes]; scales of `scales_dtype` and zero points of TC_INT8, both of the blocks' rows
   and columns; and `global_scale` if has_global_scale is 1 or it is not 0. */
typedef struct tc_quantized_layout {
  size_t struct_size;       /* sizeof(tc_quantized_layout) */
  int64_t rows;             /* the product of all dimensions but the last */
  size_t codes_bytes;       /* of all rows */
  size_t codes_row_bytes;   /* of one row */
  size_t scales_bytes;      /* 0: inside of the codes */
  size_t zero_points_bytes; /* 0: none */
  int64_t block_rows;       /* rows that share scales */
  tc_dtype codes_dtype;
  tc_dtype scales_dtype;
  float global_scale;        /* for options->maximum, if the scheme has one, and options->compute_dtype; 1 if the recipe
                                has none where its layout has */
  int32_t has_global_scale;  /* 0: there is none, or no maximum is given */
  const char* spelling;      /* whose layout, as in tc_block_tensor; static */
  int64_t block_columns;     /* columns that share a scale; -1: all */
  int32_t global_is_divisor; /* 0: it is a factor of the scales */
} tc_quantized_layout;

#define TC_QUANTIZED_LAYOUT_INIT \
  { sizeof(tc_quantized_layout), 0, 0, 0, 0, 0, 0, TC_UNDEFINED, TC_UNDEFINED, 0.0f, 0, NULL, 0, 0 }

/* Fills the struct, whose struct_size is set, for a weight of this shape. Errors: as tc_quantize, and
   TC_INVALID_ARGUMENT: a maximum without a compute_dtype, which names the type of the weights, for a recipe that rounds
   the global scale to it. */
TC_API tc_status tc_quantized_sizes(const char* scheme, const int64_t* shape, size_t rank,
                                    const tc_quantize_options* options, tc_quantized_layout* layout);

/* The caller's memory for all rows of a weight, of the sizes of tc_quantized_layout. Grows as tc_cast_options. */
typedef struct tc_quantized_buffers {
  size_t struct_size; /* sizeof(tc_quantized_buffers) */
  void* codes;
  size_t codes_bytes;
  void* scales; /* NULL: the scheme has none of its own */
  size_t scales_bytes;
  int8_t* zero_points; /* NULL: none */
  size_t zero_points_bytes;
} tc_quantized_buffers;

#define TC_QUANTIZED_BUFFERS_INIT \
  { sizeof(tc_quantized_buffers), NULL, 0, NULL, 0, NULL, 0 }

/* Quantizes the rows of an array, [..., columns], to rows [first_row, first_row + the array's) of a weight in the
   caller's memory, on the calling thread, as rows of a key-value cache are. The bytes are those of tc_quantize of the
   whole weight; but only a call that has all rows tells that a weight is zero, whose default scales are 1.
   Rows     that share scales come in one call: multiples of tc_quantized_layout.block_rows, or up to the last row.
   Matrices whose blocks have several rows are quantized one by one, each with sizes and buffers of its own.
   Maximum  a scheme with a scale for the whole weight needs options->maximum: the largest magnitude of all rows.
   Overlap  the buffers share no memory with each other, nor with the array.
   Errors   as tc_quantize, and TC_INVALID_ARGUMENT: buffers of other sizes, rows beyond them, no maximum.
   Cost     the first call of a thread with a scheme, options and columns allocates, later ones do not, except with
            `clip` or `importance`. */
TC_API tc_status tc_quantize_rows(const char* scheme, const tc_array* rows, int64_t first_row,
                                  const tc_quantized_buffers* out, const tc_quantize_options* options);

#ifdef __cplusplus
}
#endif

#endif
