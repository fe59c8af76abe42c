/* SPDX-License-Identifier: Apache-2.0 */
/* Component files. The C interface to files of tensors: in libtensorcast-files and libtensorcast. Stable, as
 * c_api.h. */
#ifndef TENSORCAST_C_FILES_H
#define TENSORCAST_C_FILES_H

#include "tensorcast/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes that are read as a file: memory, an archive's entry, a download. `read` reads exactly `bytes` bytes from
   `offset`, which are inside `size`, and returns TC_OK or another status, which the call that reads then returns. It is
   called by one thread at a time, though not always the same one. The struct is copied; `context` outlives what is
   opened from it. Start with TC_SOURCE_INIT. Grows as tc_cast_options. */
typedef struct tc_source {
  size_t struct_size; /* sizeof(tc_source) */
  void* context;      /* given to `read` */
  uint64_t size;      /* bytes */
  tc_status (*read)(void* context, uint64_t offset, void* dst, size_t bytes);
} tc_source;

#define TC_SOURCE_INIT \
  { sizeof(tc_source), NULL, 0, NULL }

/* A request is filled by setters, each of which copies what it is given, and used any number of times. Setters fail
   with TC_INVALID_ARGUMENT for null pointers and values that do not exist, as a scheme or a format, TC_INTERNAL without
   memory; the request is then unchanged. tc_convert() checks patterns, and values that do not go together. */
typedef struct tc_convert_request tc_convert_request;

TC_API tc_convert_request* tc_convert_request_new(void);          /* NULL without memory */
TC_API void tc_convert_request_free(tc_convert_request* request); /* NULL is allowed */

TC_API tc_status tc_convert_request_set_input(tc_convert_request* request, const char* path);
/* The input's bytes, in the place of a path; the input is then their name. NULL: the input is a path. */
TC_API tc_status tc_convert_request_set_source(tc_convert_request* request, const tc_source* source);
TC_API tc_status tc_convert_request_set_output(tc_convert_request* request, const char* path);
/* The type of floating-point tensors that no rule names. */
TC_API tc_status tc_convert_request_set_to(tc_convert_request* request, tc_dtype to);
/* Quantizes the matrices of layers to a scheme of tc_quantize(), such as "nvfp4", in the place of a type. "" or NULL:
   the scheme's default recipe, and the recipe's spelling. */
TC_API tc_status tc_convert_request_set_scheme(tc_convert_request* request, const char* scheme, const char* recipe,
                                               const char* spelling);
/* The same, with a scheme for each matrix of a layer, so that `bits` are their average, scales included, and the sum of
   squared errors is small. `candidates`: "nvfp4,mxfp4:even"; "" or NULL: the default ones. 0 bits: none. */
TC_API tc_status tc_convert_request_set_budget(tc_convert_request* request, double bits, const char* candidates,
                                               const char* spelling);
/* How the scales of a scheme or budget are searched. `clip`: as in tc_quantize_options. `importance`: a file,
   llama.cpp's importance matrix in GGUF, or safetensors of a number for each column of each weight; "" or NULL: none.
 */
TC_API tc_status tc_convert_request_set_search(tc_convert_request* request, int32_t clip, const char* importance);
TC_API tc_status tc_convert_request_set_options(tc_convert_request* request, const tc_cast_options* options);
/* "tensors whose name matches `pattern`, in RE2's syntax, become `to`": the first match wins. */
TC_API tc_status tc_convert_request_add_rule(tc_convert_request* request, const char* pattern, tc_dtype to);
/* The same; in the place of the options' scale, their numbers are multiplied by `scale`, which is finite and not 0,
   before the one rounding. */
TC_API tc_status tc_convert_request_add_scaled_rule(tc_convert_request* request, const char* pattern, tc_dtype to,
                                                    double scale);
/* Only tensors that match an include are converted; those that match an exclude are not. */
TC_API tc_status tc_convert_request_add_include(tc_convert_request* request, const char* pattern);
TC_API tc_status tc_convert_request_add_exclude(tc_convert_request* request, const char* pattern);
/* The input is bytes without a header. */
TC_API tc_status tc_convert_request_set_raw(tc_convert_request* request, tc_dtype dtype, const int64_t* shape,
                                            size_t rank);
/* npy, npz: the type behind `|V1` or `<V2` of the array `tensor`; NULL: of all arrays that are not named. */
TC_API tc_status tc_convert_request_set_from(tc_convert_request* request, const char* tensor, tc_dtype dtype);
/* "npy", "safetensors", ...; "": by extension and content. */
TC_API tc_status tc_convert_request_set_input_format(tc_convert_request* request, const char* format);
TC_API tc_status tc_convert_request_set_output_format(tc_convert_request* request, const char* format);

