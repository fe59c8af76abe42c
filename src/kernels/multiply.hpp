// Products of numbers of any wide type with a scale, for conversions with a scale: as float32 or float64 that the
// target's own conversion then rounds as if it had the exact products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "codec/policy.hpp"
#include "kernels/code_cells.hpp"

namespace tensorcast::kernels {

enum class ProductRounding : std::uint8_t {
  none,     // x times `high`, which is the scale, has few enough bits
  nearest,  // the product is the result
  odd,      // toward zero, then a last bit of one if something was cut off: a later rounding is as good as the only one
  // Toward zero: enough for integers that truncate and wrap, and with a last bit of one for some floats. Only in one
  // pass with the conversion.
  cut,
  between,  // the same, where two products around the exact one are cut off alike
  // On the side of each boundary of the target that the exact product is on; of long integers by path float32, and
  // narrowed where the scale has more digits than a midpoint of float32.
  near,
};

enum class ProductPath : std::uint8_t {
  float32,   // to float32, of numbers that it holds
  narrowed,  // to float32, by way of float64; of 32 bits and more, but not float32
  float64,
};

// A scale, and where a method stops.
struct Factor {
  double scale = 1.0;
  // The same as a sum, for sources that float32 holds and a scale from 2^-60 to 2^60: up to 24 bits are all in `high`.
  // Of more, `high` has the first 23 or a few less, up to one that a zero follows; `low` is the rest, rounded, with the
  // sign of `high` and at most half its last place; `lowest` is what that leaves.
  float high = 1.0F, low = 0.0F, lowest = 0.0F;
  // To float32, if `special` is not 0: numbers whose magnitude, as float32 bits, is from `first` on, `special` of them.
  // Their products must be made in float64, or, where they are large, are not for float32 at all.
  std::uint32_t first = 0, special = 0;
  bool special_is_large = false;
  // Rounding `cut` to floats: `last` sets the last bit, where no product is a boundary of the target.
  // Rounding `near`: `high` times numbers below `first` is right but for the last bit, which is set by `last`. Of
  // others it is near a boundary if its bits, plus `reach`, are below `width` where `zeros` has ones.
  std::uint32_t last = 0, reach = 0, zeros = 0, width = 0;
  // Of integers of 16 bits to float4: the greatest magnitude below each code but zero's.
  std::uint16_t float4_steps[7] = {};
  // Of integers of 16 bits to integers of as many or fewer that wrap: WordScale, if not 0.
  std::uint16_t word_multiplier = 0;
  int word_shift = 0;
  // To float8_e8m0fnu, of 16 bits and integers of more: added to a float32's bits, it makes the code from bit 23 on.
  std::int32_t power_step = 0;
  // Of float16 and bfloat16 to float8 and float4, if they are made: they do for all products.
  CodeCells cells;
  // To float64: greater magnitudes are not for it.
  double greatest = std::numeric_limits<double>::infinity();
};

// Writes `count` products. `src` and `products` have any alignment, and may be equal where they are of one width.
// False where some product cannot be made; what was written is then unspecified. That happens where the factor says so,
// and for 64-bit integers, rarely. Integers of 64 bits are rounded to odd for what keeps 32 bits or fewer.
using MultiplyFn = bool (*)(const std::byte* src, std::byte* products, std::size_t count, const Factor& factor);

// Multiplies by path float32 and converts to a target, in one pass. `count` is what was done: all, or the blocks before
// one with special numbers that are large. The policy's scale does not count. `src` and `dst` as for other kernels.
using MultiplyAndConvertFn = std::size_t (*)(const std::byte* src, std::byte* dst, std::size_t count,
                                             const codec::Policy& policy, const Factor& factor,
                                             ProductRounding rounding);

// `from` is a number of 16 bits or more; else null. `is_limited` says whether there are special numbers;
// by path narrowed, whether products may be subnormal in float32 and the target sees those, or, of integers, may leave
// float32's range.
// Rounding `near`: null on the portable target, and by path narrowed on avx2.
// find_multiply_and_convert: null for many pairs, and for all on the portable target.
namespace portable {
MultiplyFn find_multiply(DType from, ProductPath path, ProductRounding rounding, bool is_limited) noexcept;
}  // namespace portable
#if defined(__x86_64__)
namespace avx2 {
MultiplyFn find_multiply(DType from, ProductPath path, ProductRounding rounding, bool is_limited) noexcept;
MultiplyAndConvertFn find_multiply_and_convert(DType from, DType to, ProductRounding rounding) noexcept;
}  // namespace avx2
namespace avx512 {
MultiplyFn find_multiply(DType from, ProductPath path, ProductRounding rounding, bool is_limited) noexcept;
MultiplyAndConvertFn find_multiply_and_convert(DType from, DType to, ProductRounding rounding) noexcept;
}  // namespace avx512
namespace avx512vbmi {  // products are those of avx512
MultiplyAndConvertFn find_multiply_and_convert(DType from, DType to, ProductRounding rounding) noexcept;
}  // namespace avx512vbmi
#endif

}  // namespace tensorcast::kernels
