// The loops of a tally of integers of 16 and 32 bits for the target that the source is compiled for.
//
// 1. All in lanes of the source's width: the magnitudes of sources and errors fit them. Of a target that keeps the low
//    bits, the error is what the bits above are worth, in units of the lowest of these.
// 2. Each loop is for one way that errors come about, and counts what can occur there. Vectors without errors have only
//    their sources summed.
// 3. Squares are summed as integers (integer_lanes.hpp).
// 4. The largest relative error is kept as the fraction of two integers. The product with the other's denominator tells
//    whether one is greater, which seldom happens: then the lanes are gone through one by one.
// 5. Small integers have the largest relative errors that there can be: after these, it is settled, but for elements
//    beyond the range, and the next blocks need no such products.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/simd/environment.hpp"
#include "kernels/tally/integer_lanes.hpp"
#include "kernels/tally/integers_loops.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using Errors = IntegerRules::Errors;

template <class V, bool is_signed, Errors errors, bool is_settled = false>
class IntegerBlock {
 public:
  using Number = std::remove_cvref_t<decltype(V{}[0])>;
  static constexpr std::size_t lanes = sizeof(V) / sizeof(Number);
  static constexpr bool reads_result = errors != Errors::none && errors != Errors::wrapped;
  static constexpr bool reads_floats = takes_floats(8 * sizeof(Number), errors);

  explicit IntegerBlock(const IntegerRules& rules)
      : above_(rules.above),
        below_(rules.below),
        carry_(splat(static_cast<Number>(rules.carry))),
        limit_(splat(static_cast<Number>(rules.limit))) {}

  // At most 2^13 vectors: more, and sums might run over.
  static constexpr std::size_t max_vectors = std::size_t{1} << 13;

  SIMD_INLINE void add(const std::byte* source, const std::byte* result, std::size_t vectors, IntegerTally& tally) {
    set_ratio(tally);
    for (std::size_t i = 0; i < vectors; ++i) {
      const V x = load<V>(source + i * sizeof(V));
      add(x, result_at(result, i * sizeof(V)), tally);
    }
    finish(vectors, tally);
  }

 private:
  using Signed = std::conditional_t<sizeof(Number) == 2, I16, I32>;
  static constexpr bool has_errors = errors != Errors::none;
  static constexpr bool has_limit = errors == Errors::saturated || errors == Errors::overflowed;
  static constexpr bool only_positive = errors == Errors::lifted || errors == Errors::refused;
  static constexpr bool drops_beyond = errors == Errors::overflowed || errors == Errors::refused;
  static constexpr bool has_small_errors = errors != Errors::saturated;  // at most half of a lane's range

  SIMD_INLINE static V one() { return splat(Number{1}); }
  SIMD_INLINE static V magnitude(V x) { return as<V>(max(as<Signed>(x), as<Signed>(-x))); }

  SIMD_INLINE static V result_at(const std::byte* result, std::size_t at) {
    if constexpr (reads_floats) {
      return as<V>(truncate(load<F32>(result + at)));  // some number where infinite or NaN
    } else if constexpr (reads_result) {
      return load<V>(result + at);
    } else {
      return V{};
    }
  }

  SIMD_INLINE V error_of(V x, V y) const {
    if constexpr (errors == Errors::wrapped) {
      const V carry = (x >> below_) & carry_;
      return is_signed ? magnitude(as<V>(as<Signed>(x) >> above_) + carry) : (x >> above_) + carry;
    } else if constexpr (has_small_errors) {
      return magnitude(x - y);
    } else if constexpr (is_signed) {
      return as<V>(max(as<Signed>(x), as<Signed>(y))) - as<V>(min(as<Signed>(x), as<Signed>(y)));
    } else {
      return max(x, y) - min(x, y);
    }
  }

  SIMD_INLINE void add(V x, V y, IntegerTally& tally) {
    V size = is_signed ? magnitude(x) : x;
    if constexpr (has_errors) {
      V error = error_of(x, y);
      bool may_grow = !is_settled;
      if constexpr (has_limit || only_positive) {
        V within;  // all bits, or none
        if constexpr (has_limit) {
          within = as<V>(min(size, limit_) == size);
        } else {
          within = is_signed ? as<V>(as<Signed>(x) > Signed{}) : as<V>(x != V{});
        }
        within_ -= within;
        if constexpr (is_settled && errors == Errors::saturated) may_grow = has_bits(~within);
        if constexpr (errors == Errors::lifted) nonzero_ += min(size, one());
        if constexpr (drops_beyond) {
          size &= within;
          error &= within;
        }
      }
      if (has_bits(error)) add_errors(size, error, may_grow, tally);
    }
    signal_.add(size);
  }

  SIMD_INLINE void add_errors(V size, V error, bool may_grow, IntegerTally& tally) {
    inexact_ += min(error, one());
    max_error_ = max(max_error_, error);
    noise_.add(error);
    ++noisy_vectors_;
    if (may_grow && any_greater(error, ratio_source_, size, ratio_error_)) [[unlikely]] {
      grow(size, error, tally);
      set_ratio(tally);
    }
  }