typedef enum {
  TC_CONVERT_OVERWRITE = 1,   /* an output that exists */
  TC_CONVERT_PARENTS = 2,     /* create the folders of the output */
  TC_CONVERT_ALLOW_ODD = 3,   /* safetensors: rows that do not fill whole bytes */
  TC_CONVERT_RAW_CODES = 4,   /* weights of 8 bits or fewer although the file has their scales */
  TC_CONVERT_REFUSE_WRAP = 5, /* out_of_range auto means error if the target is an integer type */
  TC_CONVERT_DRY_RUN = 6,     /* plan only */
  TC_CONVERT_REPORT = 7,      /* fill tc_tensor_outcome's report */
  TC_CONVERT_VERIFY = 8,      /* read the output back and compare it */
  TC_CONVERT_TELL_LOSS = 9,   /* say which tensors were destroyed, in tc_tensor_outcome.damage */
  TC_CONVERT_FAIL_LOSS = 10   /* the same, and any overflow or clamping, is an error: OnLoss::fail of file.hpp */
} tc_convert_flag;
/* `flag` is a tc_convert_flag. All are off at first. */
TC_API tc_status tc_convert_request_set_flag(tc_convert_request* request, int32_t flag, int is_on);
/* With TC_CONVERT_FAIL_LOSS: the share of a tensor's nonzero elements that may become zero, from 0 to 1; 0.01 at first.
 */
TC_API tc_status tc_convert_request_set_zero_limit(tc_convert_request* request, double share);

/* Called now and then, on the thread that called tc_convert; returning 0 cancels, and tc_convert returns TC_CANCELLED.
   `tensor` is valid during the call. */
typedef int (*tc_progress)(void* progress_data, uint64_t bytes_done, uint64_t bytes_total, const char* tensor);
TC_API tc_status tc_convert_request_set_progress(tc_convert_request* request, tc_progress progress,
                                                 void* progress_data);

/* Converts the input to the output, which appears under its name only when it is complete. After an error, a
   cancellation or a crash nothing is left, and an old file stays as it was. Memory is bounded.
   Results  *outcome belongs to the caller, who gives it to tc_convert_outcome_free; `outcome` may be NULL.
   Errors   TC_IO, TC_PARSE, TC_UNSUPPORTED, TC_OUT_OF_RANGE, TC_INVALID_ARGUMENT, TC_CANCELLED; *outcome is unchanged.
 */
typedef struct tc_convert_outcome tc_convert_outcome;
TC_API tc_status tc_convert(const tc_convert_request* request, tc_convert_outcome** outcome);
TC_API void tc_convert_outcome_free(tc_convert_outcome* outcome); /* NULL is allowed */

TC_API const char* tc_convert_outcome_input_format(const tc_convert_outcome* outcome);
TC_API const char* tc_convert_outcome_output_format(const tc_convert_outcome* outcome);
TC_API uint64_t tc_convert_outcome_bytes_read(const tc_convert_outcome* outcome);
TC_API uint64_t tc_convert_outcome_bytes_written(const tc_convert_outcome* outcome);
TC_API int tc_convert_outcome_is_verified(const tc_convert_outcome* outcome);
TC_API size_t tc_convert_outcome_tensor_count(const tc_convert_outcome* outcome);

/* What became of a tensor. Pointers are valid as long as the outcome. Grows as tc_cast_options. */
typedef struct tc_tensor_outcome {
  size_t struct_size; /* sizeof(tc_tensor_outcome) */
  const char* name;
  tc_dtype from;
  tc_dtype to; /* equal to `from`: copied byte for byte */
  const int64_t* shape;
  size_t rank;
  uint64_t bytes_in, bytes_out;
  const char* reason; /* "`to`", "rule 2", "excluded", ...; backquotes as in hints */
  const char* damage; /* what destroyed the tensor; "": nothing did */
  const char* remedy; /* what would help */
  int32_t is_left;    /* a conversion was asked for and not done */
  int32_t has_report;
} tc_tensor_outcome;

#define TC_TENSOR_OUTCOME_INIT \
  { sizeof(tc_tensor_outcome), NULL, 0, 0, NULL, 0, 0, 0, NULL, NULL, NULL, 0, 0 }

/* Fill the structs, whose struct_size is set. Errors: TC_INVALID_ARGUMENT: no such tensor; a tensor without report. */
TC_API tc_status tc_convert_outcome_tensor(const tc_convert_outcome* outcome, size_t index, tc_tensor_outcome* tensor);
TC_API tc_status tc_convert_outcome_report(const tc_convert_outcome* outcome, size_t index, tc_cast_report* report);

/* A file of tensors that stays open, whatever its format. One thread uses it at a time. Strings and shapes are valid
   until it is closed. */
