// Conversions with a scale in one pass: products in registers, and the encoders from there. Not of all sources with all
// products; the others take two passes (scaled.cpp).
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "kernels/wide/convert.hpp"
#include "kernels/wide/multiply_products.hpp"
#include "kernels/wide/scaled_words.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// The type whose encoders take such units.
template <class Unit>
constexpr DType hub_of = std::is_same_v<Unit, F32>     ? DType::float32
                         : std::is_same_v<Unit, F64x2> ? DType::float64
                                                       : DType::int64;

// The encoder that products bring along, or that of the type which they are.
template <DType to, class Products>
auto products_encoder(const Policy& policy, const Factor& factor) {
  if constexpr (requires { typename Products::Encoder; }) {
    return typename Products::Encoder(policy, factor);
  } else if constexpr (requires { Products::hub; }) {
    return make_encoder<Products::hub, to>(policy);
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
template <DType from, DType to, class Products, bool is_plain = false>
[[gnu::noinline]] std::size_t convert_products(const std::byte* src, std::byte* dst, std::size_t count,
                                               const Policy& policy, const Factor& factor) {
  constexpr std::size_t src_block = bytes_of<from>(kBlock);
  constexpr std::size_t dst_block = bytes_of<to>(kBlock);
  using Numbers = decltype(products_block<Products>());
  const auto encoder = products_encoder<to, Products>(is_plain ? Policy{} : policy, factor);
  Products method(factor);

  // As convert() in convert.hpp.
  alignas(64) std::byte padded_src[src_block];
  alignas(64) std::byte padded_dst[dst_block < 64 ? 64 : dst_block];
  std::byte* tail = nullptr;
  std::size_t blocks = count / kBlock;
  std::size_t rest = count % kBlock;
  const std::size_t tail_bytes = (rest * bits_of<to> + 7) / 8;
  for (;;) {
    for (; blocks != 0; --blocks) {
      Numbers products;
      if (!method.block(src, products))
        return tail != nullptr ? count - count % kBlock : count - rest - blocks * kBlock;
      if constexpr (std::is_same_v<Numbers, Block<I64x2>> && bits_of<to> == 64) {
        store_unit_pairs(dst, products);
      } else {
        encoder.store_block(dst, products);
      }
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
      : nearest_(splat(static_cast<float>(factor.scale))), factor_(factor), limit_(splat(largest(factor))) {}

  SIMD_INLINE bool block(const std::byte* src, Block<F32>& products) const {
    const Block<F32> x = load_block<DType::float32>(src);
    Mask32 doubtful = mask_if(false);
    products = map(x, [&](F32 unit) {
      const F32 product = unit * nearest_;
      doubtful = either(doubtful, in_doubt(unit, product));
      return product;
    });
    if (!any(doubtful)) [[likely]]
      return true;
    Mask32 matters = mask_if(false);
    map(x, [&](F32 unit) {
      const Mask32 is_nonzero = greater(as<I32>(unit) & INT32_MAX, I32{});
      matters = either(matters, both(in_doubt(unit, unit * nearest_), is_nonzero));
      return unit;
    });
    return !any(matters) || odd_block(src, products, factor_);
  }

 private:
  static std::int32_t largest(const Factor& factor) {
    if (!is_float<to>) return static_cast<std::int32_t>(0x44000000);  // 2^9
    return static_cast<std::int32_t>(factor.first + factor.special);
  }
  // Also small numbers where the target has subnormals, and large products where it is an integer.
  SIMD_INLINE Mask32 in_doubt(F32 x, F32 product) const {
    const I32 distance = (as<I32>(product) + 2) & zeros_of_boundary<to>();
    Mask32 doubtful = greater(splat(5), distance);
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
  I32 limit_;
};

// Cut off, to integers that wrap.
template <DType from, DType to>
std::size_t multiply_and_cut(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                             const Factor& factor, ProductRounding) {
  if constexpr (bits_of<from> == 16) {
    return convert_products<from, to, CutProducts<from>, true>(src, dst, count, policy, factor);
  } else {
    if constexpr (from == DType::uint64) {
      if (WholeProducts::takes(factor.scale))
        return convert_products<from, to, WholeProducts, true>(src, dst, count, policy, factor);
    }
    return convert_products<from, to, WideCutProducts<from>, true>(src, dst, count, policy, factor);
  }
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
  if constexpr (!std::is_void_v<decltype(scaled_words<from, to>())>) {
    using Products = typename decltype(scaled_words<from, to>())::type;
    return convert_products<from, to, Products>(src, dst, count, policy, factor);
  } else {
    constexpr bool is_limited = is_float<from> && sees_subnormals && from != DType::float16;
    return convert_products<from, to, Float32Products<from, none, false, is_limited>>(src, dst, count, policy, factor);
  }
}

template <MultiplyAndConvertFn run>
std::size_t convert_in_own_environment(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                                       const Factor& factor, ProductRounding rounding) {
  const FloatEnvironment saved = float_environment();
  const bool cuts = rounding == ProductRounding::cut;
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

template <DType from, std::size_t index, ProductRounding rounding>
constexpr MultiplyAndConvertFn convert_function() {
  constexpr DTypeRow target = dtype_table[index];
  constexpr DType to = target.id;
  constexpr bool to_integer = target.family == Family::integer;
  constexpr bool to_short_float = target.family == Family::floating && target.bits <= 16;
  // Of integers that are no float32 only to those that are far less (scaled.cpp).
  constexpr bool is_long = !is_float<from> && bits_of<from> > 16;
  constexpr bool holds_long = to_short_float && target.format.exponent_bits < 8;
  constexpr bool to_float8 = to_short_float && target.bits == 8 && to != DType::float8_e8m0fnu;
  constexpr bool to_fnuz = to_float8 && target.format.nonfinite == NonFinite::nan_negative_zero;
  if constexpr (TENSORCAST_TARGET_LEVEL == 3 && target.bits >= 16) {
    return nullptr;  // nothing here differs from avx512
  } else if constexpr (TENSORCAST_TARGET_LEVEL == 1 && bits_of<from> == 16 && !is_float<from> && to_float8) {
    return nullptr;  // two passes are faster, as both at once need more than 16 registers
  } else if constexpr (TENSORCAST_TARGET_LEVEL == 1 && from == DType::bfloat16 && to_fnuz) {
    return nullptr;  // two passes are nearly as fast
  } else if constexpr (rounding == ProductRounding::cut) {
    // Modulo 2^n they are the same with sign and without.
    if constexpr (to_integer && target.is_signed) return convert_in_own_environment<multiply_and_cut<from, to>>;
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
  if (row(to).bits >= 16) return avx512::find_multiply_and_convert(from, to, rounding);
#endif
  if (rounding == cut && row(to).family != Family::integer) return nullptr;
  const DTypeRow& target = row(rounding == cut ? with_sign(row(to)) : to);
  const auto index = static_cast<std::size_t>(&target - dtype_table.data());
  if (from == DType::float32 && rounding != cut) {
    const bool is_wide_integer = target.family == Family::integer && target.bits > 8;
    return rounding == odd && is_wide_integer ? nullptr : convert_table<DType::float32, none>[index];
  }
  if (rounding == odd) return nullptr;
  const auto of_table = [&](const ConvertTable& exact, const ConvertTable& cut_off) {
    return rounding == cut ? cut_off[index] : exact[index];
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
      return of_table(convert_table<DType::int32, none>, convert_table<DType::int32, cut>);
    case DType::uint32:
      return of_table(convert_table<DType::uint32, none>, convert_table<DType::uint32, cut>);
    case DType::int64:
      return of_table(convert_table<DType::int64, none>, convert_table<DType::int64, cut>);
    case DType::uint64:
      return of_table(convert_table<DType::uint64, none>, convert_table<DType::uint64, cut>);
    case DType::float32:
      return convert_table<DType::float32, cut>[index];
    case DType::float64:
      return rounding == cut ? convert_table<DType::float64, cut>[index] : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
