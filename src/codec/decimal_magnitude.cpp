#include "codec/decimal_magnitude.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "codec/float_codec.hpp"

namespace tensorcast::codec {
namespace {

constexpr int limb_digits = 9;
constexpr std::uint32_t limb_base = 1'000'000'000;

// Every type and scale lies within 2^-1200 and 2^1100, that is, 1e-362 and 1e332. A decimal below this bound is less
// than the smallest of anything under any scale, so that one tiny value can stand for it.
constexpr std::int64_t tiny_power = -800;
// A decimal whose last digit weighs more than this is beyond every range under any scale, and a multiple of 2^64.
constexpr std::int64_t huge_last_power = 1200;
// Whole numbers of more limbs are beyond every range: only their low bits matter still.
constexpr std::size_t max_whole_limbs = 45;
constexpr int beyond_everything = 20'000;  // as a binary exponent

Real tiny(bool negative) { return Real::Finite(negative, 1, -beyond_everything, true); }

Real huge(bool negative, std::uint64_t low_bits, Real::Tail fraction) {
  Real value = Real::Finite(negative, 1, beyond_everything, true);
  value.integer_low_bits = low_bits;
  value.fraction = fraction;
  return value;
}

// The binary digits of a magnitude in words of 32, most significant first, as many as a Real holds.
class SignificandBuilder {
 public:
  [[nodiscard]] bool full() const { return count_ == words_.size(); }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  // `weight` is the exponent of the word's lowest bit.
  void append(std::uint32_t word, int weight) {
    if (empty() && word == 0) return;
    if (full()) {
      sticky_ = sticky_ || word != 0;
      return;
    }
    words_[count_++] = word;
    weight_ = weight;
  }
  void append_rest(bool nonzero) { sticky_ = sticky_ || nonzero; }

  [[nodiscard]] Real build(bool negative) const {
    uint128 top = 0;
    const std::size_t in_top = std::min<std::size_t>(count_, 4);
    for (std::size_t i = 0; i < in_top; ++i) top = top << 32 | words_[i];
    if (count_ <= 4) return Real::Finite(negative, top, weight_, sticky_);
    // 128 bits begin at the leading one: the fifth word gives as many as the first has leading zeros.
    const int taken = std::countl_zero(words_[0]);
    const std::uint64_t fifth = static_cast<std::uint64_t>(words_[4]) << taken;
    top = top << taken | fifth >> 32;
    return Real::Finite(negative, top, weight_ + 32 - taken, sticky_ || static_cast<std::uint32_t>(fifth) != 0);
  }