typedef struct tc_file tc_file;

/* What a file does not say of itself. Grows as tc_cast_options; the default of every field but struct_size is zero. */
typedef struct tc_open_options {
  size_t struct_size;      /* sizeof(tc_open_options) */
  const tc_source* source; /* the bytes, in the place of the path, which is then their name; NULL: the path's file */
  const char* format;      /* "npy", "safetensors", ...; NULL: by extension and content */
  const int64_t* shape;    /* of a file without a header, whose format is "raw"; NULL: none */
  size_t rank;
  tc_dtype from; /* npy, npz: the type behind `|V1` or `<V2`; with a shape, the type of the elements */
} tc_open_options;

#define TC_OPEN_OPTIONS_INIT \
  { sizeof(tc_open_options), NULL, NULL, NULL, 0, TC_UNDEFINED }

/* Reads the header. `name` is for messages, and its extension tells formats without a signature; NULL: "source".
   Options  NULL means the defaults.
   Errors   TC_IO, TC_PARSE, TC_UNSUPPORTED, TC_INVALID_ARGUMENT; *file is unchanged. */
TC_API tc_status tc_file_open(const char* path, tc_file** file);
TC_API tc_status tc_file_open_source(const tc_source* source, const char* name, tc_file** file);
TC_API tc_status tc_file_open_with(const char* path, const tc_open_options* options, tc_file** file);
TC_API void tc_file_close(tc_file* file); /* NULL is allowed */
TC_API size_t tc_file_count(const tc_file* file);
TC_API const char* tc_file_format(const tc_file* file); /* "safetensors", "gguf", ... */

/* A tensor of a file. Grows as tc_cast_options. */
typedef struct tc_tensor_info {
  size_t struct_size; /* sizeof(tc_tensor_info) */
  const char* name;   /* "" in formats of one array */
  const int64_t* shape;
  size_t rank;
  uint64_t bytes;            /* as they are stored */
  const char* foreign_dtype; /* the file's own name of a type that has no tc_dtype, such as "Q4_0"; else "" */
  const char* problem;       /* why the elements cannot be read; "": they can */
  tc_dtype dtype;            /* TC_UNDEFINED with a foreign_dtype */
} tc_tensor_info;

#define TC_TENSOR_INFO_INIT \
  { sizeof(tc_tensor_info), NULL, NULL, 0, 0, NULL, NULL, TC_UNDEFINED }

/* Fills the struct, whose struct_size is set. Errors: TC_INVALID_ARGUMENT: no such tensor. */
TC_API tc_status tc_file_tensor(const tc_file* file, size_t index, tc_tensor_info* info);

/* Reads elements [first, first + count) of a tensor, in C order, as numbers of `to`: blocks of GGUF are decoded, other
   types cast. TC_UNDEFINED: as they are stored; a tensor with a foreign_dtype then consists of its bytes, which `first`
   and `count` count.
   Sizes    dst has room for dst_bytes; tc_storage_bytes(to, count) are written. `first` is a multiple of 8 for stored
            types under 8 bits.
   Options  NULL means the defaults. With TC_UNDEFINED they are at their defaults, but for threads and executor.
   Errors   TC_IO, TC_PARSE, TC_UNSUPPORTED; TC_INVALID_ARGUMENT: a short buffer, elements that the tensor does not
            have, strings that are read in parts or as they are stored; as tc_cast. */
TC_API tc_status tc_file_read(tc_file* file, size_t index, uint64_t first, uint64_t count, void* dst, size_t dst_bytes,
                              tc_dtype to, const tc_cast_options* options);

/* The same of a part: indices [begin[i], end[i]) of dimension i, for as many first dimensions as `ranges` says, and all
   of the others. Only these elements are read; random bits are those of the whole tensor. A tensor with a foreign_dtype
   that is read as stored has rows of bytes.
   Errors   as above; TC_INVALID_ARGUMENT: a range that is not inside its dimension; TC_UNSUPPORTED: blocks of GGUF as
            a type under 8 bits. */
TC_API tc_status tc_file_read_slice(tc_file* file, size_t index, const uint64_t* begin, const uint64_t* end,
                                    size_t ranges, void* dst, size_t dst_bytes, tc_dtype to,
                                    const tc_cast_options* options);

/* How a file is written. Grows as tc_cast_options; the default of every field but struct_size is zero. */
typedef struct tc_write_options {
  size_t struct_size;                /* sizeof(tc_write_options) */
  const char* format;                /* NULL: by extension */
  const char* const* metadata_names; /* formats without a place for metadata ignore it */
  const char* const* metadata_texts;
  size_t metadata_count;
  int32_t overwrite; /* 1: also a file that exists */
  int32_t parents;   /* 1: create the folders of the file */
} tc_write_options;

