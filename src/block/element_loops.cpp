// The same codes as define_codes(), by loops over runs that the compiler vectorises and the kernels of cast().
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "block/code_packing.hpp"
#include "block/element_rule.hpp"
#include "block/float_steps.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t chunk = 512;

void divide(const ElementRule& rule, DType weights, float factor, std::span<const float> numbers, float* out) noexcept {
  const std::size_t count = numbers.size();
  if (rule.multiplies) {
    for (std::size_t i = 0; i < count; ++i) out[i] = numbers[i] * factor;
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = numbers[i] / factor;
  }
  if (!rule.rounds || weights == DType::float32) return;
  if (weights == DType::bfloat16) {
    for (std::size_t i = 0; i < count; ++i) out[i] = round_to_bfloat16(out[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) out[i] = round_to_float16(out[i]);
  }
}

// Sizes of float4 between its midpoints; of two equally near, the even code or the one towards zero.
void float4_sizes(Ties ties, const float* quotients, std::size_t count, std::uint8_t* codes) noexcept {
  if (ties == Ties::even) {
    for (std::size_t i = 0; i < count; ++i) {
      const float size = magnitude(quotients[i]);
      codes[i] = static_cast<std::uint8_t>((size > 0.25f) + (size >= 0.75f) + (size > 1.25f) + (size >= 1.75f) +
                                           (size > 2.5f) + (size >= 3.5f) + (size > 5.0f));
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      const float size = magnitude(quotients[i]);
      codes[i] = static_cast<std::uint8_t>((size > 0.25f) + (size > 0.75f) + (size > 1.25f) + (size > 1.75f) +
                                           (size > 2.5f) + (size > 3.5f) + (size > 5.0f));
    }
  }
}

// Sizes of float6 and float8: a number that is too large becomes the largest one.
void kernel_sizes(const ElementRule& rule, const float* quotients, std::size_t count, std::uint8_t* codes) noexcept {
  static const codec::Policy policy{};
  std::array<float, chunk> sizes;
  const kernels::Kernel* const kernel = kernels::find_kernel(active_target(), DType::float32, rule.element);
  // 57344, as infinity is one of this type's codes; the others saturate.
  const float limit = rule.element == DType::float8_e5m2 ? 57344.0f : 448.0f;
  for (std::size_t i = 0; i < count; ++i) {
    const float size = magnitude(quotients[i]);
    sizes[i] = size > limit ? limit : size;
  }
  const auto* const from = reinterpret_cast<const std::byte*>(sizes.data());
  if (rule.bits == 8) {
    kernel->run(from, reinterpret_cast<std::byte*>(codes), count, policy);
    return;
  }
  std::array<std::byte, chunk> packed;
  kernel->run(from, packed.data(), count, policy);
  unpack_stream(rule.bits, packed.data(), {codes, count});
  for (std::size_t i = 0; i < count; ++i) codes[i] &= 0x1f;  // NaN became -0
}

void put_signs(const ElementRule& rule, const float* quotients, std::size_t count, std::uint8_t* codes) noexcept {
  const auto sign = static_cast<std::uint8_t>(1u << (rule.bits - 1));
  switch (rule.zeros) {
    case Zeros::sign_kept:
      for (std::size_t i = 0; i < count; ++i) codes[i] |= (bits_of(quotients[i]) >> 31) != 0 ? sign : std::uint8_t{0};
      return;
    case Zeros::negative_numbers:
      for (std::size_t i = 0; i < count; ++i) codes[i] |= quotients[i] < 0 ? sign : std::uint8_t{0};
      return;
    case Zeros::never_negative:
      for (std::size_t i = 0; i < count; ++i) {
        const bool has_sign = (bits_of(quotients[i]) >> 31) != 0 && codes[i] != 0;
        codes[i] |= has_sign ? sign : std::uint8_t{0};
      }
      return;
    case Zeros::always_negative:
      for (std::size_t i = 0; i < count; ++i) {
        const bool has_sign = (bits_of(quotients[i]) >> 31) != 0 || quotients[i] == 0;
        codes[i] |= has_sign ? sign : std::uint8_t{0};
      }
      return;
  }
}

void integer_codes(const ElementRule& rule, DType weights, float zero, float* quotients, std::size_t count,
                   std::uint8_t* codes) noexcept {
  if (zero != 0.0f) {
    for (std::size_t i = 0; i < count; ++i) quotients[i] += zero;
    if (rule.rounds && weights != DType::float32) {
      for (std::size_t i = 0; i < count; ++i) quotients[i] = round_to(weights, quotients[i]);
    }
  }
  const auto limit = static_cast<float>(1 << (rule.bits - 1));
  const auto mask = static_cast<std::uint32_t>((1u << rule.bits) - 1);
  constexpr float unit = 0x1.8p23f;  // whose low bits count ones
  for (std::size_t i = 0; i < count; ++i) {
    const float number = is_nan(quotients[i]) ? 0.0f : quotients[i];
    const float above = number < -limit ? -limit : number;
    const float limited = above > limit - 1 ? limit - 1 : above;
    codes[i] = static_cast<std::uint8_t>(bits_of(limited + unit) & mask);
  }
}

// Reports whether the first nearest number is the one that midpoints tell: distances are then exact.
bool are_distances_exact(std::span<const float> quotients) noexcept {
  std::uint32_t largest = 0;
  for (const float quotient : quotients) largest = std::max(largest, bits_of(quotient) & magnitude_bits);
  return float_of(largest) < 0x1p18f;
}

}  // namespace

bool is_of_quotients(const ElementRule& rule) noexcept {
  return rule.search == Search::none && rule.element != DType::int8;
}

void divide_block(const ElementRule& rule, DType weights, const Operand& operand, std::span<const float> numbers,
                  float* quotients) noexcept {
  divide(rule, weights, operand.factor, numbers, quotients);
}

void encode_quotients(const ElementRule& rule, std::span<const float> quotients, std::uint8_t* codes) noexcept {
  if (rule.element == DType::float4_e2m1fn) {
    float4_sizes(rule.ties, quotients.data(), quotients.size(), codes);
  } else {
    kernel_sizes(rule, quotients.data(), quotients.size(), codes);
  }
  put_signs(rule, quotients.data(), quotients.size(), codes);
}

void encode(const ElementRule& rule, DType weights, const Operand& operand, std::span<const float> numbers,
            std::span<std::uint8_t> codes) noexcept {
  std::array<float, chunk> quotients;
  for (std::size_t done = 0; done < numbers.size(); done += chunk) {
    const std::size_t n = std::min(chunk, numbers.size() - done);
    const std::span<const float> part = numbers.subspan(done, n);
    std::uint8_t* const to = codes.data() + done;
    divide(rule, weights, operand.factor, part, quotients.data());
    const bool has_power_of_two = (bits_of(operand.factor) & ((1u << mantissa_bits) - 1)) == 0;
    const bool needs_search = (rule.search == Search::numbers && !has_power_of_two) ||
                              (rule.search != Search::none && !are_distances_exact({quotients.data(), n}));
    if (needs_search) {
      define_codes(rule, weights, operand, part, {to, n});
    } else if (rule.element == DType::int8) {
      integer_codes(rule, weights, operand.zero, quotients.data(), n, to);
    } else {
      encode_quotients(rule, {quotients.data(), n}, to);
    }
  }
}

}  // namespace tensorcast::block
