// SPDX-License-Identifier: Apache-2.0
// Strings to numbers. The standard library reads the texts that it reads exactly, the reference all others. Blocks of
// numbers then go through cast() to the target.
#include "cast/parse_strings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "cast/conversion.hpp"
#include "codec/integer_codec.hpp"
#include "codec/packing.hpp"
#include "codec/reference_cast.hpp"
#include "codec/text_codec.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using codec::Encoded;
using codec::Policy;
using codec::Real;

constexpr std::size_t block_count = 1024;  // whole bytes of every type, and in the first-level cache

// Reads a finite number, rounded once. Returns false for words, numbers out of Float's range and malformed text.
template <class Float>
bool read_finite(std::string_view text, Float& value) {
  if (text.starts_with('+')) {  // D8 allows it, std::from_chars does not
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && std::isfinite(value);
}

// Reports whether `text`, which was read as `value`, is exactly `value`; may be false for an exact value.
// Precondition: `value` has at most 21 significant bits.
bool is_surely_exact(std::string_view text, double value) {
  constexpr std::array<double, 14> powers = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};
  if (text.size() > 15) return false;
  std::size_t fraction_digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((text[i] | 0x20) == 'e') return false;
    if (text[i] == '.') fraction_digits = text.size() - i - 1;
  }
  if (fraction_digits >= powers.size()) return false;
  // The text times 10^fraction_digits is an integer below 10^15. `value` times that power is exact in float64 and, as
  // `value` was rounded to 53 bits, less than 1/2 away from that integer: it equals the integer if it is one itself.
  const double product = value * powers[fraction_digits];
  return product == std::trunc(product);
}

// Rounds to a neighbouring float64, the one with an odd significand: it is on the value's side of every float64 with an
// even one.
double round_to_odd(const Real& value) {
  const double sign = value.negative ? -1.0 : 1.0;
  switch (value.kind) {
    case Real::Kind::zero:
      return std::copysign(0.0, sign);
    case Real::Kind::infinite:
      return sign * std::numeric_limits<double>::infinity();
    case Real::Kind::nan:
      return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
    case Real::Kind::finite:
      break;
  }
  using Limits = std::numeric_limits<double>;
  if (value.leading_exponent() >= Limits::max_exponent) return sign * Limits::max();
  if (value.leading_exponent() < Limits::min_exponent - 1) return sign * Limits::denorm_min();
  constexpr int dropped = 128 - Limits::digits;
  const bool inexact = value.sticky || value.significand << Limits::digits != 0;
  const auto significand = static_cast<std::uint64_t>(value.significand >> dropped) | (inexact ? 1 : 0);
  return sign * std::ldexp(static_cast<double>(significand), value.exponent + dropped);
}

// Readers of the elements of one kind of target, as `Wide`: read() is fast; if it returns false, read_exactly()
// decides.

template <class Float>
class WideFloatReader {
 public:
  using Wide = Float;
  WideFloatReader(DType to, const Policy& policy) : to_(to), policy_(policy) {}

  bool read(std::string_view text, Float& value) const { return policy_.scale == 1.0 && read_finite(text, value); }
  Result<Float> read_exactly(std::string_view text) const {
    using Bits = std::conditional_t<sizeof(Float) == 8, std::uint64_t, std::uint32_t>;
    const std::uint64_t code = TRY(codec::cast_text(text, to_, policy_));
    return std::bit_cast<Float>(static_cast<Bits>(code));
  }

 private:
  DType to_;
  const Policy& policy_;
};

// Floats of 16 bits or fewer and bool, as float64 that cast() rounds as it would round the exact number: values,
// midpoints and limits of these types are float64 with 32 zero low bits, and any other float64 is on the exact
// number's side of them.
class NarrowReader {
 public:
  using Wide = double;
  NarrowReader(DType to, const Policy& policy) : to_(to), policy_(policy) {}

  bool read(std::string_view text, double& value) const {
    constexpr std::uint64_t low_bits = (std::uint64_t{1} << 32) - 1;
    if (policy_.scale != 1.0 || !read_finite(text, value)) return false;
    return (std::bit_cast<std::uint64_t>(value) & low_bits) != 0 || is_surely_exact(text, value);
  }
  Result<double> read_exactly(std::string_view text) const {
    if (to_ == DType::boolean) {
      const std::uint64_t code = TRY(codec::cast_text(text, to_, policy_));
      return static_cast<double>(code);
    }
    const Real exact = TRY(codec::decode_text(text, policy_.scale));
    return round_to_odd(exact);
  }

 private:
  DType to_;
  const Policy& policy_;
};

// Codes of the target, whose low bits cast() keeps.
class IntegerReader {
 public:
  using Wide = std::uint64_t;
  IntegerReader(DType to, const Policy& policy)
      : to_(to),
        policy_(policy),
        largest_(~std::uint64_t{0} >> (64 - bit_width(to) + (is_signed(to) ? 1 : 0))),
        lowest_(is_signed(to) ? largest_ + 1 : 0) {}

  bool read(std::string_view text, std::uint64_t& code) const {
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    const char* const end = text.data() + text.size();
    std::uint64_t magnitude = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, magnitude);
    if (error != std::errc{} || (stop != end && !is_dropped(stop, end)) || policy_.scale != 1.0) return false;
    code = negative ? -magnitude : magnitude;
    if (magnitude <= (negative ? lowest_ : largest_)) [[likely]]
      return true;
    const Encoded encoded = codec::encode_integer(Real::Finite(negative, magnitude, 0), to_, policy_);
    code = encoded.bits;
    return (encoded.events & codec::event_error) == 0;
  }
  Result<std::uint64_t> read_exactly(std::string_view text) const { return codec::cast_text(text, to_, policy_); }

 private:
  // Reports whether [rest, end) is a fraction that the rounding drops.
  [[nodiscard]] bool is_dropped(const char* rest, const char* end) const {
    return policy_.rounding == Rounding::automatic && *rest == '.' &&
           std::all_of(rest + 1, end, [](char c) { return c >= '0' && c <= '9'; });
  }

  DType to_;
  const Policy& policy_;
  std::uint64_t largest_, lowest_;  // magnitudes
};