 private:
  std::array<std::uint32_t, 5> words_{};
  std::size_t count_ = 0;
  int weight_ = 0;  // of the last word
  bool sticky_ = false;
};

void append_whole(const std::uint32_t* limbs, std::size_t count, SignificandBuilder& builder) {
  std::array<std::uint32_t, max_whole_limbs> words{};  // a word holds more than a limb
  std::size_t used = 0;
  for (std::size_t i = count; i-- > 0;) {
    std::uint64_t carry = limbs[i];
    for (std::size_t j = 0; j < used; ++j) {
      carry += std::uint64_t{words[j]} * limb_base;
      words[j] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) words[used++] = static_cast<std::uint32_t>(carry);
  }
  for (std::size_t j = used; j-- > 0;) builder.append(words[j], static_cast<int>(32 * j));
}

// Doubling 32 times moves the next 32 binary digits of a fraction in front of the point.
void append_fraction(std::vector<std::uint32_t> limbs, SignificandBuilder& builder) {
  std::size_t first = 0;
  for (int weight = -32; !builder.full(); weight -= 32) {
    while (first < limbs.size() && limbs[first] == 0) ++first;
    if (first == limbs.size()) return;
    std::uint64_t carry = 0;
    for (std::size_t i = first; i < limbs.size(); ++i) {
      carry += std::uint64_t{limbs[i]} << 32;
      limbs[i] = static_cast<std::uint32_t>(carry % limb_base);
      carry /= limb_base;
    }
    builder.append(static_cast<std::uint32_t>(carry), weight);
  }
  builder.append_rest(std::any_of(limbs.begin(), limbs.end(), [](std::uint32_t limb) { return limb != 0; }));
}

}  // namespace

DecimalMagnitude::DecimalMagnitude(std::string_view digits, std::int64_t first_power, std::int64_t last_power) {
  const auto limbs_for = [](std::int64_t count) {
    return static_cast<std::size_t>((count + limb_digits - 1) / limb_digits);
  };
  fraction_limbs_ = last_power < 0 ? limbs_for(-last_power) : 0;
  limbs_.resize(fraction_limbs_ + (first_power >= 0 ? limbs_for(first_power + 1) : 0));
  auto place = static_cast<std::size_t>(first_power + static_cast<std::int64_t>(fraction_limbs_) * limb_digits);
  std::uint32_t group = 0;
  for (const char c : digits) {
    if (c == '.') continue;
    group = group * 10 + static_cast<std::uint32_t>(c - '0');
    if (place % limb_digits == 0) {
      limbs_[place / limb_digits] = group;
      group = 0;
    }
    --place;
  }
  for (++place; group != 0; --place) {
    if (place % limb_digits == 0) {
      limbs_[place / limb_digits] = group;
      return;
    }
    group *= 10;
  }
}

void DecimalMagnitude::multiply(std::uint64_t factor) {
  uint128 carry = 0;
  for (std::uint32_t& limb : limbs_) {
    carry += uint128{limb} * factor;
    limb = static_cast<std::uint32_t>(carry % limb_base);
    carry /= limb_base;
  }
  for (; carry != 0; carry /= limb_base) limbs_.push_back(static_cast<std::uint32_t>(carry % limb_base));
}

void DecimalMagnitude::multiply_power_of_two(int power) {
  constexpr int power_step = 48;
  for (int left = power; left > 0; left -= power_step) multiply(std::uint64_t{1} << std::min(left, power_step));
  if (power >= 0) return;
  // 2^-p = 5^p / 10^p, and tens added to both sides make the division one by whole limbs.
  constexpr std::uint64_t five_to_20 = 95'367'431'640'625;
  int fives = -power;
  for (; fives >= 20; fives -= 20) multiply(five_to_20);
  for (; fives > 0; --fives) multiply(5);
  int tens = -power;
  for (; tens % limb_digits != 0; ++tens) multiply(10);
  fraction_limbs_ += static_cast<std::size_t>(tens / limb_digits);
  limbs_.resize(std::max(limbs_.size(), fraction_limbs_));
}

std::uint64_t DecimalMagnitude::low_bits_of_whole() const {
  std::uint64_t low = 0;
  for (std::size_t i = limbs_.size(); i-- > fraction_limbs_;) low = low * limb_base + limbs_[i];
  return low;
}

Real::Tail DecimalMagnitude::fraction_tail() const {
  if (fraction_limbs_ == 0) return Real::Tail::none;
  const std::uint32_t first = limbs_[fraction_limbs_ - 1];
  const auto rest_end = limbs_.begin() + static_cast<std::ptrdiff_t>(fraction_limbs_ - 1);
  const bool rest = std::any_of(limbs_.begin(), rest_end, [](std::uint32_t limb) { return limb != 0; });
  if (first == 0 && !rest) return Real::Tail::none;
  if (first < limb_base / 2) return Real::Tail::below_half;
  return first == limb_base / 2 && !rest ? Real::Tail::half : Real::Tail::above_half;
}

Real DecimalMagnitude::to_real(bool negative) const {
  std::size_t end = limbs_.size();
  while (end > fraction_limbs_ && limbs_[end - 1] == 0) --end;
  const std::size_t whole_limbs = end - fraction_limbs_;
  if (whole_limbs > max_whole_limbs) return huge(negative, low_bits_of_whole(), fraction_tail());

  SignificandBuilder builder;
  append_whole(limbs_.data() + fraction_limbs_, whole_limbs, builder);
  const auto fraction_end = limbs_.begin() + static_cast<std::ptrdiff_t>(fraction_limbs_);
  append_fraction({limbs_.begin(), fraction_end}, builder);
  Real value = builder.build(negative);
  if (value.sticky && value.exponent >= 0) {
    value.integer_low_bits = low_bits_of_whole();
    value.fraction = fraction_tail();
  }
  return value;
}

Real decimal_to_real(bool negative, std::string_view digits, std::int64_t exponent, double scale) {
  constexpr std::string_view nonzero = "123456789";
  const std::size_t first = digits.find_first_of(nonzero);
  if (first == std::string_view::npos) return Real::Zero(negative);
  const std::size_t last = digits.find_last_of(nonzero);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const auto power = [&](std::size_t i) {
    const auto distance = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(i);
    return exponent + (distance > 0 ? distance - 1 : distance);
  };
  if (power(first) < tiny_power) return tiny(negative);
  if (power(last) > huge_last_power) return huge(negative, 0, Real::Tail::none);

  DecimalMagnitude magnitude(digits.substr(first, last - first + 1), power(first), power(last));
  if (scale != 1.0 && scale != -1.0) {
    const Real factor = decode_float(DType::float64, std::bit_cast<std::uint64_t>(scale));
    constexpr int dropped = 128 - 53;  // the low bits of a double's significand that are always zero
    magnitude.multiply(static_cast<std::uint64_t>(factor.significand >> dropped));
    magnitude.multiply_power_of_two(factor.exponent + dropped);
  }
  return magnitude.to_real(negative);
}

}  // namespace tensorcast::codec
