#include "cast/byte_fates.hpp"

#include <bit>

namespace tensorcast {

std::optional<Square> square_of(long double x) {
  const auto number = static_cast<double>(x);
  if (number == 0.0 && x == 0.0L) return Square{};
  constexpr int mantissa_bits = 52, bias = 1075;
  const auto bits = std::bit_cast<std::uint64_t>(number);
  const int exponent = static_cast<int>(bits >> mantissa_bits & 0x7ff);
  if (static_cast<long double>(number) != x || exponent == 0) return std::nullopt;
  std::uint64_t significand = (bits & ((std::uint64_t{1} << mantissa_bits) - 1)) | std::uint64_t{1} << mantissa_bits;
  const int zeros = std::countr_zero(significand);
  significand >>= zeros;
  if (significand >> 32 != 0) return std::nullopt;
  return Square{significand * significand, 2 * (exponent - bias + zeros)};
}

}  // namespace tensorcast
