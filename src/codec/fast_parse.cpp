#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "codec/fast_text.hpp"
#include "codec/float_codec.hpp"
#include "codec/integer_codec.hpp"
#include "codec/packing.hpp"
#include "codec/quick_number.hpp"
#include "codec/text_codec.hpp"

namespace tensorcast::codec {
namespace {

// Powers of ten that float64 holds exactly.
constexpr std::array<double, 23> exact_powers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr auto max_exact_power = static_cast<int>(exact_powers.size()) - 1;
constexpr std::uint64_t max_exact_digits = std::uint64_t{1} << 53;

double exact_power(int exponent) { return exact_powers[static_cast<std::size_t>(exponent)]; }

// The magnitude's nearest float64 by one operation on exact operands; false when it takes more than that.
bool nearest_double(const QuickNumber& number, double& nearest) {
  if (number.digits > max_exact_digits) return false;
  if (number.exponent < -max_exact_power || number.exponent > max_exact_power) return false;
  const auto digits = static_cast<double>(number.digits);
  nearest = number.exponent < 0 ? digits / exact_power(-number.exponent) : digits * exact_power(number.exponent);
  return true;
}

// What nearest_double() gave for `number` is the number itself.
bool is_exact(const QuickNumber& number, double nearest) {
  const auto digits = static_cast<double>(number.digits);
  if (number.exponent >= 0) return std::fma(digits, exact_power(number.exponent), -nearest) == 0.0;
  return std::fma(nearest, exact_power(-number.exponent), -digits) == 0.0;
}

std::uint64_t bits_of(double value, bool negative) {
  return std::bit_cast<std::uint64_t>(value) | std::uint64_t{negative} << 63;
}

// Reading of one type, by the shortest way that is sure to be right. False: only the reference is.

class ToFloat64 {
 public:
  using Code = std::uint64_t;
  bool operator()(const QuickNumber& number, Code& code) const {
    double nearest = 0.0;
    if (!nearest_double(number, nearest)) return false;
    code = bits_of(nearest, number.negative);
    return true;
  }
};

class ToFloat32 {
 public:
  using Code = std::uint32_t;
  bool operator()(const QuickNumber& number, Code& code) const {
    double nearest = 0.0;
    if (!nearest_double(number, nearest)) return false;
    // Rounding is monotonic: a second rounding goes wrong only from exactly halfway between two float32.
    constexpr std::uint64_t dropped = (std::uint64_t{1} << 29) - 1;
    constexpr std::uint64_t halfway = std::uint64_t{1} << 28;
    if ((std::bit_cast<std::uint64_t>(nearest) & dropped) == halfway) return false;
    if (nearest < 0x1p-126 && nearest != 0.0) return false;
    code = std::bit_cast<std::uint32_t>(static_cast<float>(nearest)) | std::uint32_t{number.negative} << 31;
    return true;
  }
};

// Floats of 16 bits or fewer.
class ToNarrowFloat {
 public:
  using Code = std::uint64_t;
  ToNarrowFloat(DType to, const Policy& policy) : to_(to), policy_(policy) {}

  bool operator()(const QuickNumber& number, Code& code) const {
    double nearest = 0.0;
    if (!nearest_double(number, nearest)) return false;
    // Where these types change their minds (values, halfway points, ends of ranges) a float64 has few bits set. On any
    // other the number itself lies on the same side.
    constexpr std::uint64_t low_bits = (std::uint64_t{1} << 32) - 1;
    const std::uint64_t bits = bits_of(nearest, number.negative);
    if ((bits & low_bits) == 0 && !is_exact(number, nearest)) return false;
    const Encoded encoded = encode_float(decode_float(DType::float64, bits), to_, policy_);
    code = encoded.bits;
    return (encoded.events & event_refused) == 0;
  }

 private:
  DType to_;
  const Policy& policy_;
};

class ToInteger {
 public:
  using Code = std::uint64_t;
  ToInteger(DType to, const Policy& policy)
      : to_(to),
        policy_(policy),
        mask_(~std::uint64_t{0} >> (64 - bit_width(to))),
        largest_(is_signed(to) ? mask_ / 2 : mask_),
        lowest_(is_signed(to) ? mask_ / 2 + 1 : 0) {}