#define TC_WRITE_OPTIONS_INIT \
  { sizeof(tc_write_options), NULL, NULL, NULL, 0, 0, 0 }

/* Writes `count` arrays under their names; formats of one array ignore its name. The file appears under its name only
   when it is complete.
   Options  NULL means the defaults.
   Errors   TC_IO; TC_UNSUPPORTED: the format cannot hold a type, a name, a name twice or so many arrays;
            TC_INVALID_ARGUMENT: a null pointer, a file that exists. */
TC_API tc_status tc_write_file(const char* path, const char* const* names, const tc_array* arrays, size_t count,
                               const tc_write_options* options);

/* The quantized weights of a file or of a folder of a checkpoint, read one by one: codes and scales as they are stored,
   or the numbers that they stand for. One thread uses a file at a time. Strings and shapes are valid until it is
   closed. */
typedef struct tc_quantized_file tc_quantized_file;

/* Reads headers and configurations. Errors: TC_IO, TC_PARSE, TC_UNSUPPORTED; *file is unchanged. */
TC_API tc_status tc_quantized_file_open(const char* path, tc_quantized_file** file);
TC_API tc_status tc_quantized_file_open_source(const tc_source* source, const char* name, tc_quantized_file** file);
TC_API void tc_quantized_file_close(tc_quantized_file* file); /* NULL is allowed */
TC_API size_t tc_quantized_file_layer_count(const tc_quantized_file* file);

/* A weight of a quantized model. Grows as tc_cast_options. */
typedef struct tc_quantized_layer {
  size_t struct_size;    /* sizeof(tc_quantized_layer) */
  const char* name;      /* of the weight that it decodes to */
  const char* spelling;  /* who names and packs tensors so: "deepseek", "compressed-tensors", "gguf" */
  const char* scheme;    /* "fp8-block", "nvfp4", "int4-group" */
  const int64_t* shape;  /* of the weight */
  size_t rank;           /* its dimensions */
  int64_t block_rows;    /* elements that share a scale; 0: all */
  int64_t block_columns; /* the same */
  size_t part_count;     /* its stored tensors */
  const char* problem;   /* why it is not decoded; "": it is */
} tc_quantized_layer;

#define TC_QUANTIZED_LAYER_INIT \
  { sizeof(tc_quantized_layer), NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL }

/* A stored tensor of a layer; the first has the codes. Grows as tc_cast_options. */
typedef struct tc_quantized_part {
  size_t struct_size; /* sizeof(tc_quantized_part) */
  const char* role;   /* "codes", "scales", "global_scale", "zero_points", "biases", "group_index", ... */
  const char* name;   /* of the tensor */
  const int64_t* shape;
  size_t rank;
  uint64_t bytes;
  tc_dtype dtype; /* TC_UINT8, in rows of bytes, for a type that has no tc_dtype, as GGUF's */
} tc_quantized_part;

#define TC_QUANTIZED_PART_INIT \
  { sizeof(tc_quantized_part), NULL, NULL, NULL, 0, 0, TC_UNDEFINED }

/* Fill the structs, whose struct_size is set. Errors: TC_INVALID_ARGUMENT: no such layer or part. */
TC_API tc_status tc_quantized_file_layer(const tc_quantized_file* file, size_t layer, tc_quantized_layer* description);
TC_API tc_status tc_quantized_file_part(const tc_quantized_file* file, size_t layer, size_t part,
                                        tc_quantized_part* description);

/* Reads a stored tensor, whose bytes `dst` has room for. Errors: TC_IO; TC_INVALID_ARGUMENT. */
TC_API tc_status tc_quantized_file_read_part(tc_quantized_file* file, size_t layer, size_t part, void* dst);

/* Decodes elements [first, first + count) of a weight, in C order, to a floating-point type of 8 bits or more: the
   operations of the tool that wrote it in float32, then one rounding.
   Options  NULL means the defaults.
   Errors   TC_IO, TC_PARSE; TC_UNSUPPORTED: the layer has a problem; TC_INVALID_ARGUMENT; as tc_cast. */
TC_API tc_status tc_quantized_file_dequantize(tc_quantized_file* file, size_t layer, uint64_t first, uint64_t count,
                                              void* dst, tc_dtype to, const tc_cast_options* options);

/* The same of a part, as tc_file_read_slice has it: reads the codes and scales that the part needs, in whole words and
   blocks. `dst` has room for dst_bytes. */
TC_API tc_status tc_quantized_file_dequantize_slice(tc_quantized_file* file, size_t layer, const uint64_t* begin,
                                                    const uint64_t* end, size_t ranges, void* dst, size_t dst_bytes,
                                                    tc_dtype to, const tc_cast_options* options);

#ifdef __cplusplus
}
#endif

#endif
