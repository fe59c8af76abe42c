// Conversions with a scale in one pass: products in registers, and the encoders from there. Not of all sources with all
// products; the others take two passes (scaled.cpp).
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "kernels/wide/convert.hpp"
#include "kernels/wide/encode_cells.hpp"
#include "kernels/wide/float4_steps.hpp"
#if TENSORCAST_TARGET_LEVEL >= 2
#include "kernels/wide/multiply_near.hpp"
#endif
#include "kernels/wide/multiply_products.hpp"
#include "kernels/wide/scaled_powers.hpp"
#include "kernels/wide/scaled_words.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// The type whose encoders take such units.
template <class Unit>
constexpr DType hub_of = std::is_same_v<Unit, F32>     ? DType::float32
                         : std::is_same_v<Unit, F64x2> ? DType::float64
                         : std::is_same_v<Unit, I32>   ? DType::int32
                                                       : DType::int64;

// The encoder that products bring along, or that of the type which they are.
template <DType to, class Products>
auto products_encoder(const Policy& policy, const Factor& factor) {
  if constexpr (requires { typename Products::Encoder; }) {
    return typename Products::Encoder(policy, factor);
  } else {
    return make_encoder<hub_of<typename Products::Unit>, to>(policy);
  }
}
template <class Products>
auto products_block() {
  if constexpr (requires { typename Products::Unit; }) {
    return Block<typename Products::Unit>();
  } else {
    return Words();
  }
}

// `is_plain`: the policy is the default one. Of the many functions that makes small ones.
template <DType to, class Products, bool is_plain>
class EncodedProducts {
  using Numbers = decltype(products_block<Products>());
  using Encoder = decltype(products_encoder<to, Products>(Policy{}, std::declval<const Factor&>()));

 public:
  EncodedProducts(const Policy& policy, const Factor& factor)
      : products_(factor), encoder_(products_encoder<to, Products>(is_plain ? Policy{} : policy, factor)) {}

  // False where there is a product that cannot be made.
  SIMD_INLINE bool store_block(const std::byte* src, std::byte* dst) {
    Numbers products;
    if (!products_.block(src, products)) return false;
    if constexpr (std::is_same_v<Numbers, Block<I64x2>> && bits_of<to> == 64) {
      store_unit_pairs(dst, products);
    } else {
      encoder_.store_block(dst, products);
    }
    return true;
  }

 private:
  Products products_;
  Encoder encoder_;
};

template <DType from, DType to, class Conversion>
[[gnu::noinline]] std::size_t convert_scaled(const std::byte* src, std::byte* dst, std::size_t count,
                                             const Policy& policy, const Factor& factor) {
  constexpr std::size_t src_block = bytes_of<from>(kBlock);
  constexpr std::size_t dst_block = bytes_of<to>(kBlock);
  Conversion conversion(policy, factor);

  // As convert() in convert.hpp.
  alignas(64) std::byte padded_src[src_block];
  alignas(64) std::byte padded_dst[dst_block < 64 ? 64 : dst_block];
  std::byte* tail = nullptr;
  std::size_t blocks = count / kBlock;
  std::size_t rest = count % kBlock;
  const std::size_t tail_bytes = (rest * bits_of<to> + 7) / 8;
  for (;;) {
    for (; blocks != 0; --blocks) {
      if (!conversion.store_block(src, dst))
        return tail != nullptr ? count - count % kBlock : count - rest - blocks * kBlock;
      src += src_block;
      dst += dst_block;
    }
    if (rest == 0) break;
    copy_and_pad<src_block>(padded_src, src, bytes_of<from>(rest));
    tail = dst;
    src = padded_src;
    dst = padded_dst;
    blocks = 1;
    rest = 0;
  }
  if (tail == nullptr) return count;
  if constexpr (bits_of<to> < 8) {  // zero times a negative scale has a sign
    const std::size_t used_bits = count * bits_of<to> % 8;
    if (used_bits != 0) padded_dst[tail_bytes - 1] &= static_cast<std::byte>((1U << used_bits) - 1);
  }
  copy_front<dst_block>(tail, padded_dst, tail_bytes);
  return count;
}

template <DType from, DType to, class Products, bool is_plain = false>
std::size_t convert_products(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                             const Factor& factor) {
  return convert_scaled<from, to, EncodedProducts<to, Products, is_plain>>(src, dst, count, policy, factor);
}

