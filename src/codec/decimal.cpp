// SPDX-License-Identifier: Apache-2.0
#include "codec/decimal.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "codec/text_codec.hpp"
#include "dtype/formatted.hpp"

namespace tensorcast::codec {
namespace {

constexpr int limb_digits = 9;
constexpr std::uint32_t limb_base = 1'000'000'000;

constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Digits from the first that is not zero to the last, perhaps with a point among them; empty for zero.
struct DigitRange {
  std::string_view digits;
  std::int64_t first_power = 0;  // the first digit weighs 10^first_power
  std::int64_t last_power = 0;
};

DigitRange find_digits(std::string_view digits, std::int64_t exponent) {
  constexpr std::string_view nonzero = "123456789";
  const std::size_t first = digits.find_first_of(nonzero);
  if (first == std::string_view::npos) return {};
  const std::size_t last = digits.find_last_of(nonzero);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const auto power = [&](std::size_t i) {
    const auto distance = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(i);
    return exponent + (distance > 0 ? distance - 1 : distance);
  };
  return {.digits = digits.substr(first, last - first + 1), .first_power = power(first), .last_power = power(last)};
}

// A number below 10^-405 is less than the smallest of every type: one tiny value stands for all of them.
constexpr std::int64_t tiny_top = -45;
// Integers of more limbs are out of every range: only their low bits matter.
constexpr std::int64_t max_whole_limbs = 45;
// A multiple of 10^(9 * 8) is one of 2^64.
constexpr std::int64_t low_bits_end = 8;
constexpr int out_of_every_range = 20'000;  // as a binary exponent

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

void append_whole(const std::vector<std::uint32_t>& limbs, SignificandBuilder& builder) {
  std::array<std::uint32_t, max_whole_limbs> words{};  // a word holds more than a limb
  std::size_t used = 0;
  for (std::size_t i = limbs.size(); i-- > 0;) {
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

// value * limb_base^limbs. Not by std::pow, whose last bit depends on the C library and the CPU.
double times_limbs(double value, std::int64_t limbs) {
  constexpr double powers[] = {1e9, 1e18, 1e36, 1e72, 1e144, 1e288};
  constexpr std::uint64_t most = (1u << std::size(powers)) - 1;  // is infinity, or 0
  const auto count = std::min(most, static_cast<std::uint64_t>(limbs < 0 ? -limbs : limbs));
  for (std::size_t i = 0; i < std::size(powers); ++i) {
    if ((count >> i & 1) != 0) value = limbs < 0 ? value / powers[i] : value * powers[i];
  }
  return value;
}

}  // namespace

Decimal Decimal::FromDigits(bool negative, std::string_view digits, std::int64_t exponent) {
  Decimal result;
  result.negative_ = negative;
  const DigitRange range = find_digits(digits, exponent);
  if (range.digits.empty()) return result;
  result.exponent_ = floor_divide(range.last_power, limb_digits);
  std::int64_t power = range.first_power - result.exponent_ * limb_digits;  // relative to the lowest limb
  result.limbs_.resize(static_cast<std::size_t>(power / limb_digits + 1));
  std::uint32_t limb = 0;
  for (const char c : range.digits) {
    if (c == '.') continue;
    limb = limb * 10 + static_cast<std::uint32_t>(c - '0');
    if (power % limb_digits == 0) {
      result.limbs_[static_cast<std::size_t>(power / limb_digits)] = limb;
      limb = 0;
    }
    --power;
  }
  for (; power >= 0; --power) limb *= 10;  // the rest of the lowest limb
  if (limb != 0) result.limbs_.front() = limb;
  result.normalize();
  return result;
}

Decimal Decimal::FromBinary(bool negative, unsigned __int128 significand, int exponent) {
  Decimal result;
  result.negative_ = negative;
  for (; significand != 0; significand /= limb_base) {
    result.limbs_.push_back(static_cast<std::uint32_t>(significand % limb_base));
  }
  if (exponent >= 0) {
    result.multiply_power(2, exponent);
  } else {
    const int limbs = (-exponent + limb_digits - 1) / limb_digits;
    result.multiply_power(2, limbs * limb_digits + exponent);
    result.multiply_power(5, limbs * limb_digits);
    result.exponent_ = -limbs;
  }
  result.normalize();
  return result;
}

Decimal Decimal::FromDouble(double value) {
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  return FromBinary(std::signbit(value), significand, exponent - 53);
}

std::optional<Decimal> Decimal::parse(std::string_view literal, std::size_t max_digits) {
  const std::optional<NumberText> number = scan_number(literal);
  if (!number) return std::nullopt;
  const DigitRange range = find_digits(number->digits, number->exponent);
  const std::int64_t whole_digits = std::max<std::int64_t>(range.first_power + 1, 0);
  const std::int64_t fraction_digits = std::max<std::int64_t>(-range.last_power, 0);
  if (whole_digits + fraction_digits > static_cast<std::int64_t>(max_digits)) return std::nullopt;
  return FromDigits(number->negative, number->digits, number->exponent);
}

Decimal Decimal::operator*(const Decimal& other) const {
  Decimal product;
  product.negative_ = negative_ != other.negative_;
  product.exponent_ = exponent_ + other.exponent_;
  product.limbs_.assign(limbs_.size() + other.limbs_.size(), 0);
  for (std::size_t i = 0; i < limbs_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < other.limbs_.size(); ++j) {
      carry += product.limbs_[i + j] + std::uint64_t{limbs_[i]} * other.limbs_[j];
      product.limbs_[i + j] = static_cast<std::uint32_t>(carry % limb_base);
      carry /= limb_base;
    }
    product.limbs_[i + other.limbs_.size()] = static_cast<std::uint32_t>(carry);
  }
  product.normalize();
  return product;
}

Decimal Decimal::operator-(const Decimal& other) const {
  if (other.is_zero()) return is_zero() ? Decimal{} : *this;
  if (is_zero()) {
    Decimal negated = other;
    negated.negative_ = !other.negative_;
    return negated;
  }
  const std::int64_t low = std::min(exponent_, other.exponent_);
  const std::int64_t high = std::max(top(), other.top());
  Decimal result;
  result.exponent_ = low;
  result.limbs_.reserve(static_cast<std::size_t>(high - low) + 1);
  // Signed sum limb by limb; a negative sum comes out as its complement, which is turned round below.
  std::int64_t carry = 0;
  for (std::int64_t position = low; position < high; ++position) {
    const std::int64_t a = limb_at(position);
    const std::int64_t b = other.limb_at(position);
    carry += (negative_ ? -a : a) - (other.negative_ ? -b : b);
    const std::int64_t upper = floor_divide(carry, limb_base);
    result.limbs_.push_back(static_cast<std::uint32_t>(carry - upper * limb_base));
    carry = upper;
  }
  if (carry < 0) {
    result.negative_ = true;
    std::int64_t borrow = 0;
    for (std::uint32_t& limb : result.limbs_) {
      const std::int64_t value = borrow - static_cast<std::int64_t>(limb);
      borrow = value < 0 ? -1 : 0;
      limb = static_cast<std::uint32_t>(value < 0 ? value + limb_base : value);
    }
    carry = borrow - carry;
  }
  if (carry > 0) result.limbs_.push_back(static_cast<std::uint32_t>(carry));
  result.normalize();
  if (result.is_zero()) result.negative_ = false;
  return result;
}

double Decimal::magnitude_ratio(const Decimal& other) const {
  if (is_zero()) return 0.0;
  if (other.is_zero()) return std::numeric_limits<double>::infinity();
  // The three highest limbs have at least 19 significant digits.
  const auto leading = [](const Decimal& value) {
    double sum = 0.0;
    for (int i = 1; i <= 3; ++i) sum = sum * limb_base + value.limb_at(value.top() - i);
    return sum;
  };
  return times_limbs(leading(*this) / leading(other), top() - other.top());
}

Real Decimal::to_real() const {
  if (is_zero()) return Real::Zero(negative_);
  if (top() < tiny_top) return Real::Finite(negative_, 1, -out_of_every_range, true);
  Real value;
  if (top() > max_whole_limbs) {
    value = Real::Finite(negative_, 1, out_of_every_range, true);
  } else {
    SignificandBuilder builder;
    std::vector<std::uint32_t> whole;
    for (std::int64_t position = 0; position < top(); ++position) whole.push_back(limb_at(position));
    append_whole(whole, builder);
    std::vector<std::uint32_t> fraction;
    for (std::int64_t position = exponent_; position < 0; ++position) fraction.push_back(limb_at(position));
    append_fraction(std::move(fraction), builder);
    value = builder.build(negative_);
  }
  if (value.sticky && value.exponent >= 0) {
    value.integer_low_bits = low_bits_of_whole();
    value.fraction = fraction_tail();
  }
  return value;
}

std::string Decimal::to_string() const {
  std::string text = negative_ ? "-" : "";
  if (is_zero()) return text + "0";
  const std::size_t start = text.size();
  for (std::int64_t position = std::max<std::int64_t>(top(), 1) - 1; position >= 0; --position) {
    text += formatted("{:09}", limb_at(position));
  }
  text.erase(start, std::min(text.find_first_not_of('0', start), text.size() - 1) - start);
  if (exponent_ >= 0) return text;
  text += '.';
  for (std::int64_t position = -1; position >= exponent_; --position) text += formatted("{:09}", limb_at(position));
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

void Decimal::multiply(std::uint32_t factor) {
  std::uint64_t carry = 0;
  for (std::uint32_t& limb : limbs_) {
    carry += std::uint64_t{limb} * factor;
    limb = static_cast<std::uint32_t>(carry % limb_base);
    carry /= limb_base;
  }
  for (; carry != 0; carry /= limb_base) limbs_.push_back(static_cast<std::uint32_t>(carry % limb_base));
}

void Decimal::multiply_power(std::uint32_t base, int power) {
  std::uint32_t chunk = 1;
  for (int i = 0; i < power; ++i) {
    if (chunk > std::numeric_limits<std::uint32_t>::max() / base) {
      multiply(chunk);
      chunk = 1;
    }
    chunk *= base;
  }
  multiply(chunk);
}

void Decimal::normalize() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  const auto first = std::find_if(limbs_.begin(), limbs_.end(), [](std::uint32_t limb) { return limb != 0; });
  exponent_ = limbs_.empty() ? 0 : exponent_ + (first - limbs_.begin());
  limbs_.erase(limbs_.begin(), first);
}

std::uint32_t Decimal::limb_at(std::int64_t position) const {
  const std::int64_t index = position - exponent_;
  return index < 0 || index >= static_cast<std::int64_t>(limbs_.size()) ? 0 : limbs_[static_cast<std::size_t>(index)];
}

std::uint64_t Decimal::low_bits_of_whole() const {
  if (exponent_ >= low_bits_end) return 0;
  std::uint64_t low = 0;
  for (std::int64_t position = top() - 1; position >= 0; --position) low = low * limb_base + limb_at(position);
  return low;
}

Real::Tail Decimal::fraction_tail() const {
  if (exponent_ >= 0) return Real::Tail::none;
  const std::uint32_t first = limb_at(-1);
  if (first < limb_base / 2) return Real::Tail::below_half;
  // The lowest limb is not zero.
  return first == limb_base / 2 && exponent_ == -1 ? Real::Tail::half : Real::Tail::above_half;
}

}  // namespace tensorcast::codec
