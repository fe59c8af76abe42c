/* The C interface of tensorcast. Stable: numbers and layouts never change, structs only grow at their end. */
#ifndef TENSORCAST_C_API_H
#define TENSORCAST_C_API_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define TC_API
#else
#define TC_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ONNX TensorProto.DataType: 1 float32, 2 uint8, 3 int8, 4 uint16, 5 int16, 6 int32, 7 int64, 8 string, 9 bool,
   10 float16, 11 float64, 12 uint32, 13 uint64, 16 bfloat16, 17 float8_e4m3fn, 18 float8_e4m3fnuz, 19 float8_e5m2,
   20 float8_e5m2fnuz, 21 uint4, 22 int4, 23 float4_e2m1fn, 24 float8_e8m0fnu, 25 uint2, 26 int2,
   27 float6_e2m3fn, 28 float6_e3m2fn.
   1001 is OpenVINO's u1: tc_promote accepts it, tc_cast does not. */
typedef int32_t tc_dtype;

typedef enum {
  TC_OK = 0,
  TC_INVALID_ARGUMENT = 1, /* null buffer, unknown type or option value */
  TC_UNSUPPORTED = 2,      /* a type or attribute newer than the opset, a promotion that the rules do not allow */
  TC_OUT_OF_RANGE = 3,     /* the target cannot hold an element, and the options demand an error */
  TC_PARSE = 4,            /* a string that is not a number */
  TC_IO = 5,
  TC_INTERNAL = 6 /* out of memory, or a defect of tensorcast */
} tc_status;

typedef struct tc_cast_options {
  size_t struct_size;   /* sizeof(tc_cast_options): lets the struct grow */
  int32_t opset;        /* 0 = newest */
  int32_t saturate;     /* 1 */
  int32_t round_mode;   /* 0 up, 1 down, 2 nearest */
  int32_t out_of_range; /* 0 auto, 1 wrap, 2 saturate, 3 error */
  int32_t int_rounding; /* 0 trunc, 1 nearest_even */
  int32_t invalid;      /* 0 default, 1 error */
  int32_t fnuz_inf;     /* 0 spec, 1 flt_max */
  int32_t float_string; /* 0 plain, 1 shortest, 2 g8 */
  int32_t threads;      /* 1; 0 = all cores */
  double scale;         /* 1.0; finite */
} tc_cast_options;

/* Sets struct_size and the defaults: those that the comments above name, else 0. NULL is ignored. */
TC_API void tc_cast_options_init(tc_cast_options* options);

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

/* Releases a block of tc_cast_to_strings; NULL is allowed. */
TC_API void tc_free(void* memory);

typedef struct tc_promote_options {
  size_t struct_size; /* sizeof(tc_promote_options); the size of the older struct without `rules` is accepted */
  int32_t promote_unsafe, pytorch_scalar_promotion;
  tc_dtype u64_integer_promotion_target;
  int32_t reserved;     /* 0 */
  int32_t rules;        /* 0 openvino, 1 numpy, 2 torch, 3 jax, 4 jax_strict, 5 tensorflow */
  int32_t reserved_too; /* 0 */
} tc_promote_options;

/* Stores in *common the common type of two types by OpenVINO's ConvertPromoteTypes-14, or by the rules that the options
   name. a_is_scalar and b_is_scalar: not 0 for a tensor of rank 0.
   Options  NULL means: both flags off, float32, openvino.
   Errors   TC_UNSUPPORTED: the rules do not know a type, the pair has no common type, or the promotion could lose
            values. TC_INVALID_ARGUMENT: a type or rules that do not exist, common is NULL. *common is then
            unchanged. */
TC_API tc_status tc_promote(tc_dtype a, int a_is_scalar, tc_dtype b, int b_is_scalar, const tc_promote_options* options,
                            tc_dtype* common);

/* The message of this thread's last failed call; "" before the first failure. Valid until the thread's next call. */
TC_API const char* tc_last_error(void);

/* The canonical name, such as "float16"; "undefined" for numbers without a type. The string is static. */
TC_API const char* tc_dtype_name(tc_dtype dtype);

/* The type that `spelling` names, in any of its spellings; 0 if there is none or it could mean several, and
   tc_last_error() says which. */
TC_API tc_dtype tc_dtype_parse(const char* spelling);

/* The version of the library, such as "0.1.0". The string is static. */
TC_API const char* tc_version(void);

#ifdef __cplusplus
}
#endif

#endif