// The bits that are all zero in numbers at which the target's result changes: midpoints, those of subnormals too.
// Integers: half-integers up to 2^9.
template <DType to>
constexpr std::int32_t zeros_of_boundary() {
  const int bits = is_float<to> ? 22 - row(to).format.mantissa_bits : 13;
  return (std::int32_t{1} << bits) - 1;
}

// Rounded to odd only where a product may be on the wrong side of a boundary: most blocks have none.
// 1. x times the scale as float32, rounded: less than two last places off. A number that near a boundary has zeros, or
//    ones, where the boundary has zeros, but for its last three bits.
// 2. In doubt, all is done again. But zeros are right.
template <DType to, bool is_limited>
class NearProducts {
 public:
  using Unit = F32;

  explicit NearProducts(const Factor& factor)
      : nearest_(splat(static_cast<float>(factor.scale))),
        factor_(factor),
        limit_(splat(largest(factor))),
        mask_(kept(splat(zeros_of_boundary<to>() & ~7))),
        four_(kept(splat(4))) {}

  SIMD_INLINE bool block(const std::byte* src, Block<F32>& products) const {
    const Block<F32> x = load_block<DType::float32>(src);
    products = map(x, [this](F32 unit) SIMD_INLINE_LAMBDA { return unit * nearest_; });
    const Block<I32> places = map(products, [this](F32 unit) SIMD_INLINE_LAMBDA { return place(unit); });
    // The least of all, because one comparison costs less than four.
    Mask32 doubtful = equal(min(min(places.a, places.b), min(places.c, places.d)), I32{});
    if constexpr (!is_float<to>) {
      const Block<I32> size = map(products, [](F32 unit) SIMD_INLINE_LAMBDA { return as<I32>(unit) & INT32_MAX; });
      doubtful = either(doubtful, greater(max(max(size.a, size.b), max(size.c, size.d)), limit_));
    } else if constexpr (is_limited) {
      const Block<I32> size = map(x, [](F32 unit) SIMD_INLINE_LAMBDA { return as<I32>(unit) & INT32_MAX; });
      doubtful = either(doubtful, greater(limit_, min(min(size.a, size.b), min(size.c, size.d))));
    }
    if (!any(doubtful)) [[likely]]
      return true;
    Mask32 matters = mask_if(false);
    map(x, [&](F32 unit) {
      const Mask32 is_nonzero = greater(as<I32>(unit) & INT32_MAX, I32{});
      matters = either(matters, both(in_doubt(unit, unit * nearest_), is_nonzero));
      return unit;
    });
    if (!any(matters)) return true;
    Block<F32> odd;  // apart: what a function may write to is kept in memory, not in registers
    const bool is_good = odd_block(src, odd, factor_);
    products = odd;
    return is_good;
  }

 private:
  static std::int32_t largest(const Factor& factor) {
    if (!is_float<to>) return static_cast<std::int32_t>(0x44000000);  // 2^9
    return static_cast<std::int32_t>(factor.first + factor.special);
  }
  // 0 from four last places below a boundary to three above.
  SIMD_INLINE I32 place(F32 product) const { return (as<I32>(product) + four_) & mask_; }
  // Also small numbers where the target has subnormals, and large products where it is an integer.
  SIMD_INLINE Mask32 in_doubt(F32 x, F32 product) const {
    Mask32 doubtful = equal(place(product), I32{});
    if constexpr (!is_float<to>) doubtful = either(doubtful, greater(as<I32>(product) & INT32_MAX, limit_));
    if constexpr (is_float<to> && is_limited) doubtful = either(doubtful, greater(limit_, as<I32>(x) & INT32_MAX));
    return doubtful;
  }
  [[gnu::noinline]] static bool odd_block(const std::byte* src, Block<F32>& products, const Factor& factor) {
    using enum ProductRounding;
    if (factor.low != 0.0F) {
      return Float32Products<DType::float32, odd, true, is_limited>(factor).block(src, products);
    }
    return Float32Products<DType::float32, odd, false, is_limited>(factor).block(src, products);
  }

  F32 nearest_;
  const Factor& factor_;
  I32 limit_, mask_, four_;
};

// The same of float64, by way of its product rounded to float64 and then to float32: still less than two last places
// off. What overflows or underflows float32 is near a boundary too.
template <DType to>
class NearNarrowedProducts {
  // Of float8_e8m0fnu those below float32's normal numbers too.
  static constexpr std::int32_t zeros = to == DType::float8_e8m0fnu ? 0x7ffff : zeros_of_boundary<to>();

