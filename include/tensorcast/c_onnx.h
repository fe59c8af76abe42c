/* SPDX-License-Identifier: Apache-2.0 */
/* Component models. The C interface to ONNX models: in libtensorcast. Stable, as c_api.h. */
#ifndef TENSORCAST_C_ONNX_H
#define TENSORCAST_C_ONNX_H

#include "tensorcast/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of the fields of tc_onnx_convert_options. */
enum {
  TC_RUNTIME_ONNXRUNTIME_CPU = 0,
  TC_RUNTIME_ONNXRUNTIME_CUDA = 1,
  TC_RUNTIME_TENSORRT = 2,
  TC_RUNTIME_OPENVINO = 3,
  TC_RUNTIME_ANY = 4
};
enum { TC_OVERFLOW_KEEP_HIGH = 0, TC_OVERFLOW_CLAMP = 1, TC_OVERFLOW_INF = 2, TC_OVERFLOW_ERROR = 3 };

/* Called now and then; returning 0 cancels, and tc_onnx_convert returns TC_CANCELLED. */
typedef int (*tc_onnx_progress)(void* progress_data);

/* How the precision of a model changes: as ConvertRequest of onnx.hpp, where each field is described. Grows as
   tc_cast_options; the default of every field but struct_size is zero. Lists of strings may be NULL if they are empty.
 */
typedef struct tc_onnx_convert_options {
  size_t struct_size;         /* sizeof(tc_onnx_convert_options) */
  const char* weights_scheme; /* "nvfp4", "mxfp4:even", ...: weights become codes with scales; NULL: they do not */
  const char* const* keep;    /* nodes that stay as they are: "op:TYPE", "name:NAME", "glob:PATTERN", ... */
  size_t keep_count;
  const char* const* only; /* unless empty, the only nodes that change */
  size_t only_count;
  const char* const* keep_io_names; /* inputs and outputs of the model that keep their types */
  size_t keep_io_name_count;
  tc_onnx_progress progress; /* NULL: none */
  void* progress_data;
  int64_t opset;         /* of the new model; 0: that of the model; -1: the first that has `to`, if it is older */
  int32_t runtime;       /* where the new model must run: TC_RUNTIME_ */
  int32_t on_overflow;   /* of initializers: TC_OVERFLOW_ */
  int32_t keep_io_types; /* 1: all inputs and outputs of the model keep their types */
  int32_t weights_only;  /* 1: only initializers change, and a Cast behind each gives back the old type */
  int32_t overwrite;     /* 1: also an output that exists */
  int32_t dry_run;       /* 1: writes nothing */
} tc_onnx_convert_options;

#define TC_ONNX_CONVERT_OPTIONS_INIT \
  { sizeof(tc_onnx_convert_options), NULL, NULL, 0, NULL, 0, NULL, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0 }

/* What a conversion did: counts. Grows as tc_cast_options. */
typedef struct tc_onnx_convert_outcome {
  size_t struct_size; /* sizeof(tc_onnx_convert_outcome) */
  uint64_t nodes;
  uint64_t nodes_converted;
  uint64_t nodes_kept; /* that take or give a type which was to change, and keep it */
  uint64_t casts_before, casts_added, casts_removed, casts_after;
  uint64_t initializers_converted;
  uint64_t initializer_bytes_before, initializer_bytes_after; /* of those converted */
  int64_t opset_before, opset_after;                          /* of the standard operators; 0: not imported */
  tc_dtype to;                                                /* what values became */
} tc_onnx_convert_outcome;

#define TC_ONNX_CONVERT_OUTCOME_INIT \
  { sizeof(tc_onnx_convert_outcome), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, TC_UNDEFINED }

/* Converts the precision of the model `input` and writes it to `output`, which may be the same: operators, subgraphs,
   functions, initializers and external data. Nothing is written unless all succeeds.
   Types    `to`: TC_FLOAT16, TC_BFLOAT16, TC_FLOAT32, TC_FLOAT64; with weights_only also a float8 or TC_INT8;
            TC_UNDEFINED with a weights_scheme.
   Options  NULL means the defaults.
   Results  fills *outcome, whose struct_size is set; `outcome` may be NULL.
   Errors   TC_IO, TC_PARSE; TC_INVALID_ARGUMENT: a null path, a name that the model does not have, a type that is no
            target, an output that exists; TC_UNSUPPORTED: a type that the model's opset does not have; TC_CANCELLED. */
TC_API tc_status tc_onnx_convert(const char* input, const char* output, tc_dtype to,
                                 const tc_onnx_convert_options* options, tc_onnx_convert_outcome* outcome);

#ifdef __cplusplus
}
#endif

#endif
