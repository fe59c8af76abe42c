// The loops of a tally of 16-bit integers for the target that the source is compiled for.
//
// 1. All in lanes of 16 bits: the magnitudes of sources and errors fit them. Of a target that keeps the low bits, the
//    error is what the bits above are worth, in units of the lowest of these.
// 2. Each loop is for one way that errors come about, and counts what can occur there.
// 3. Squares are summed as integers of 64 bits (word_lanes.hpp).
// 4. The largest relative error is kept as the fraction of two integers. The product with the other's denominator tells
//    whether one is greater, which seldom happens: then the lanes are gone through one by one.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/tally/word_lanes.hpp"
#include "kernels/tally/integers_loops.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using Errors = IntegerRules::Errors;

template <bool is_signed, Errors errors>
class WordBlock {
 public:
  explicit WordBlock(const IntegerRules& rules)
      : above_(rules.above), below_(rules.below), carry_(splat(static_cast<std::uint16_t>(rules.carry))), limit_(splat(static_cast<std::uint16_t>(rules.limit))) {}

  // At most 2^13 vectors: more, and a lane's counts might run over.
  static constexpr std::size_t max_vectors = std::size_t{1} << 13;

  SIMD_INLINE void add(const std::byte* source, const std::byte* result, std::size_t vectors, WordTally& tally) {
    set_ratio(tally);
    for (std::size_t i = 0; i < vectors; ++i) {
      const std::size_t at = i * sizeof(U16);
      const U16 x = load<U16>(source + at);
      add(x, reads_result ? load<U16>(result + at) : U16{}, tally);
    }
    finish(vectors, tally);
  }

 private:
  static constexpr std::size_t lanes = sizeof(U16) / sizeof(std::uint16_t);
  static constexpr bool has_errors = errors != Errors::none;
  static constexpr bool reads_result = has_errors && errors != Errors::wrapped;
  static constexpr bool has_limit = errors == Errors::saturated || errors == Errors::overflowed;
  static constexpr bool only_positive = errors == Errors::lifted || errors == Errors::refused;
  static constexpr bool drops_beyond = errors == Errors::overflowed || errors == Errors::refused;
  static constexpr bool has_small_errors = errors != Errors::saturated;  // at most 2^15

  SIMD_INLINE static U16 one() { return splat(std::uint16_t{1}); }
  SIMD_INLINE static U16 magnitude(U16 x) { return as<U16>(max(as<I16>(x), as<I16>(-x))); }

  SIMD_INLINE U16 error_of(U16 x, U16 y) const {
    if constexpr (errors == Errors::wrapped) {
      const U16 carry = (x >> below_) & carry_;
      return is_signed ? magnitude(as<U16>(as<I16>(x) >> above_) + carry) : (x >> above_) + carry;
    } else if constexpr (has_small_errors) {
      return magnitude(x - y);
    } else if constexpr (is_signed) {
      return as<U16>(max(as<I16>(x), as<I16>(y))) - as<U16>(min(as<I16>(x), as<I16>(y)));
    } else {
      return max(x, y) - min(x, y);
    }
  }

  SIMD_INLINE void add(U16 x, U16 y, WordTally& tally) {
    if constexpr (has_errors) {
      U16 error = error_of(x, y);
      if constexpr (has_limit || only_positive) {
        U16 within;  // 1 or 0
        if constexpr (has_limit) {
          within = one() - min(subtract_to_zero(is_signed ? magnitude(x) : x, limit_), one());
        } else {
          within = min(is_signed ? as<U16>(max(as<I16>(x), I16{})) : x, one());
        }
        within_ += within;
        if constexpr (errors == Errors::lifted) nonzero_ += min(x, one());
        if constexpr (drops_beyond) {
          x &= U16{} - within;
          error &= U16{} - within;
        }
      }
      inexact_ += min(error, one());
      max_error_ = max(max_error_, error);
      noise_.add(error);
      const U16 size = is_signed ? magnitude(x) : x;
      if (any_greater(error, ratio_source_, size, ratio_error_)) [[unlikely]] {
        grow(size, error, tally);
        set_ratio(tally);
      }
    }
    signal_.add(x);
  }