 public:
  using Unit = F32;

  explicit NearNarrowedProducts(const Factor& factor)
      : scale_(splat(factor.scale)), factor_(factor), mask_(kept(splat(zeros & ~7))), four_(kept(splat(4))) {}

  SIMD_INLINE bool block(const std::byte* src, Block<F32>& products) const {
    const Block<F64x2> x = load_block<DType::float64>(src);
    products = map(x, [this](const F64x2& y) SIMD_INLINE_LAMBDA { return product(y); });
    const Block<I32> places = map(products, [this](F32 y) SIMD_INLINE_LAMBDA { return place(y); });
    if (!any(equal(min(min(places.a, places.b), min(places.c, places.d)), I32{}))) [[likely]]
      return true;
    Mask32 matters = mask_if(false);
    map(x, [&](const F64x2& y) {
      const Mask32 is_nonzero = greater(as<U32>(nonzero_bits<DType::float64>(y)), U32{});
      matters = either(matters, both(equal(place(product(y)), I32{}), is_nonzero));
      return y;
    });
    if (any(matters)) {
      Block<F32> odd;  // as in NearProducts
      odd_block(src, odd, factor_);
      products = odd;
    }
    return true;
  }

 private:
  SIMD_INLINE F32 product(const F64x2& x) const { return narrow({x.lo * scale_, x.hi * scale_}); }
  SIMD_INLINE I32 place(F32 product) const { return (as<I32>(product) + four_) & mask_; }
  [[gnu::noinline]] static void odd_block(const std::byte* src, Block<F32>& products, const Factor& factor) {
    NarrowedProducts<DType::float64, ProductRounding::odd, true>(factor).block(src, products);
  }

  F64 scale_;
  const Factor& factor_;
  I32 mask_, four_;
};

// Integers of 16 bits to bfloat16: products are finite. If they are cut off, none is halfway between two numbers, and
// what cut to the midpoint goes up.
template <DType from, bool is_exact>
class BfloatProducts : public std::conditional_t<is_exact, Float32Products<from, ProductRounding::none, false, false>,
                                                 CutProducts<from, false>> {
  using Base = std::conditional_t<is_exact, Float32Products<from, ProductRounding::none, false, false>,
                                  CutProducts<from, false>>;

 public:
  class Encoder {
   public:
    Encoder(const Policy& policy, const Factor&) : nearest_even_(policy) {}

    SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& x) const {
      if constexpr (is_exact) {
        nearest_even_.store_block(dst, x);
      } else {
        const Block<I32> rounded = map(x, [this](F32 lanes) SIMD_INLINE_LAMBDA { return as<I32>(lanes) + half_; });
        store(dst, pack_high_words(rounded.a, rounded.b));
        store(dst + kRegisterBytes, pack_high_words(rounded.c, rounded.d));
      }
    }

   private:
    FloatEncoder<DType::bfloat16, false> nearest_even_;
    I32 half_ = kept(splat(0x8000));
  };

  using Base::Base;
};

// Integers to float8 and float4: products are finite.
template <DType from, DType to>
class FiniteProducts : public Float32Products<from, ProductRounding::none, false, false> {
  using Base = Float32Products<from, ProductRounding::none, false, false>;

 public:
  struct Encoder : FloatEncoder<to, false, true> {
    Encoder(const Policy& policy, const Factor&) : FloatEncoder<to, false, true>(policy) {}
  };

  using Base::Base;
};

#if TENSORCAST_TARGET_LEVEL >= 2

// Integers of 32 bits and more to floats, in 24 digits: products are finite. Cut off by instructions that say so, as
// the encoders round to nearest.
template <DType from, DType to, class Base>
class LongFiniteProducts : public Base {
 public:
  struct Encoder : FloatEncoder<to, false, bits_of<to> == 8> {
    Encoder(const Policy& policy, const Factor&) : FloatEncoder<to, false, bits_of<to> == 8>(policy) {}
  };

  using Base::Base;
};

template <DType from, DType to>
std::size_t multiply_long(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                          const Factor& factor, ProductRounding) {
  using Base = std::conditional_t<bits_of<to> == 8, CutProducts<from, true>, LongProducts<from>>;
  return convert_products<from, to, LongFiniteProducts<from, to, Base>>(src, dst, count, policy, factor);
}

#endif

