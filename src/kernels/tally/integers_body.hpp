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
//    beyond the range, and the next blocks need no such products. Of those that are saturated, the largest number has
//    the largest relative error.
// 6. Lanes are counted by masks, which instructions that are no vectors' add up where there are such.
// 7. What becomes bool needs the sums of the sources and of their squares only (TruthBlock).
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/simd/environment.hpp"
#include "kernels/tally/integer_lanes.hpp"
#include "kernels/tally/integers_loops.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using Errors = IntegerRules::Errors;

// Knows nothing of the block, which so stays in registers.
template <class V>
[[gnu::noinline]] void grow(V sizes, V errors_of_sizes, IntegerTally& tally) {
  for (std::size_t i = 0; i < sizeof(V) / sizeof(sizes[0]); ++i) tally.see_ratio(errors_of_sizes[i], sizes[i]);
}

template <class V, bool is_signed, Errors errors, bool is_settled = false>
class IntegerBlock {
 public:
  using Number = std::remove_cvref_t<decltype(V{}[0])>;
  static constexpr std::size_t lanes = sizeof(V) / sizeof(Number);
  static constexpr bool reads_result = kernels::reads_result(errors);
  static constexpr bool reads_floats = takes_floats(8 * sizeof(Number), errors);

  explicit IntegerBlock(const IntegerRules& rules)
      : above_(rules.above),
        below_(rules.below),
        carry_(splat(static_cast<Number>(rules.carry))),
        limit_(splat(static_cast<Number>(rules.limit))),
        extreme_(static_cast<Number>(rules.extreme)) {}

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
  static constexpr bool has_small_errors = errors != Errors::saturated || is_signed;  // at most half of a lane's range
  // Of saturated ones, the larger the number, the larger its relative error.
  static constexpr bool sees_largest = is_settled && errors == Errors::saturated;

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
    } else {
      return max(x, y) - min(x, y);
    }
  }

  SIMD_INLINE auto within(V x, V size) const {
    if constexpr (has_limit) return lanes_not_above(size, limit_);
    if constexpr (only_positive && is_signed) return positive_lanes(as<Signed>(x));
    if constexpr (only_positive && !is_signed) return nonzero_lanes(x);
  }

  SIMD_INLINE void add(V x, V y, IntegerTally& tally) {
    V size = is_signed ? magnitude(x) : x;
    if constexpr (has_errors) {
      V error = error_of(x, y);
      if constexpr (has_limit || only_positive) {
        const auto is_within = within(x, size);
        within_.add(is_within);
        if constexpr (sees_largest) largest_ = max(largest_, size);
        if constexpr (counts_zeros) zeros_.add(zero_lanes(size));
        if constexpr (drops_beyond) {
          size = kept_where(is_within, size);
          error = kept_where(is_within, error);
        }
      }
      if (has_bits(error)) add_errors(size, error, tally);
    }
    signal_.add(size);
  }

  SIMD_INLINE void add_errors(V size, V error, IntegerTally& tally) {
    exact_.add(zero_lanes(error));
    max_error_ = max(max_error_, error);
    noise_.add(error);
    ++noisy_vectors_;
    if (!is_settled && any_greater(error, ratio_source_, size, ratio_error_)) [[unlikely]] {
      grow(size, error, tally);
      set_ratio(tally);
    }
  }

  SIMD_INLINE void set_ratio(const IntegerTally& tally) {
    ratio_error_ = splat(static_cast<Number>(tally.ratio_error));
    ratio_source_ = splat(static_cast<Number>(tally.ratio_source));
  }

  SIMD_INLINE void finish(std::size_t vectors, IntegerTally& tally) {
    tally.signal += signal_.total(vectors);
    if constexpr (!has_errors) return;
    if (noisy_vectors_ != 0) {
      tally.inexact += noisy_vectors_ * lanes - exact_.total();
      tally.noise += noise_.total(noisy_vectors_);
      tally.max_error = std::max(tally.max_error, std::uint32_t{greatest_of_lanes(max_error_)});
    }
    if constexpr (has_limit || only_positive) {
      const std::uint64_t beyond = vectors * lanes - within_.total();
      tally.beyond += beyond;
      if (errors == Errors::lifted) tally.zeros += counts_zeros ? zeros_.total() : beyond;
      if (sees_largest && beyond != 0) {
        const Number largest = greatest_of_lanes(largest_);
        tally.see_ratio(largest - std::uint32_t{extreme_}, largest);
      }
    }
  }

  static constexpr bool counts_zeros = errors == Errors::lifted && is_signed;  // without a sign, these are all beyond

  int above_, below_;
  std::size_t noisy_vectors_ = 0;
  V carry_, limit_;
  Number extreme_;
  V ratio_error_, ratio_source_;
  V max_error_ = {}, largest_ = {};
  MaskCount<V> within_, zeros_, exact_;
  SquareSum<V, is_signed> signal_;
  SquareSum<V, has_small_errors> noise_;
};