  // Knows nothing of the block, which so stays in registers.
  [[gnu::noinline]] static void grow(V sizes, V errors_of_sizes, IntegerTally& tally) {
    for (std::size_t i = 0; i < lanes; ++i) {
      const Number size = sizes[i], error = errors_of_sizes[i];
      if (std::uint64_t{error} * tally.ratio_source > std::uint64_t{size} * tally.ratio_error) {
        tally.ratio_error = error;
        tally.ratio_source = size;
      }
    }
  }
  SIMD_INLINE void set_ratio(const IntegerTally& tally) {
    ratio_error_ = splat(static_cast<Number>(tally.ratio_error));
    ratio_source_ = splat(static_cast<Number>(tally.ratio_source));
  }

  SIMD_INLINE void finish(std::size_t vectors, IntegerTally& tally) {
    tally.signal += signal_.total(vectors);
    if constexpr (!has_errors) return;
    const std::uint64_t inexact = sum_of_lanes(inexact_);
    if (inexact != 0) {
      tally.inexact += inexact;
      tally.noise += noise_.total(noisy_vectors_);
      Number greatest[lanes];
      store(reinterpret_cast<std::byte*>(greatest), max_error_);
      for (const Number error : greatest) tally.max_error = std::max(tally.max_error, std::uint32_t{error});
    }
    if constexpr (has_limit || only_positive) tally.beyond += vectors * lanes - sum_of_lanes(within_);
    if constexpr (errors == Errors::lifted) tally.zeros += vectors * lanes - sum_of_lanes(nonzero_);
  }

  int above_, below_;
  std::size_t noisy_vectors_ = 0;
  V carry_, limit_;
  V ratio_error_, ratio_source_;
  V within_ = {}, nonzero_ = {}, inexact_ = {}, max_error_ = {};
  SquareSum<V, is_signed> signal_;
  SquareSum<V, has_small_errors> noise_;
};

// Not inlined: whole and incomplete vectors share the code.
template <class Block>
[[gnu::noinline]] void add_vectors(const std::byte* source, const std::byte* result, std::size_t vectors,
                                   const IntegerRules& rules, IntegerTally& tally) {
  Block(rules).add(source, result, vectors, tally);
}

// An incomplete vector is filled up with ones of no error, which are taken off again: only `signal` counts them.
template <class V, bool is_signed, Errors errors, bool is_settled>
void tally_block(const std::byte* source, const std::byte* result, std::size_t count, const IntegerRules& rules,
                 IntegerTally& tally) {
  using Block = IntegerBlock<V, is_signed, errors, is_settled>;
  using Number = typename Block::Number;
  const std::size_t vectors = count / Block::lanes;
  for (std::size_t first = 0; first < vectors; first += Block::max_vectors) {
    const std::size_t some = std::min(Block::max_vectors, vectors - first);
    add_vectors<Block>(source + first * sizeof(V), Block::reads_result ? result + first * sizeof(V) : nullptr, some,
                       rules, tally);
  }
  const std::size_t rest = count % Block::lanes;
  if (rest == 0) return;
  std::byte last_source[sizeof(V)], last_result[sizeof(V)];
  store(last_source, splat(Number{1}));
  if constexpr (Block::reads_floats) {
    store(last_result, splat(1.0F));
  } else {
    store(last_result, splat(Number{1}));
  }
  __builtin_memcpy(last_source, source + vectors * sizeof(V), rest * sizeof(Number));
  if constexpr (Block::reads_result) {
    __builtin_memcpy(last_result, result + vectors * sizeof(V), rest * sizeof(Number));
  }
  add_vectors<Block>(last_source, last_result, 1, rules, tally);
  tally.signal -= Block::lanes - rest;
}

// Conversions of infinities and NaN must not trap.
template <class V, bool is_signed, Errors errors>
void tally_integers(const std::byte* source, const std::byte* result, std::size_t count, const IntegerRules& rules,
                    IntegerTally& tally) {
  constexpr bool may_be_settled = errors != Errors::none && errors != Errors::refused;
  const bool is_settled = std::uint64_t{tally.ratio_error} * rules.least_ratio >= tally.ratio_source;
  const auto run = [&] {
    if (may_be_settled && is_settled) {
      tally_block<V, is_signed, errors, may_be_settled>(source, result, count, rules, tally);
    } else {
      tally_block<V, is_signed, errors, false>(source, result, count, rules, tally);
    }
  };
  if constexpr (IntegerBlock<V, is_signed, errors>::reads_floats) {
    in_default_environment(run);
  } else {
    run();
  }
}

template <Errors errors>
IntegerLoop loop_of(const IntegerRules& rules) {
  if (rules.bits == 16) return rules.is_signed ? tally_integers<U16, true, errors> : tally_integers<U16, false, errors>;
  return rules.is_signed ? tally_integers<U32, true, errors> : tally_integers<U32, false, errors>;
}

IntegerLoop integer_loop(const IntegerRules& rules) {
  switch (rules.errors) {
    case Errors::none:
      return loop_of<Errors::none>(rules);
    case Errors::wrapped:
      return loop_of<Errors::wrapped>(rules);
    case Errors::rounded:
      return loop_of<Errors::rounded>(rules);
    case Errors::saturated:
      return loop_of<Errors::saturated>(rules);
    case Errors::overflowed:
      return loop_of<Errors::overflowed>(rules);
    case Errors::lifted:
      return loop_of<Errors::lifted>(rules);
    case Errors::refused:
      break;
  }
  return loop_of<Errors::refused>(rules);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
