#include "cast/decimal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dtype/formatted.hpp"

namespace tensorcast {
namespace {

constexpr int limb_digits = 9;
constexpr std::uint32_t limb_base = 1'000'000'000;

constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// A decimal exponent, or a value beyond any that fits when the digits do not.
std::int64_t parse_exponent(std::string_view text) {
  constexpr std::int64_t beyond = 1'000'000'000'000;
  const bool negative = text.starts_with('-');
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  for (const char digit : text) value = std::min(beyond, value * 10 + (digit - '0'));
  return negative ? -value : value;
}

}  // namespace

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
  Decimal result;
  result.negative_ = literal.starts_with('-');
  if (literal.starts_with('-') || literal.starts_with('+')) literal.remove_prefix(1);

  std::int64_t exponent = 0;
  if (const auto mark = literal.find_first_of("eE"); mark != std::string_view::npos) {
    exponent = parse_exponent(literal.substr(mark + 1));
    literal = literal.substr(0, mark);
  }
  std::string digits;
  bool after_point = false;
  for (const char c : literal) {
    if (c == '.') {
      after_point = true;
      continue;
    }
    if (after_point) --exponent;
    if (c != '0' || !digits.empty()) digits += c;
  }
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  if (digits.empty()) return result;  // zero, whatever the exponent

  const std::size_t written = exponent >= 0 ? digits.size() + static_cast<std::size_t>(exponent)
                                            : std::max(digits.size(), static_cast<std::size_t>(-exponent));
  if (written > max_digits) return std::nullopt;

  result.exponent_ = floor_divide(exponent, limb_digits);
  digits.append(static_cast<std::size_t>(exponent - result.exponent_ * limb_digits), '0');
  for (std::size_t end = digits.size(); end > 0;) {
    const std::size_t begin = end > limb_digits ? end - limb_digits : 0;
    std::uint32_t limb = 0;
    for (std::size_t i = begin; i < end; ++i) limb = limb * 10 + static_cast<std::uint32_t>(digits[i] - '0');
    result.limbs_.push_back(limb);
    end = begin;
  }
  result.normalize();
  return result;
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
  const std::int64_t high = std::max(exponent_ + static_cast<std::int64_t>(limbs_.size()),
                                     other.exponent_ + static_cast<std::int64_t>(other.limbs_.size()));
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
    const auto top = value.exponent_ + static_cast<std::int64_t>(value.limbs_.size());
    double sum = 0.0;
    for (int i = 1; i <= 3; ++i) sum = sum * limb_base + value.limb_at(top - i);
    return sum;
  };
  const auto top = [](const Decimal& value) {
    return value.exponent_ + static_cast<std::int64_t>(value.limbs_.size());
  };
  return leading(*this) / leading(other) * std::pow(10.0, static_cast<double>(limb_digits * (top(*this) - top(other))));
}

std::string Decimal::to_string() const {
  std::string text = negative_ ? "-" : "";
  if (is_zero()) return text + "0";
  const auto top = exponent_ + static_cast<std::int64_t>(limbs_.size());
  const std::size_t start = text.size();
  for (std::int64_t position = std::max<std::int64_t>(top, 1) - 1; position >= 0; --position) {
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

}  // namespace tensorcast