// Of what becomes bool. The error is x - 1 but for zeros: the sum of its squares is that of x^2 less twice that of x,
// and one for each. The largest error belongs to the largest or to the least x; relative errors are below 1 of positive
// numbers, and of negative ones the larger, the nearer to zero.
template <class V, bool is_signed>
class TruthBlock {
 public:
  using Number = std::remove_cvref_t<decltype(V{}[0])>;
  static constexpr std::size_t lanes = sizeof(V) / sizeof(Number);
  static constexpr bool reads_result = false, reads_floats = false;
  static constexpr std::size_t max_vectors = std::size_t{1} << 13;  // as above

  explicit TruthBlock(const IntegerRules&) {}

  SIMD_INLINE void add(const std::byte* source, const std::byte*, std::size_t vectors, IntegerTally& tally) {
    for (std::size_t i = 0; i < vectors; ++i) {
      const V x = load<V>(source + i * sizeof(V));
      signal_.add(is_signed ? magnitude(x) : x);
      sum_.add(x);
      nonzero_.add(nonzero_lanes(x));
      one_.add(zero_lanes(x ^ 1));
      last_ = max(last_, x);
      if constexpr (is_signed) {
        largest_ = max(largest_, as<Signed>(x));
        least_ = min(least_, as<Signed>(x));
      }
    }
    finish(vectors, tally);
  }

 private:
  using Signed = std::conditional_t<sizeof(Number) == 2, I16, I32>;

  SIMD_INLINE void finish(std::size_t vectors, IntegerTally& tally) {
    const codec::uint128 signal = signal_.total(vectors);
    const std::uint64_t nonzero = nonzero_.total();
    tally.signal += signal;
    tally.noise += signal - static_cast<codec::uint128>(2 * sum_.total(vectors)) + nonzero;
    tally.inexact += nonzero - one_.total();
    const Number last = greatest_of_lanes(last_);  // of negative numbers, which come last, the one nearest to zero
    if constexpr (is_signed) {
      see(tally, greatest_of_lanes(largest_));
      see(tally, -std::int64_t{greatest_of_lanes(~least_)} - 1);
      see(tally, static_cast<std::make_signed_t<Number>>(last));
    } else {
      see(tally, last);
    }
  }

  static void see(IntegerTally& tally, std::int64_t x) {
    if (x == 0) return;
    const auto error = static_cast<std::uint32_t>(x < 0 ? 1 - x : x - 1);
    tally.max_error = std::max(tally.max_error, error);
    tally.see_ratio(error, static_cast<std::uint32_t>(x < 0 ? -x : x));
  }

  SquareSum<V, is_signed> signal_;
  NumberSum<V, is_signed> sum_;
  MaskCount<V> nonzero_, one_;
  V last_ = {};
  Signed largest_ = {}, least_ = {};
};

// Not inlined: whole and incomplete vectors share the code.
template <class Block>
[[gnu::noinline]] void add_vectors(const std::byte* source, const std::byte* result, std::size_t vectors,
                                   const IntegerRules& rules, IntegerTally& tally) {
  Block(rules).add(source, result, vectors, tally);
}

// An incomplete vector is filled up with ones of no error, which are taken off again: only `signal` counts them.
template <class Block, class V>
void tally_block(const std::byte* source, const std::byte* result, std::size_t count, const IntegerRules& rules,
                 IntegerTally& tally) {
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
      tally_block<IntegerBlock<V, is_signed, errors, may_be_settled>, V>(source, result, count, rules, tally);
    } else {
      tally_block<IntegerBlock<V, is_signed, errors>, V>(source, result, count, rules, tally);
    }
  };
  if constexpr (IntegerBlock<V, is_signed, errors>::reads_floats) {
    in_default_environment(run);
  } else {
    run();
  }
}

template <class V, bool is_signed>
void tally_truths(const std::byte* source, const std::byte*, std::size_t count, const IntegerRules& rules,
                  IntegerTally& tally) {
  tally_block<TruthBlock<V, is_signed>, V>(source, nullptr, count, rules, tally);
}

IntegerLoop truth_loop(const IntegerRules& rules) {
  if (rules.bits == 16) return rules.is_signed ? tally_truths<U16, true> : tally_truths<U16, false>;
  return rules.is_signed ? tally_truths<U32, true> : tally_truths<U32, false>;
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
      return loop_of<Errors::refused>(rules);
    case Errors::truth:
      break;
  }
  return truth_loop(rules);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
