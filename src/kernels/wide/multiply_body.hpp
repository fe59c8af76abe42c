// The functions of multiply.hpp for the target that the source is compiled for: runs of any length.
#pragma once

#if TENSORCAST_TARGET_LEVEL >= 1
#include "kernels/wide/multiply_near.hpp"
#endif
#include "kernels/wide/multiply_products.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

SIMD_INLINE void store_products(std::byte* dst, const Block<F32>& x) { store_units(dst, x); }
SIMD_INLINE void store_products(std::byte* dst, const Block<F64x2>& x) { store_unit_pairs(dst, x); }

template <DType from, class Products>
bool multiply_run(const std::byte* src, std::byte* dst, std::size_t count, const Factor& factor) {
  using Unit = typename Products::Unit;
  constexpr std::size_t src_block = bytes_of<from>(kBlock);
  constexpr std::size_t dst_block = sizeof(Block<Unit>);
  Products method(factor);
  // The tail goes through a zero-padded block of its own, and through the same loop: one copy of the code.
  alignas(64) std::byte padded_src[src_block];
  alignas(64) std::byte padded_dst[dst_block];
  std::byte* tail = nullptr;
  std::size_t blocks = count / kBlock;
  std::size_t rest = count % kBlock;
  const std::size_t tail_bytes = rest * dst_block / kBlock;
  for (;;) {
    for (; blocks != 0; --blocks, src += src_block, dst += dst_block) {
      Block<Unit> products;
      if (!method.block(src, products)) return false;
      store_products(dst, products);
    }
    if (rest == 0) break;
    copy_and_pad<src_block>(padded_src, src, bytes_of<from>(rest));
    tail = dst;
    src = padded_src;
    dst = padded_dst;
    blocks = 1;
    rest = 0;
  }
  if (tail != nullptr) copy_front<dst_block>(tail, padded_dst, tail_bytes);
  return method.good();
}

template <MultiplyFn run>
bool in_default_environment(const std::byte* src, std::byte* dst, std::size_t count, const Factor& factor) {
  const FloatEnvironment saved = float_environment();
  if (is_default(saved)) [[likely]]
    return run(src, dst, count, factor);
  set_default_environment();
  const bool good = run(src, dst, count, factor);
  restore(saved);
  return good;
}

#if TENSORCAST_TARGET_LEVEL >= 1
template <DType from>
[[gnu::noinline]] bool multiply_near(const std::byte* src, std::byte* dst, std::size_t count, const Factor& factor) {
  return multiply_run<from, LongProducts<from>>(src, dst, count, factor);
}

template <DType from>
[[gnu::noinline]] bool multiply_cut_off(const std::byte* src, std::byte* dst, std::size_t count, const Factor& factor) {
  return multiply_run<from, CutProducts<from, true>>(src, dst, count, factor);
}

template <MultiplyFn run>
bool toward_zero(const std::byte* src, std::byte* dst, std::size_t count, const Factor& factor) {
  if constexpr (cuts_by_instruction) return in_default_environment<run>(src, dst, count, factor);
  const FloatEnvironment saved = float_environment();
  set_environment_toward_zero();
  const bool good = run(src, dst, count, factor);
  restore(saved);
  return good;
}
#endif

// What numbers of this type are multiplied as.
template <DType from, ProductPath path, ProductRounding rounding, bool is_limited = false>
[[gnu::noinline]] bool multiply(const std::byte* src, std::byte* dst, std::size_t count, const Factor& factor) {
  if constexpr (path == ProductPath::float64) {
    return multiply_run<from, Float64Products<from, rounding>>(src, dst, count, factor);
  } else if constexpr (path == ProductPath::narrowed) {
    return multiply_run<from, NarrowedProducts<from, rounding, is_limited>>(src, dst, count, factor);
  } else {
    if (rounding != ProductRounding::none && factor.low != 0.0F)
      return multiply_run<from, Float32Products<from, rounding, true, is_limited>>(src, dst, count, factor);
    return multiply_run<from, Float32Products<from, rounding, false, is_limited>>(src, dst, count, factor);
  }
}

template <DType from, ProductPath path, ProductRounding rounding>
MultiplyFn multiply_of(bool is_limited) {
  constexpr bool by_float32 = path == ProductPath::float32 && (is_float<from> || bits_of<from> > 16);
  constexpr bool narrowed = path == ProductPath::narrowed;
  if constexpr (by_float32 || narrowed) {
    if (is_limited) return in_default_environment<multiply<from, path, rounding, true>>;
  }
  constexpr bool always_limited = by_float32 && !is_float<from>;
  return in_default_environment<multiply<from, path, rounding, always_limited>>;
}

template <DType from>
MultiplyFn multiply_of(ProductPath path, ProductRounding rounding, bool is_limited) {
  using enum ProductPath;
  using enum ProductRounding;
  if (path == float64) {
    if (rounding == odd) return multiply_of<from, float64, odd>(false);
    if (is_wide_integer<from> && rounding == nearest) return multiply_of<from, float64, nearest>(false);
    return multiply_of<from, float64, none>(false);  // the product is rounded to nearest anyway
  }
  if constexpr (bits_of<from> >= 32 && from != DType::float32) {
    if (path == narrowed) {
#if TENSORCAST_TARGET_LEVEL >= 2
      if (rounding == near) return multiply_of<from, narrowed, near>(false);
#else
      if (rounding == near) return nullptr;
#endif
      return rounding == odd ? multiply_of<from, narrowed, odd>(is_limited)
                             : multiply_of<from, narrowed, nearest>(false);
    }
  }
#if TENSORCAST_TARGET_LEVEL >= 1
  if constexpr (!is_float<from> && bits_of<from> > 16) {
    if (rounding == near) return toward_zero<multiply_near<from>>;
    if (rounding == cut) return toward_zero<multiply_cut_off<from>>;
  }
#endif
  if constexpr (from != DType::float64) {
    if (rounding == none) return multiply_of<from, float32, none>(is_limited);
    if (rounding == odd) return multiply_of<from, float32, odd>(is_limited);
#if TENSORCAST_TARGET_LEVEL >= 2
    if constexpr (!is_float<from> && bits_of<from> > 16) return nullptr;  // narrowed ones are as quick
#endif
    return multiply_of<from, float32, nearest>(is_limited);
  }
  return nullptr;
}

MultiplyFn find_multiply(DType from, ProductPath path, ProductRounding rounding, bool is_limited) noexcept {
  switch (from) {
    case DType::float64:
      return multiply_of<DType::float64>(path, rounding, is_limited);
    case DType::float32:
      return multiply_of<DType::float32>(path, rounding, is_limited);
    case DType::float16:
      return multiply_of<DType::float16>(path, rounding, is_limited);
    case DType::bfloat16:
      return multiply_of<DType::bfloat16>(path, rounding, is_limited);
    case DType::int16:
      return multiply_of<DType::int16>(path, rounding, is_limited);
    case DType::uint16:
      return multiply_of<DType::uint16>(path, rounding, is_limited);
    case DType::int32:
      return multiply_of<DType::int32>(path, rounding, is_limited);
    case DType::uint32:
      return multiply_of<DType::uint32>(path, rounding, is_limited);
    case DType::int64:
      return multiply_of<DType::int64>(path, rounding, is_limited);
    case DType::uint64:
      return multiply_of<DType::uint64>(path, rounding, is_limited);
    default:
      return nullptr;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
