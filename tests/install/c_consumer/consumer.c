/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of the C interface, from plain C. */
#include <stdio.h>
#include <string.h>

#include "tensorcast/c_api.h"
#ifdef WITH_FILES
#include "tensorcast/c_files.h"
#endif
#ifdef WITH_MODELS
#include "tensorcast/c_onnx.h"
#endif

static int failures = 0;

static void check(int holds, const char* what) {
  if (!holds) {
    printf("FAILED: %s (%s)\n", what, tc_last_error());
    ++failures;
  }
}

static void use_prepared_casts(void) {
  const float source[2] = {1.5f, -0.0f};
  const unsigned short halves[2] = {0x3e00, 0x8000};
  unsigned short out[2] = {0, 0};
  tc_prepared_cast prepared = TC_PREPARED_CAST_INIT;

  check(tc_run_prepared(&prepared, source, out, 2) == TC_INVALID_ARGUMENT, "a cast that was not prepared");
  check(tc_prepare_cast(TC_FLOAT32, TC_FLOAT16, NULL, &prepared) == TC_OK, "prepare a cast");
  check(tc_run_prepared(&prepared, source, out, 2) == TC_OK && memcmp(out, halves, sizeof out) == 0, "run it");
  check(tc_prepare_cast(TC_FLOAT32, (tc_dtype)99, NULL, &prepared) == TC_INVALID_ARGUMENT, "prepare an unknown type");
  check(tc_run_prepared(&prepared, source, out, 2) == TC_OK, "which leaves the struct as it was");
}

/* Rows of a weight, one at a time, into the caller's memory and back. */
static void use_rows(void) {
  const int64_t shape[2] = {2, 32}, row_shape[2] = {1, 32};
  float row[32], back[64];
  unsigned char codes[68];
  tc_array rows = TC_ARRAY_INIT;
  tc_quantized_layout layout = TC_QUANTIZED_LAYOUT_INIT;
  tc_quantized_buffers buffers = TC_QUANTIZED_BUFFERS_INIT;
  tc_quantize_options options = TC_QUANTIZE_OPTIONS_INIT;
  tc_block_tensor weight = TC_BLOCK_TENSOR_INIT;
  tc_prepared_dequantize* prepared = NULL;
  int64_t i, code_shape[2];

  options.to_gguf = 1;
  check(tc_quantized_sizes("q8_0", shape, 2, &options, &layout) == TC_OK && layout.codes_bytes == sizeof codes &&
            layout.codes_row_bytes == 34 && layout.scales_bytes == 0 && layout.rows == 2,
        "sizes of a quantized weight");
  buffers.codes = codes;
  buffers.codes_bytes = sizeof codes;
  rows.data = row;
  rows.shape = row_shape;
  rows.rank = 2;
  rows.dtype = TC_FLOAT32;
  for (i = 0; i < 2; ++i) {
    size_t column;
    for (column = 0; column < 32; ++column) row[column] = (float)(127 * (i + 1) * (column == 31 ? 1 : -1));
    check(tc_quantize_rows("q8_0", &rows, i, &buffers, &options) == TC_OK, "quantize a row");
  }
  buffers.codes_bytes = sizeof codes - 1;
  check(tc_quantize_rows("q8_0", &rows, 0, &buffers, &options) == TC_INVALID_ARGUMENT, "a short buffer of codes");

  weight.scheme = "q8_0";
  weight.shape = shape;
  weight.rank = 2;
  code_shape[0] = 2;
  code_shape[1] = 34;
  weight.codes.data = codes;
  weight.codes.shape = code_shape;
  weight.codes.rank = 2;
  weight.codes.dtype = TC_UINT8;
  check(tc_prepare_dequantize(&weight, TC_FLOAT32, NULL, &prepared) == TC_OK, "prepare rows");
  check(tc_dequantize_rows(prepared, NULL, 0, 2, back) == TC_OK && back[0] == -127 && back[63] == 254, "decode them");
  check(tc_dequantize_rows(prepared, codes + 34, 1, 1, back) == TC_OK && back[31] == 254, "decode codes elsewhere");
  check(tc_dequantize_rows(prepared, NULL, 1, 2, back) == TC_INVALID_ARGUMENT, "rows beyond the last");
  tc_prepared_dequantize_free(prepared);
}

#ifdef WITH_FILES
static tc_status read_bytes(void* context, uint64_t offset, void* dst, size_t bytes) {
  memcpy(dst, (const char*)context + offset, bytes);
  return TC_OK;
}

