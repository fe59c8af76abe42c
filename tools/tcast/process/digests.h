/* SPDX-License-Identifier: Apache-2.0 */
/* Two digests of 240 million conversions, the same on every machine, for `tcast info --digest` and tests/digest. In the
   C that is C++, too, and by the C interface alone, so that they compile wherever the library does. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "tensorcast/c_api.h"

/* The digests of a machine without defects. */
static const uint64_t expected_digest_of_casts = 0x491113efdab059d6u;
static const uint64_t expected_digest_of_words = 0x968716fa37871ce3u;

typedef struct {
  uint64_t casts; /* with saturate 1 and 0 */
  uint64_t words; /* by each word of rounding */
} Digests;

/* Is told the digest of each result: of type `from` to `to`, with saturate=number or rounding=number. */
typedef void (*DigestListener)(tc_dtype from, tc_dtype to, const char* what, int number, uint64_t digest);

enum { digest_halves = 65536, digest_floats = 1000000 };

/* FNV-1a. */
static inline uint64_t digest_mix(uint64_t hash, const void* bytes, size_t count) {
  const unsigned char* each = (const unsigned char*)bytes;
  for (size_t i = 0; i < count; ++i) hash = (hash ^ each[i]) * 0x100000001b3u;
  return hash;
}

/* Writes digest_floats codes of float32: any, half of them with exponents near those of the narrow types, an eighth
   with few digits, so that ties occur. */
static inline void digest_fill_floats(uint32_t* codes) {
  uint64_t state = 0x9e3779b97f4a7c15u; /* xorshift64* */
  for (size_t i = 0; i < digest_floats; ++i) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    const uint64_t random = state * 0x2545f4914f6cdd1du;
    uint32_t code = (uint32_t)(random >> 32);
    if ((random & 1) != 0) code = (code & 0x80ffffffu) | (uint32_t)(100 + (random >> 1) % 50) << 23;
    if ((random & 14) == 0) code &= 0xfff00000u;
    codes[i] = code;
  }
}

typedef struct {
  uint32_t* floats;
  uint16_t* halves;
  unsigned char* results; /* digest_floats * 8 bytes */
  DigestListener listener;
} DigestWork;

/* Converts both sources to ONNX's 25 numeric types, in an order that later types do not change, and mixes a digest of
   each result into *all. */
static inline tc_status digest_mix_casts(const DigestWork* work, const tc_cast_options* options, const char* what,
                                         int number, uint64_t* all) {
  static const tc_dtype targets[] = {
      TC_FLOAT64,     TC_FLOAT32,         TC_FLOAT16,        TC_BFLOAT16,      TC_FLOAT8_E4M3FN, TC_FLOAT8_E4M3FNUZ,
      TC_FLOAT8_E5M2, TC_FLOAT8_E5M2FNUZ, TC_FLOAT8_E8M0FNU, TC_FLOAT6_E2M3FN, TC_FLOAT6_E3M2FN, TC_FLOAT4_E2M1FN,
      TC_INT64,       TC_INT32,           TC_INT16,          TC_INT8,          TC_INT4,          TC_INT2,
      TC_UINT64,      TC_UINT32,          TC_UINT16,         TC_UINT8,         TC_UINT4,         TC_UINT2,
      TC_BOOL};
  for (int is_half = 0; is_half <= 1; ++is_half) {
    const void* src = is_half ? (const void*)work->halves : (const void*)work->floats;
    const tc_dtype from = is_half ? TC_FLOAT16 : TC_FLOAT32;
    const size_t count = is_half ? digest_halves : digest_floats;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; ++i) {
      const tc_status status = tc_cast(src, from, work->results, targets[i], count, options);
      if (status != TC_OK) return status;
      const uint64_t hash = digest_mix(0xcbf29ce484222325u, work->results, tc_storage_bytes(targets[i], count));
      if (work->listener != NULL) work->listener(from, targets[i], what, number, hash);
      unsigned char bytes[8]; /* the lowest first, on every machine */
      for (int byte = 0; byte < 8; ++byte) bytes[byte] = (unsigned char)(hash >> 8 * byte);
      *all = digest_mix(*all, bytes, sizeof bytes);
    }
  }
  return TC_OK;
}

/* Sets *digests, and calls `listener`, which may be NULL. Takes a second or two, and 12 MB of memory.
   Errors: those of tc_cast(); TC_INTERNAL if memory runs out. */
static inline tc_status digest_casts(Digests* digests, DigestListener listener) {
  DigestWork work;
  work.floats = (uint32_t*)malloc(digest_floats * sizeof(uint32_t));
  work.halves = (uint16_t*)malloc(digest_halves * sizeof(uint16_t));
  work.results = (unsigned char*)malloc((size_t)digest_floats * 8);
  work.listener = listener;
  tc_status status = TC_INTERNAL;
  if (work.floats != NULL && work.halves != NULL && work.results != NULL) {
    status = TC_OK;
    digest_fill_floats(work.floats);
    for (size_t i = 0; i < digest_halves; ++i) work.halves[i] = (uint16_t)i;
  }
  digests->casts = digests->words = 0xcbf29ce484222325u;
  for (int saturate = 1; saturate >= 0 && status == TC_OK; --saturate) {
    tc_cast_options options = TC_CAST_OPTIONS_INIT;
    options.saturate = saturate;
    status = digest_mix_casts(&work, &options, "saturate", saturate, &digests->casts);
  }
  for (int word = TC_ROUNDING_NEAREST_EVEN; word <= TC_ROUNDING_STOCHASTIC && status == TC_OK; ++word) {
    tc_cast_options options = TC_CAST_OPTIONS_INIT;
    options.rounding = word;
    if (word == TC_ROUNDING_STOCHASTIC) options.seed = 0x0123456789abcdefu;
    status = digest_mix_casts(&work, &options, "rounding", word, &digests->words);
  }
  free(work.floats);
  free(work.halves);
  free(work.results);
  return status;
}