  bool operator()(const QuickNumber& number, Code& code) const {
    std::uint64_t magnitude = number.digits;
    if (number.exponent != 0 && magnitude != 0) {
      if (number.exponent < -19 || number.exponent > 19) return false;
      const std::uint64_t power = integer_power(number.exponent < 0 ? -number.exponent : number.exponent);
      if (number.exponent > 0) {
        if (__builtin_mul_overflow(magnitude, power, &magnitude)) return false;
      } else if (policy_.int_rounding == IntRounding::trunc || magnitude % power == 0) {
        magnitude /= power;
      } else {
        return false;
      }
    }
    if (magnitude <= (number.negative ? lowest_ : largest_)) [[likely]] {
      code = (number.negative ? -magnitude : magnitude) & mask_;
      return true;
    }
    const Encoded encoded = encode_integer(Real::Finite(number.negative, magnitude, 0), to_, policy_);
    code = encoded.bits;
    return (encoded.events & event_refused) == 0;
  }

 private:
  static std::uint64_t integer_power(int exponent) {
    std::uint64_t power = 1;
    for (int i = 0; i < exponent; ++i) power *= 10;
    return power;
  }

  DType to_;
  const Policy& policy_;
  std::uint64_t mask_;
  std::uint64_t largest_, lowest_;  // magnitudes
};

class ToBool {
 public:
  using Code = std::uint8_t;
  bool operator()(const QuickNumber& number, Code& code) const {
    code = number.digits != 0 ? 1 : 0;
    return true;
  }
};

// Text of many digits to float64 and float32, where the standard library's own exact reading serves.
template <class Float>
bool read_long_number(std::string_view text, std::uint64_t& code) {
  using Bits = std::conditional_t<sizeof(Float) == 8, std::uint64_t, std::uint32_t>;
  const std::string_view trimmed = trim(text);
  const std::optional<NumberText> number = scan_number(trimmed);
  if (!number || number->kind != NumberText::Kind::decimal) return false;
  const char* const end = trimmed.data() + trimmed.size();
  Float value = 0;
  const auto read = std::from_chars(number->digits.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end) return false;
  code = std::bit_cast<Bits>(value) | std::uint64_t{number->negative} << (8 * sizeof(Float) - 1);
  return true;
}

Result<std::uint64_t> read_slowly(std::string_view text, DType to, const Policy& policy) {
  std::uint64_t code = 0;
  if (policy.scale == 1.0) {
    if (to == DType::float64 && read_long_number<double>(text, code)) return code;
    if (to == DType::float32 && read_long_number<float>(text, code)) return code;
  }
  return cast_text(text, to, policy);
}

class Strings {
 public:
  explicit Strings(const StringView& view) : data_(view.data.data()), offsets_(view.offsets.data()) {}
  [[nodiscard]] const char* begin(std::size_t i) const { return data_ + offsets_[i]; }
  [[nodiscard]] const char* end(std::size_t i) const { return data_ + offsets_[i + 1]; }
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    return {begin(i), static_cast<std::size_t>(end(i) - begin(i))};
  }

 private:
  const char* data_;
  const std::int64_t* offsets_;
};

template <class Convert>
Result<void> parse_each(const Strings& strings, DType to, std::byte* dst, std::size_t count, const Policy& policy,
                        const Convert& convert) {
  using Code = typename Convert::Code;
  const bool is_quick = policy.scale == 1.0;
  const bool is_whole = static_cast<std::size_t>(bit_width(to)) == 8 * sizeof(Code);
  for (std::size_t i = 0; i < count; ++i) {
    QuickNumber number;
    Code code = 0;
    if (!is_quick || !scan_quick_number(strings.begin(i), strings.end(i), number) || !convert(number, code))
        [[unlikely]] {
      Result<std::uint64_t> read = read_slowly(strings[i], to, policy);
      if (!read) {
        read.error().element = i;
        return std::move(read).error();
      }
      code = static_cast<Code>(*read);
    }
    if (is_whole) {
      std::memcpy(dst + i * sizeof(Code), &code, sizeof(Code));
    } else {
      store_code(to, dst, i, code);
    }
  }
  if (count != 0) clear_tail(to, dst, count);
  return {};
}

}  // namespace

Result<void> parse_strings(const StringView& src, DType to, std::byte* dst, std::size_t count, const Policy& policy) {
  const Strings strings(src);
  switch (family(to)) {
    case Family::floating:
      if (to == DType::float64) return parse_each(strings, to, dst, count, policy, ToFloat64());
      if (to == DType::float32) return parse_each(strings, to, dst, count, policy, ToFloat32());
      return parse_each(strings, to, dst, count, policy, ToNarrowFloat(to, policy));
    case Family::integer:
      return parse_each(strings, to, dst, count, policy, ToInteger(to, policy));
    case Family::boolean:
      return parse_each(strings, to, dst, count, policy, ToBool());
    case Family::text:
      break;
  }
  return Error{.code = ErrorCode::unsupported, .message = "strings to strings are a copy, not a conversion"};
}

}  // namespace tensorcast::codec
