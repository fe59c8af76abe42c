#include "codec/powers_of_ten.hpp"

#include <array>
#include <bit>
#include <cstddef>

namespace tensorcast::codec {
namespace {

// Integers of up to 1280 bits, computed with by the compiler alone.
class WideInteger {
 public:
  constexpr explicit WideInteger(int power_of_two) { words_[index(power_of_two)] = 1u << power_of_two % 32; }

  constexpr void multiply_by_ten() {
    std::uint64_t carry = 0;
    for (std::uint32_t& word : words_) {
      carry += std::uint64_t{word} * 10;
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }

  constexpr void divide_by_ten() {
    std::uint64_t remainder = 0;
    for (std::size_t i = words_.size(); i-- > 0;) {
      remainder = remainder << 32 | words_[i];
      words_[i] = static_cast<std::uint32_t>(remainder / 10);
      remainder %= 10;
    }
  }

  // The top 128 bits, plus one unless they are the whole of an exact number.
  constexpr PowerOfTen top_rounded_up(bool exact) const {
    std::size_t top = words_.size() - 1;
    while (words_[top] == 0) --top;
    const int shift = std::countl_zero(words_[top]);
    const auto word = [&](std::size_t below) {
      const std::uint64_t upper = below <= top ? words_[top - below] : 0;
      const std::uint64_t lower = below + 1 <= top ? words_[top - below - 1] : 0;
      return (upper << 32 | lower) << shift >> 32;
    };
    PowerOfTen result{.high = word(0) << 32 | word(1), .low = word(2) << 32 | word(3)};
    const int bits = static_cast<int>(top) * 32 + 32 - shift;
    if (exact && !has_bits_below(bits - 128)) return result;
    if (++result.low == 0) ++result.high;
    return result;
  }

 private:
  static constexpr std::size_t index(int bit) { return static_cast<std::size_t>(bit / 32); }

  constexpr bool has_bits_below(int bit) const {
    for (int i = 0; i < bit; ++i) {
      if ((words_[index(i)] >> i % 32 & 1) != 0) return true;
    }
    return false;
  }

  std::array<std::uint32_t, 40> words_{};
};

constexpr auto powers = [] {
  std::array<PowerOfTen, max_power_of_ten - min_power_of_ten + 1> table{};
  WideInteger power(0);
  for (int k = 0; k <= max_power_of_ten; ++k) {
    table[static_cast<std::size_t>(k - min_power_of_ten)] = power.top_rounded_up(true);
    power.multiply_by_ten();
  }
  // 2^1200 / 10^292 still has more than 128 bits, and no power of two is a multiple of ten.
  WideInteger fraction(1200);
  for (int k = -1; k >= min_power_of_ten; --k) {
    fraction.divide_by_ten();
    table[static_cast<std::size_t>(k - min_power_of_ten)] = fraction.top_rounded_up(false);
  }
  return table;
}();

}  // namespace

const PowerOfTen& power_of_ten(int k) noexcept { return powers[static_cast<std::size_t>(k - min_power_of_ten)]; }

}  // namespace tensorcast::codec
