// SPDX-License-Identifier: Apache-2.0
// Numbers rounded to those of another type by the words of D16, as float32 or float64: the type's kernel then changes
// nothing but their form.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/policy.hpp"
#include "tensorcast/cast_options.hpp"

namespace tensorcast::kernels {

// The words that differ by more than a sign.
enum class WordKind : std::uint8_t { even, away, zero, directed, odd, stochastic };

struct RoundRule {
  Rounding word = Rounding::toward_zero;  // not automatic; nearest_even to powers of two only
  int kept_bits = 0;                      // after the leading one, of numbers above the subnormal ones
  int last_place = 0;                     // the exponent of the least number above zero
  // What greater positive and negative finite numbers become: the largest, or infinity if they stay.
  double positive_limit = 0.0, negative_limit = 0.0;
  bool is_magnitude = false;     // signs are dropped
  bool is_power_of_two = false;  // of float8_e8m0fnu, in float64; numbers out of its range stay
};

// Rounds `count` numbers. `src` and `dst` have any alignment, and are equal or disjoint. `random`: a word for each
// number, of stochastic rounding.
using RoundFn = void (*)(const std::byte* src, std::byte* dst, std::size_t count, const RoundRule& rule,
                         const std::uint32_t* random);

// Numbers as those of a narrower type, rounded to odd: a later rounding to fewer bits has the result of one rounding.
using NarrowFn = void (*)(const std::byte* src, std::byte* dst, std::size_t count);

// A float type to another type by the policy's word. `random`: a word for each number if it is stochastic, else null.
using EncodeByWordFn = void (*)(const std::byte* src, std::byte* dst, std::size_t count, const codec::Policy& policy,
                                const std::uint32_t* random);

struct Rounders {
  RoundFn float32 = nullptr;
  RoundFn float64 = nullptr;
  RoundFn int32 = nullptr, uint32 = nullptr;  // to float32
  RoundFn int64 = nullptr, uint64 = nullptr;  // to float64
  NarrowFn int64_to_float64 = nullptr, uint64_to_float64 = nullptr;
  NarrowFn int64_to_float32 = nullptr, uint64_to_float32 = nullptr;
  // To float32, for types of numbers below 2^24; null where the whole conversion is faster.
  NarrowFn int64_limited = nullptr, uint64_limited = nullptr;
  NarrowFn int32_to_float32 = nullptr, uint32_to_float32 = nullptr;
  NarrowFn float64_to_float32 = nullptr;
};

// The words of 4 `blocks` elements, from element 4 `first_block` on (codec::random_block).
using RandomWordsFn = void (*)(std::uint64_t seed, std::uint64_t first_block, std::size_t blocks, std::uint32_t* words);

}  // namespace tensorcast::kernels