// Integers of 16 bits cut off, in lanes of as many: the magnitude times the multiplier, shifted (short_scale.hpp).
template <DType from, DType to>
class WordProducts {
 public:
  class Encoder {
   public:
    Encoder(const Policy&, const Factor&) {}

    SIMD_INLINE void store_block(std::byte* dst, const Words& x) const {
      if constexpr (bits_of<to> == 16) {
        store(dst, x.lo);
        store(dst + kRegisterBytes, x.hi);
      } else if constexpr (bits_of<to> == 8) {
        store(dst, pack_low_bytes(x));
      } else if constexpr (bits_of<to> == 4) {
        store(dst, pack_nibbles(pack_low_bytes(x) & 0xf));
      } else {
        store(dst, pack_crumbs(pack_low_bytes(x) & 0x3));
      }
    }
  };

  explicit WordProducts(const Factor& factor)
      : multiplier_(splat(factor.word_multiplier)),
        sign_(splat(static_cast<std::uint16_t>(factor.scale < 0.0 ? 0xffff : 0))),
        shift_(factor.word_shift) {}

  SIMD_INLINE bool block(const std::byte* src, Words& products) const {
    products = {product(load<U16>(src)), product(load<U16>(src + kRegisterBytes))};
    return true;
  }

 private:
  SIMD_INLINE U16 product(U16 x) const {
    U16 sign = sign_, magnitude = x;
    if constexpr (is_signed_type<from>) {
      sign ^= as<U16>(as<I16>(x) >> 15);
      magnitude = min(x, 0 - x);  // 2^15 is its own
    }
    return ((multiply_high(magnitude, multiplier_) >> shift_) ^ sign) - sign;
  }

  U16 multiplier_, sign_;
  int shift_;
};

// Cut off, to integers that wrap and to some floats.
template <DType from, DType to>
std::size_t multiply_and_cut(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                             const Factor& factor, ProductRounding) {
  if constexpr (bits_of<from> == 16 && to == DType::bfloat16) {
    if (factor.last == 0)
      return convert_products<from, to, BfloatProducts<from, true>, true>(src, dst, count, policy, factor);
    return convert_products<from, to, BfloatProducts<from, false>, true>(src, dst, count, policy, factor);
  } else if constexpr (bits_of<from> == 16) {
    if constexpr (!is_float<from> && bits_of<to> <= 16) {
      if (factor.word_multiplier != 0)
        return convert_products<from, to, WordProducts<from, to>, true>(src, dst, count, policy, factor);
    }
    return convert_products<from, to, CutProducts<from, is_float<to>>, true>(src, dst, count, policy, factor);
  } else if constexpr (from == DType::uint32 && bits_of<to> <= 32) {
    return convert_products<from, to, ShortWholeProducts, true>(src, dst, count, policy, factor);
  } else {
    if constexpr (from == DType::uint64) {
      if (WholeProducts::takes(factor.scale))
        return convert_products<from, to, WholeProducts, true>(src, dst, count, policy, factor);
    }
    return convert_products<from, to, WideCutProducts<from>, true>(src, dst, count, policy, factor);
  }
}

template <DType to>
std::size_t multiply_between(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                             const Factor& factor, ProductRounding) {
  return convert_products<DType::float32, to, BetweenProducts, true>(src, dst, count, policy, factor);
}

template <DType to>
std::size_t multiply_narrowed(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                              const Factor& factor, ProductRounding) {
  return convert_products<DType::float64, to, NearNarrowedProducts<to>>(src, dst, count, policy, factor);
}