std::string_view element(const StringView& strings, std::size_t i) {
  const auto begin = static_cast<std::size_t>(strings.offsets[i]);
  return codec::trim({strings.data.data() + begin, static_cast<std::size_t>(strings.offsets[i + 1]) - begin});
}

// Reads all elements of a block. Returns false if one is no number or is out of range.
template <class Reader>
bool read_block(const Reader& reader, const StringView& src, std::size_t first,
                std::span<typename Reader::Wide> block) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    const std::string_view text = element(src, first + i);
    if (reader.read(text, block[i])) [[likely]]
      continue;
    const Result<typename Reader::Wide> exact = reader.read_exactly(text);
    if (!exact) return false;
    block[i] = *exact;
  }
  return true;
}

// Precondition: one of the `count` elements has an error. Returns that of the first.
Error first_error(const StringView& src, std::size_t first, std::size_t count, DType to, const Policy& policy) {
  for (std::size_t i = first; i < first + count; ++i) {
    Result<std::uint64_t> code = codec::cast_text(element(src, i), to, policy);
    if (code) continue;
    code.error().element = i;
    return std::move(code).error();
  }
  return Error{.code = ErrorCode::internal, .message = "text that can be read was not"};
}

template <class Reader>
Result<void> parse_blocks(const StringView& src, DType wide_type, const MutableTensorView& dst, std::size_t count,
                          const CastOptions& options, const Policy& policy) {
  const Reader reader(dst.dtype, policy);
  std::array<typename Reader::Wide, block_count> buffer;
  for (std::size_t first = 0; first < count; first += block_count) {
    const std::span block = std::span(buffer).first(std::min(block_count, count - first));
    const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(block.size())};
    const auto part = dst.bytes.subspan(storage_bytes(dst.dtype, first), storage_bytes(dst.dtype, block.size()));
    if (!read_block(reader, src, first, block) ||
        !cast({wide_type, shape, std::as_bytes(block)}, {dst.dtype, shape, part}, options)) {
      return first_error(src, first, block.size(), dst.dtype, policy);
    }
  }
  return {};
}

// By the reference, which knows all words and whether a text is exact.
Result<void> parse_exactly(const StringView& src, const MutableTensorView& dst, std::size_t count, const Policy& policy,
                           std::uint64_t first) {
  for (std::size_t i = 0; i < count; ++i) {
    Result<std::uint64_t> code =
        codec::cast_text(element(src, i), dst.dtype, policy, codec::random_of(policy, first + i));
    if (!code) {
      code.error().element = i;
      return std::move(code).error();
    }
    codec::store_code(dst.dtype, dst.bytes.data(), i, *code);
  }
  if (count != 0) codec::clear_tail(dst.dtype, dst.bytes.data(), count);
  return {};
}

Result<void> parse(const StringView& src, const MutableTensorView& dst, std::size_t count, const CastOptions& options,
                   const Policy& policy, std::uint64_t first) {
  if (policy.has_word(row(dst.dtype)) || policy.inexact_is_error) return parse_exactly(src, dst, count, policy, first);
  if (dst.dtype == DType::float64) {
    return parse_blocks<WideFloatReader<double>>(src, DType::float64, dst, count, {}, policy);
  }
  if (dst.dtype == DType::float32) {
    return parse_blocks<WideFloatReader<float>>(src, DType::float32, dst, count, {}, policy);
  }
  if (family(dst.dtype) == Family::integer) {
    return parse_blocks<IntegerReader>(src, DType::uint64, dst, count, {}, policy);
  }
  CastOptions rounding = options;
  rounding.scale = 1.0;  // the readers have multiplied
  return parse_blocks<NarrowReader>(src, DType::float64, dst, count, rounding, policy);
}

Result<void> check_offsets(const StringView& strings) {
  std::int64_t previous = 0;
  for (std::size_t i = 0; i < strings.offsets.size(); ++i) {
    if (strings.offsets[i] < previous || static_cast<std::uint64_t>(strings.offsets[i]) > strings.data.size()) {
      return invalid(formatted("offset {} is {}, but offsets ascend from 0 to the {} bytes of text", i,
                               strings.offsets[i], strings.data.size()));
    }
    previous = strings.offsets[i];
  }
  return {};
}

Result<void> parse_checked(const StringView& src, const MutableTensorView& dst, const CastOptions& options,
                           std::uint64_t first) {
  TRY(check_numeric(DType::float32, dst.dtype));
  const std::size_t count = TRY(element_count(dst.shape));
  const std::size_t strings = src.offsets.empty() ? 0 : src.offsets.size() - 1;
  if (strings != count) return invalid(formatted("{} strings do not fill a target of {} elements", strings, count));
  TRY(check_size("target", dst.dtype, count, dst.bytes.size()));
  TRY(check_offsets(src));
  const Policy policy = TRY(codec::resolve_policy(options, DType::string, dst.dtype));
  return parse(src, dst, count, options, policy, first);
}

}  // namespace

Result<void> cast_from_strings(const StringView& src, const MutableTensorView& dst, const CastOptions& options) {
  return parse_strings(src, dst, options, 0);
}

// std::from_chars() reads by the processor's rounding mode.
Result<void> parse_strings(const StringView& src, const MutableTensorView& dst, const CastOptions& options,
                           std::uint64_t first) {
  return guarded([&] { return parse_checked(src, dst, options, first); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