static void use_files(void) {
  const float numbers[2] = {1.5f, -2.0f};
  const int64_t shape[1] = {2};
  const char* const names[1] = {"x"};
  const tc_array arrays[1] = {{numbers, shape, 1, TC_FLOAT32}};
  char npy[] = "\x93NUMPY\x01\x00\x37\x00{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}\x07";
  tc_write_options options = TC_WRITE_OPTIONS_INIT;
  tc_source source = TC_SOURCE_INIT;
  tc_tensor_info info = TC_TENSOR_INFO_INIT;
  tc_file* file = NULL;
  double read[2] = {0, 0};

  options.overwrite = 1;
  check(tc_write_file("consumer.safetensors", names, arrays, 1, &options) == TC_OK, "write a file");
  check(tc_file_open("consumer.safetensors", &file) == TC_OK && tc_file_count(file) == 1, "open it");
  check(strcmp(tc_file_format(file), "safetensors") == 0, "its format");
  check(tc_file_tensor(file, 0, &info) == TC_OK && strcmp(info.name, "x") == 0 && info.shape[0] == 2, "its tensor");
  check(tc_file_read(file, 0, 0, 2, read, sizeof read, TC_FLOAT64, NULL) == TC_OK && read[1] == -2.0, "read it");
  check(tc_file_read(file, 0, 0, 2, read, 15, TC_FLOAT64, NULL) == TC_INVALID_ARGUMENT, "a short buffer");
  check(tc_file_tensor(file, 1, &info) == TC_INVALID_ARGUMENT, "no such tensor");
  tc_file_close(file);
  source.context = npy;
  source.size = sizeof npy - 1;
  source.read = read_bytes;
  check(tc_file_open_source(&source, "x.npy", &file) == TC_OK, "open memory");
  check(tc_file_read(file, 0, 0, 1, read, sizeof read, TC_FLOAT64, NULL) == TC_OK && read[0] == 7.0, "read memory");
  tc_file_close(file);
}
#endif

int main(void) {
  const float source[3] = {1.5f, 300.0f, -1.0f};
  unsigned char narrow[3];
  tc_cast_options options;
  tc_promote_options promotion = {
      .struct_size = sizeof(tc_promote_options), .promote_unsafe = 1, .u64_integer_promotion_target = 1};
  tc_dtype common = 0;
  char* text = NULL;
  int64_t* offsets = NULL;

  (tc_cast_options_init)(&options); /* the function, as programs call it that were compiled before there was a macro */
  check(options.struct_size == 56, "the options of the first release");
  tc_cast_options_init(&options);
  check(options.struct_size == sizeof options && options.saturate == 1 && options.scale == 1.0, "defaults");
  check(tc_storage_bytes(22, 3) == 2, "storage of int4");
  check(strcmp(tc_dtype_name(17), "float8_e4m3fn") == 0 && tc_dtype_parse("E4M3FN") == 17, "names");
  check(tc_cast(source, 1, narrow, 2, 3, NULL) == TC_OK && narrow[0] == 1 && narrow[1] == 44 && narrow[2] == 255,
        "cast");

  options.out_of_range = 3;
  check(tc_cast(source, 1, narrow, 2, 3, &options) == TC_OUT_OF_RANGE, "refusal");
  check(strstr(tc_last_error(), "300") != NULL, "the refusal names the value");
  check(tc_cast(NULL, 1, narrow, 2, 3, NULL) == TC_INVALID_ARGUMENT, "a null buffer");
  check(tc_cast(source, 99, narrow, 2, 3, NULL) == TC_INVALID_ARGUMENT, "an unknown type");

  check(tc_cast_to_strings(source, 1, 3, &text, &offsets, NULL) == TC_OK, "to strings");
  if (text != NULL && offsets != NULL) {
    float back[3] = {0, 0, 0};
    check(offsets[3] == 12 && memcmp(text, "1.5300.0-1.0", 12) == 0, "the strings");
    check(tc_cast_from_strings(text, offsets, back, 1, 3, NULL) == TC_OK, "from strings");
    check(memcmp(back, source, sizeof back) == 0, "strings round trip");
  }
  tc_free(text);
  tc_free(offsets);

  check(tc_promote(2, 0, 3, 0, &promotion, &common) == TC_OK && common == 5, "uint8 and int8 make int16");
  check(tc_promote(2, 0, 3, 0, NULL, &common) == TC_UNSUPPORTED, "but not safely");

  {
    const unsigned char codes[16] = {0x21}; /* 0.5, 1 */
    const unsigned char scale = 128;        /* 2 */
    const int64_t shape[2] = {1, 32}, code_shape[2] = {1, 16}, one[1] = {1};
    float numbers[32];
    tc_block_tensor weight;
    memset(&weight, 0, sizeof weight);
    weight.struct_size = sizeof weight;
    weight.scheme = "mxfp4";
    weight.shape = shape;
    weight.rank = 2;
    weight.codes.data = codes;
    weight.codes.shape = code_shape;
    weight.codes.rank = 2;
    weight.codes.dtype = 2;
    weight.scales.data = &scale;
    weight.scales.shape = one;
    weight.scales.rank = 1;
    weight.scales.dtype = 2;
    check(tc_dequantize(&weight, 0, 1, numbers, 1, NULL) == TC_OK && numbers[0] == 1 && numbers[1] == 2, "dequantize");
    weight.scheme = "nf5";
    check(tc_dequantize(&weight, 0, 1, numbers, 1, NULL) == TC_INVALID_ARGUMENT, "no such scheme");
  }

  use_prepared_casts();
  use_rows();
#ifdef WITH_FILES
  use_files();
#endif
#ifdef WITH_MODELS
  check(tc_onnx_convert("absent.onnx", "out.onnx", TC_FLOAT16, NULL, NULL) == TC_IO, "no such model");
#endif

  if (failures == 0) printf("tensorcast %s works\n", tc_version());
  return failures == 0 ? 0 : 1;
}