// Products that float32 holds exactly, or well enough (scaled.cpp): `rounding` is none; of float32 odd too.
template <DType from, DType to>
std::size_t multiply_and_convert(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                                 const Factor& factor, ProductRounding rounding) {
  using enum ProductRounding;
  constexpr bool sees_subnormals = to == DType::bfloat16 || to == DType::float8_e8m0fnu;
  if constexpr (from == DType::float32 && (is_float<to> || bits_of<to> <= 8)) {
    if (rounding == odd)
      return convert_products<from, to, NearProducts<to, sees_subnormals || !is_float<to>>>(src, dst, count, policy,
                                                                                            factor);
  }
#if TENSORCAST_TARGET_LEVEL >= 2
  constexpr int mantissa_bits = row(to).format.mantissa_bits;
  if constexpr (is_float<to> && ((from == DType::float16 && bits_of<to> <= 8 && to != DType::float8_e8m0fnu) ||
                                 (from == DType::bfloat16 && (mantissa_bits == 1 || mantissa_bits == 2)))) {
    if (factor.cells.are_made) return convert_scaled<from, to, CodesByCells<from, to>>(src, dst, count, policy, factor);
  }
#endif
  constexpr bool is_limited = is_float<from> && sees_subnormals && from != DType::float16;
  if constexpr (!is_float<from> && bits_of<from> == 16 && to == DType::float4_e2m1fn) {
    return convert_scaled<from, to, Float4BySteps<from>>(src, dst, count, policy, factor);
  } else if constexpr (to == DType::float8_e8m0fnu && from != DType::float32) {
    return convert_scaled<from, to, ScaledPowers<from>>(src, dst, count, policy, factor);
  } else if constexpr (!std::is_void_v<decltype(scaled_words<from, to>())>) {
    using Products = typename decltype(scaled_words<from, to>())::type;
    return convert_products<from, to, Products>(src, dst, count, policy, factor);
  } else if constexpr (!is_float<from> && bits_of<to> <= 8) {
    return convert_products<from, to, FiniteProducts<from, to>>(src, dst, count, policy, factor);
  } else {
    return convert_products<from, to, Float32Products<from, none, false, is_limited>>(src, dst, count, policy, factor);
  }
}

template <MultiplyAndConvertFn run, bool cuts_itself = false>
std::size_t convert_in_own_environment(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                                       const Factor& factor, ProductRounding rounding) {
  const FloatEnvironment saved = float_environment();
  const bool cuts = rounding == ProductRounding::cut && !cuts_itself;
  if (!cuts && is_default(saved)) [[likely]]
    return run(src, dst, count, policy, factor, rounding);
  if (cuts) {
    set_environment_toward_zero();
  } else {
    set_default_environment();
  }
  const std::size_t done = run(src, dst, count, policy, factor, rounding);
  restore(saved);
  return done;
}

// Where avx512vbmi has nothing else than avx512.
constexpr bool is_as_avx512(DType from, DType to, ProductRounding rounding) {
  const bool has_quick_products = from == DType::uint64 && rounding == ProductRounding::cut;
  return TENSORCAST_TARGET_LEVEL == 3 && row(to).bits >= 16 && !has_quick_products;
}

template <DType from, std::size_t index, ProductRounding rounding>
constexpr MultiplyAndConvertFn convert_function() {
  constexpr DTypeRow target = dtype_table[index];
  constexpr DType to = target.id;
  constexpr bool to_integer = target.family == Family::integer;
  constexpr bool to_short_float = target.family == Family::floating && target.bits <= 16;
  // Of integers that are no float32 only to those that are far less (scaled.cpp).
  constexpr bool is_long = !is_float<from> && bits_of<from> > 16;
  constexpr bool cuts_to_power = TENSORCAST_TARGET_LEVEL >= 2 && to == DType::float8_e8m0fnu;
  constexpr bool holds_long = to_short_float && (target.format.exponent_bits < 8 || cuts_to_power);
  constexpr bool to_float8 = to_short_float && target.bits == 8 && to != DType::float8_e8m0fnu;
  constexpr bool cuts_to_float = !is_float<from> && bits_of<from> == 16 && to_short_float && target.bits == 16;
  constexpr bool to_fnuz = to_float8 && target.format.nonfinite == NonFinite::nan_negative_zero;
  if constexpr (is_as_avx512(from, to, rounding) || target.bits == 6) {
    return nullptr;
  } else if constexpr (TENSORCAST_TARGET_LEVEL == 1 && bits_of<from> == 16 && !is_float<from> && to_float8) {
    return nullptr;  // two passes are faster, as both at once need more than 16 registers
  } else if constexpr (TENSORCAST_TARGET_LEVEL == 1 && from == DType::bfloat16 && to_fnuz) {
    return nullptr;  // two passes are nearly as fast
#if TENSORCAST_TARGET_LEVEL >= 2
  } else if constexpr (is_long && rounding == (to_float8 ? ProductRounding::cut : ProductRounding::near) &&
                       to_short_float && (to_float8 || target.bits == 16)) {
    return convert_in_own_environment<multiply_long<from, to>, cuts_by_instruction>;
#endif
  } else if constexpr (rounding == ProductRounding::near) {
    return nullptr;
  } else if constexpr (rounding == ProductRounding::between) {
    if constexpr (to_integer && target.is_signed && (target.bits == 16 || target.bits == 32))
      return convert_in_own_environment<multiply_between<to>>;
    return nullptr;
  } else if constexpr (from == DType::float64 && rounding == ProductRounding::odd) {
    if constexpr (to_short_float) return convert_in_own_environment<multiply_narrowed<to>>;
    return nullptr;
  } else if constexpr (rounding == ProductRounding::cut) {
    // Modulo 2^n they are the same with sign and without.
    if constexpr ((to_integer && target.is_signed) || cuts_to_float)
      return convert_in_own_environment<multiply_and_cut<from, to>, cuts_by_instruction>;
    return nullptr;
  } else if constexpr (cuts_to_float) {
    return nullptr;
  } else if constexpr (from == DType::float32 ? to_integer || to_short_float : is_long ? holds_long : to_short_float) {
    return convert_in_own_environment<multiply_and_convert<from, to>>;
  } else {
    return nullptr;
  }
}

