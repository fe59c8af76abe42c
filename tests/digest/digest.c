/* SPDX-License-Identifier: Apache-2.0 */
/* digest: converts all 65,536 codes of float16 and a million codes of float32 to each of the 25 numeric types of ONNX,
   with saturate 1 and 0, and by each word of rounding, and prints a digest of each result, and one of all of both
   kinds. They are the same on every machine.

     digest                                     prints 452 lines
     digest 491113efdab059d6 WORDS              prints the last line of both, and fails unless they are these

   The C interface alone, so that it compiles for whatever has a C compiler. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorcast/c_api.h"

enum { half_count = 65536, float_count = 1000000 };

/* In the order of the digest, which later types do not join. */
static const tc_dtype targets[] = {
    TC_FLOAT64,     TC_FLOAT32,         TC_FLOAT16,        TC_BFLOAT16,      TC_FLOAT8_E4M3FN, TC_FLOAT8_E4M3FNUZ,
    TC_FLOAT8_E5M2, TC_FLOAT8_E5M2FNUZ, TC_FLOAT8_E8M0FNU, TC_FLOAT6_E2M3FN, TC_FLOAT6_E3M2FN, TC_FLOAT4_E2M1FN,
    TC_INT64,       TC_INT32,           TC_INT16,          TC_INT8,          TC_INT4,          TC_INT2,
    TC_UINT64,      TC_UINT32,          TC_UINT16,         TC_UINT8,         TC_UINT4,         TC_UINT2,
    TC_BOOL};

static const uint64_t fnv_start = 0xcbf29ce484222325u;

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const void* bytes, size_t count) {
  const unsigned char* each = bytes;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ each[i]) * 0x100000001b3u;
  return hash;
}

/* xorshift64*. */
static uint64_t next_random(uint64_t* state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1du;
}

/* Any codes, half of them with exponents near those of the narrow types, an eighth with few digits, so that ties occur.
 */
static void fill_floats(uint32_t* codes) {
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i < float_count; ++i) {
    const uint64_t random = next_random(&state);
    uint32_t code = (uint32_t)(random >> 32);
    if ((random & 1) != 0) code = (code & 0x80ffffffu) | (uint32_t)(100 + (random >> 1) % 50) << 23;
    if ((random & 14) == 0) code &= 0xfff00000u;
    codes[i] = code;
  }
}

static uint32_t floats[float_count];
static uint16_t halves[half_count];
static unsigned char results[float_count * 8];
static int is_quiet;

/* Converts both sources to all types, and mixes a digest of each result into `all`. */
static uint64_t mix_all(uint64_t all, const tc_cast_options* options, const char* what, int number) {
  for (int is_half = 0; is_half <= 1; ++is_half) {
    const void* src = is_half ? (const void*)halves : (const void*)floats;
    const tc_dtype from = is_half ? TC_FLOAT16 : TC_FLOAT32;
    const size_t count = is_half ? half_count : float_count;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; ++i) {
      if (tc_cast(src, from, results, targets[i], count, options) != TC_OK) {
        fprintf(stderr, "digest: %s to %s: %s\n", tc_dtype_name(from), tc_dtype_name(targets[i]), tc_last_error());
        exit(1);
      }
      const uint64_t hash = mix(fnv_start, results, tc_storage_bytes(targets[i], count));
      if (!is_quiet) {
        printf("%s %s %s=%d %016" PRIx64 "\n", tc_dtype_name(from), tc_dtype_name(targets[i]), what, number, hash);
      }
      unsigned char bytes[8]; /* the lowest first, on every machine */
      for (int byte = 0; byte < 8; ++byte) bytes[byte] = (unsigned char)(hash >> 8 * byte);
      all = mix(all, bytes, sizeof bytes);
    }
  }
  return all;
}

/* Prints a digest. Returns 1 if it is not the wanted one. */
static int differs(const char* name, uint64_t digest, const char* wanted) {
  char text[17];
  snprintf(text, sizeof text, "%016" PRIx64, digest);
  printf("%s %s\n", name, text);
  return wanted != NULL && strcmp(wanted, text) != 0;
}

int main(int argc, char** argv) {
  fill_floats(floats);
  for (size_t i = 0; i < half_count; ++i) halves[i] = (uint16_t)i;
  is_quiet = argc > 1;

  uint64_t all = fnv_start;
  for (int saturate = 1; saturate >= 0; --saturate) {
    tc_cast_options options = TC_CAST_OPTIONS_INIT;
    options.saturate = saturate;
    all = mix_all(all, &options, "saturate", saturate);
  }
  uint64_t words = fnv_start;
  for (int word = TC_ROUNDING_NEAREST_EVEN; word <= TC_ROUNDING_STOCHASTIC; ++word) {
    tc_cast_options options = TC_CAST_OPTIONS_INIT;
    options.rounding = word;
    if (word == TC_ROUNDING_STOCHASTIC) options.seed = 0x0123456789abcdefu;
    words = mix_all(words, &options, "rounding", word);
  }
  const int is_wrong = differs("all", all, argc > 1 ? argv[1] : NULL);
  return differs("words", words, argc > 2 ? argv[2] : NULL) || is_wrong;
}
