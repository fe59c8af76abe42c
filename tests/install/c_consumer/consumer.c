/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of the C interface, from plain C. */
#include <stdio.h>
#include <string.h>

#include "tensorcast/c_api.h"

static int failures = 0;

static void check(int holds, const char* what) {
  if (!holds) {
    printf("FAILED: %s (%s)\n", what, tc_last_error());
    ++failures;
  }
}

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

  if (failures == 0) printf("tensorcast %s works\n", tc_version());
  return failures == 0 ? 0 : 1;
}