  // Knows nothing of the block, which so stays in registers.
  [[gnu::noinline]] static void grow(U16 sizes, U16 errors_of_sizes, WordTally& tally) {
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::uint16_t size = sizes[i], error = errors_of_sizes[i];
      if (std::uint32_t{error} * tally.ratio_source > std::uint32_t{size} * tally.ratio_error) {
        tally.ratio_error = error;
        tally.ratio_source = size;
      }
    }
  }
  SIMD_INLINE void set_ratio(const WordTally& tally) {
    ratio_error_ = splat(tally.ratio_error);
    ratio_source_ = splat(tally.ratio_source);
  }

  SIMD_INLINE void finish(std::size_t vectors, WordTally& tally) {
    tally.signal += signal_.total(vectors);
    if constexpr (!has_errors) return;
    tally.noise += noise_.total(vectors);
    tally.inexact += sum_of_lanes(inexact_);
    std::uint16_t greatest[lanes];
    store(reinterpret_cast<std::byte*>(greatest), max_error_);
    for (const std::uint16_t error : greatest) tally.max_error = std::max(tally.max_error, error);
    if constexpr (has_limit || only_positive) tally.beyond += vectors * lanes - sum_of_lanes(within_);
    if constexpr (errors == Errors::lifted) tally.zeros += vectors * lanes - sum_of_lanes(nonzero_);
  }

  int above_, below_;
  U16 carry_, limit_;
  U16 ratio_error_, ratio_source_;
  U16 within_ = {}, nonzero_ = {}, inexact_ = {}, max_error_ = {};
  SquareSum<is_signed> signal_;
  SquareSum<has_small_errors> noise_;
};

// An incomplete vector is filled up with ones of no error, which are taken off again: only `signal` counts them.
template <bool is_signed, Errors errors>
void tally_words(const std::byte* source, const std::byte* result, std::size_t count, const IntegerRules& rules,
                 WordTally& tally) {
  using Block = WordBlock<is_signed, errors>;
  constexpr std::size_t word = sizeof(std::uint16_t), lanes = sizeof(U16) / word;
  const std::size_t vectors = count / lanes;
  for (std::size_t first = 0; first < vectors; first += Block::max_vectors) {
    const std::size_t some = std::min(Block::max_vectors, vectors - first);
    Block(rules).add(source + first * sizeof(U16), result + first * sizeof(U16), some, tally);
  }
  const std::size_t rest = count % lanes;
  if (rest == 0) return;
  std::byte last_source[sizeof(U16)], last_result[sizeof(U16)];
  store(last_source, splat(std::uint16_t{1}));
  store(last_result, splat(std::uint16_t{1}));
  __builtin_memcpy(last_source, source + vectors * sizeof(U16), rest * word);
  if (errors != Errors::none && errors != Errors::wrapped) {
    __builtin_memcpy(last_result, result + vectors * sizeof(U16), rest * word);
  }
  Block(rules).add(last_source, last_result, 1, tally);
  tally.signal -= lanes - rest;
}

template <Errors errors>
WordLoop word_loop_of(bool is_signed) {
  return is_signed ? tally_words<true, errors> : tally_words<false, errors>;
}

WordLoop word_loop(const IntegerRules& rules) {
  switch (rules.errors) {
    case Errors::none:
      return word_loop_of<Errors::none>(rules.is_signed);
    case Errors::wrapped:
      return word_loop_of<Errors::wrapped>(rules.is_signed);
    case Errors::rounded:
      return word_loop_of<Errors::rounded>(rules.is_signed);
    case Errors::saturated:
      return word_loop_of<Errors::saturated>(rules.is_signed);
    case Errors::overflowed:
      return word_loop_of<Errors::overflowed>(rules.is_signed);
    case Errors::lifted:
      return word_loop_of<Errors::lifted>(rules.is_signed);
    case Errors::refused:
      break;
  }
  return word_loop_of<Errors::refused>(rules.is_signed);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