using ConvertTable = std::array<MultiplyAndConvertFn, dtype_table.size()>;

template <DType from, ProductRounding rounding>
constexpr ConvertTable convert_table = []<std::size_t... index>(std::index_sequence<index...>) {
  return ConvertTable{convert_function<from, index, rounding>()...};
}(std::make_index_sequence<dtype_table.size()>());

constexpr DType with_sign(const DTypeRow& type) {
  for (const DTypeRow& other : dtype_table) {
    if (other.family == Family::integer && other.is_signed && other.bits == type.bits) return other.id;
  }
  return type.id;
}

MultiplyAndConvertFn find_multiply_and_convert(DType from, DType to, ProductRounding rounding) noexcept {
  using enum ProductRounding;
#if TENSORCAST_TARGET_LEVEL == 3
  if (is_as_avx512(from, to, rounding)) return avx512::find_multiply_and_convert(from, to, rounding);
#endif
  if (rounding == between && row(to).family != Family::integer) return nullptr;
  const bool cuts = rounding == cut || rounding == between;
  const DTypeRow& target = row(cuts && row(to).family == Family::integer ? with_sign(row(to)) : to);
  const auto index = static_cast<std::size_t>(&target - dtype_table.data());
  if (rounding == between) return from == DType::float32 ? convert_table<DType::float32, between>[index] : nullptr;
  if (from == DType::float64 && rounding == odd) return convert_table<DType::float64, odd>[index];
  if (from == DType::float32 && rounding != cut) {
    const bool is_wide_integer = target.family == Family::integer && target.bits > 8;
    return rounding == odd && is_wide_integer ? nullptr : convert_table<DType::float32, none>[index];
  }
  if (rounding == odd) return nullptr;
  const auto of_table = [&](const ConvertTable& exact, const ConvertTable& cut_off) {
    return rounding == near ? nullptr : rounding == cut ? cut_off[index] : exact[index];
  };
  const auto of_long = [&](const ConvertTable& exact, const ConvertTable& cut_off, const ConvertTable& near_enough) {
    return rounding == near ? near_enough[index] : of_table(exact, cut_off);
  };
  switch (from) {
    case DType::float16:
      return of_table(convert_table<DType::float16, none>, convert_table<DType::float16, cut>);
    case DType::bfloat16:
      return of_table(convert_table<DType::bfloat16, none>, convert_table<DType::bfloat16, cut>);
    case DType::int16:
      return of_table(convert_table<DType::int16, none>, convert_table<DType::int16, cut>);
    case DType::uint16:
      return of_table(convert_table<DType::uint16, none>, convert_table<DType::uint16, cut>);
    case DType::int32:
      return of_long(convert_table<DType::int32, none>, convert_table<DType::int32, cut>,
                     convert_table<DType::int32, near>);
    case DType::uint32:
      return of_long(convert_table<DType::uint32, none>, convert_table<DType::uint32, cut>,
                     convert_table<DType::uint32, near>);
    case DType::int64:
      return of_long(convert_table<DType::int64, none>, convert_table<DType::int64, cut>,
                     convert_table<DType::int64, near>);
    case DType::uint64:
      return of_long(convert_table<DType::uint64, none>, convert_table<DType::uint64, cut>,
                     convert_table<DType::uint64, near>);
    case DType::float32:
      return convert_table<DType::float32, cut>[index];
    case DType::float64:
      return rounding == cut ? convert_table<DType::float64, cut>[index] : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
