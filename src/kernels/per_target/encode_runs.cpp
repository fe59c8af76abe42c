// Quantization: the extent of runs of numbers, and their codes once their scales are known.
#include <utility>
// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/encode_float.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/environment.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

static_assert(run_step % kBlock == 0 && (1 << least_run_shift) % kLanes == 0);

constexpr std::int32_t sign_bit = INT32_MIN;
constexpr std::int32_t infinity = 0x7f800000;

SIMD_INLINE F32 load_floats(const std::byte* numbers, std::size_t at) {
  return load<F32>(numbers + at * sizeof(float));
}

// A number's neighbours are bfloat16 numbers; the even one of two equally near. NaN stays.
SIMD_INLINE F32 rounded_to_bfloat16(F32 x) {
  const U32 bits = as<U32>(x);
  const U32 nearest = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  return as<F32>(select(is_nan(x), as<I32>(bits), as<I32>(nearest)));
}

// The FPU rounds, as it adds 1.5 * 2^23 of the last bits that float16 has at this magnitude.
SIMD_INLINE F32 rounded_to_float16(F32 x) {
  constexpr std::int32_t least_exponent = (127 - 14) << 23, binades = 13 << 23;
  constexpr std::int32_t after_largest = 0x477ff000;  // 65520
  const I32 size = as<I32>(x) & INT32_MAX;
  const F32 unit = as<F32>(max(min(size, splat(after_largest)) & infinity, splat(least_exponent)) + binades);
  const I32 rounded = as<I32>((as<F32>(size) + unit) - unit);
  const I32 special = select(is_nan(x), size, splat(infinity));
  return as<F32>(select(greater(splat(after_largest), size), rounded, special) | (as<I32>(x) & sign_bit));
}

SIMD_INLINE F32 rounded_to(DType dtype, F32 x) {
  if (dtype == DType::bfloat16) return rounded_to_bfloat16(x);
  return dtype == DType::float16 ? rounded_to_float16(x) : x;
}

// Codes of floating-point types: changes quotients so that the encoder of casts gives the rule's codes.
template <DType to>
class FloatCodes {
  static constexpr FloatFormat format = row(to).format;
  static constexpr bool has_nan = format.has_nan();

 public:
  static constexpr int width = bits_of<to>;

  explicit FloatCodes(const CodeRule& rule) : ties_(rule.ties), zeros_(rule.zeros) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& quotients) const {
    encoder_.store_block(dst, map(quotients, [this](F32 x) SIMD_INLINE_LAMBDA { return changed(x); }));
  }

 private:
  SIMD_INLINE F32 changed(F32 x) const {
    I32 bits = as<I32>(x);
    const I32 size = bits & INT32_MAX;
    if (zeros_ == Zeros::negative_numbers) bits = select(less(x, F32{}), bits, size);
    if (zeros_ == Zeros::always_negative) bits = select(equal(size, I32{}), splat(sign_bit), bits);
    if constexpr (has_nan) {
      bits = select(equal(size, splat(infinity)), (bits & sign_bit) | largest, bits);
    } else {
      bits = select(greater(size, splat(infinity)), bits & sign_bit, bits);
    }
    if (zeros_ == Zeros::never_negative) bits = select(greater(bits & INT32_MAX, splat(largest_zero)), bits, I32{});
    if constexpr (to == DType::float4_e2m1fn) {
      // The ties that would round up to an even code round down from the number before.
      if (ties_ == Ties::towards_zero) bits = select(is_tie(size), bits - 1, bits);
    }
    return as<F32>(bits);
  }

  SIMD_INLINE static Mask32 is_tie(I32 size) {
    constexpr std::int32_t three_quarters = 0x3f400000, seven_quarters = 0x3fe00000, seven_halves = 0x40600000;
    return mask_or(mask_or(equal(size, splat(three_quarters)), equal(size, splat(seven_quarters))),
                   equal(size, splat(seven_halves)));
  }

  static constexpr int dropped_bits = 23 - format.mantissa_bits;
  static constexpr std::int32_t largest =
      ((format.max_exponent() + 127) << 23) |
      static_cast<std::int32_t>(format.largest_code() & ((1U << format.mantissa_bits) - 1)) << dropped_bits;
  // Half of the least number, which rounds to zero.
  static constexpr std::int32_t largest_zero = (format.min_exponent() - format.mantissa_bits - 1 + 127) << 23;

  FloatEncoder<to, true> encoder_{Policy{}};
  Ties ties_;
  Zeros zeros_;
};

// Integers of 8 or 4 bits. NaN becomes 0.
template <int bits>
class IntegerCodes {
 public:
  static constexpr int width = bits;

  explicit IntegerCodes(const CodeRule& rule)
      : flip_(splat(static_cast<std::uint8_t>(rule.is_offset ? 1 << (width - 1) : 0))) {}

  SIMD_INLINE void store_block(std::byte* dst, const Block<F32>& quotients) const {
    constexpr float limit = 1 << (width - 1), unit = 0x1.8p23f;  // whose low bits count ones
    const Block<I32> codes = map(quotients, [](F32 x) SIMD_INLINE_LAMBDA {
      const F32 number = as<F32>(select(is_nan(x), I32{}, as<I32>(x)));
      return as<I32>(clamp(number, splat(-limit), splat(limit - 1)) + unit) & ((1 << width) - 1);
    });
    const U8 bytes = pack_bytes(codes) ^ flip_;
    if constexpr (width == 4) {
      store(dst, pack_u4(bytes));
    } else {
      store(dst, bytes);
    }
  }

 private:
  U8 flip_;
};

template <class Codes, bool is_integer>
void encode_runs(const std::byte* numbers, std::size_t count, const CodeRule& rule, const RunOperand* operands,
                 unsigned run_shift, std::byte* codes) {
  in_default_environment([&] {
    const Codes encoder(rule);
    const auto quotient = [&](std::size_t at) SIMD_INLINE_LAMBDA {
      const RunOperand& operand = operands[at >> run_shift];
      const F32 x = load_floats(numbers, at), factor = splat(operand.factor);
      F32 y = rounded_to(rule.rounds_to, rule.multiplies ? x * factor : x / factor);
      if constexpr (is_integer) y = rounded_to(rule.rounds_to, y + splat(operand.zero));
      return y;
    };
    for (std::size_t at = 0; at < count; at += kBlock, codes += kBlock * Codes::width / 8) {
      encoder.store_block(codes,
                          {quotient(at), quotient(at + kLanes), quotient(at + 2 * kLanes), quotient(at + 3 * kLanes)});
    }
  });
}

template <int by, class V, int... lane>
SIMD_INLINE V rotated(V x, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(x, x, ((lane + by) % kLanes)...);
}

// The largest lane, in all lanes: each step doubles how many a lane has seen.
template <int by = kLanes / 2>
SIMD_INLINE I32 max_of_all(I32 x) {
  const I32 both = max(x, rotated<by>(x, std::make_integer_sequence<int, kLanes>{}));
  if constexpr (by == 1) {
    return both;
  } else {
    return max_of_all<by / 2>(both);
  }
}

// Calls run(index, first, end) for each run of `count` numbers.
template <class Run>
SIMD_INLINE void for_each_run(std::size_t count, unsigned run_shift, const Run& run) {
  const std::size_t size = run_shift == shift_of_all ? count : std::size_t{1} << run_shift;
  for (std::size_t first = 0, index = 0; first < count; first += size, ++index) {
    run(index, first, size < count - first ? first + size : count);
  }
}

}  // namespace

EncodeRunsFn find_encode_runs(const CodeRule& rule) noexcept {
  switch (rule.element) {
    case DType::float8_e4m3fn:
      return encode_runs<FloatCodes<DType::float8_e4m3fn>, false>;
    case DType::float8_e5m2:
      return encode_runs<FloatCodes<DType::float8_e5m2>, false>;
    case DType::float6_e2m3fn:
      return encode_runs<FloatCodes<DType::float6_e2m3fn>, false>;
    case DType::float6_e3m2fn:
      return encode_runs<FloatCodes<DType::float6_e3m2fn>, false>;
    case DType::float4_e2m1fn:
      return encode_runs<FloatCodes<DType::float4_e2m1fn>, false>;
    default:
      return rule.bits == 8 ? encode_runs<IntegerCodes<8>, true> : encode_runs<IntegerCodes<4>, true>;
  }
}

void largest_of_runs(const std::byte* numbers, std::size_t count, unsigned run_shift, std::uint32_t* largest) {
  for_each_run(count, run_shift, [&](std::size_t index, std::size_t first, std::size_t end) SIMD_INLINE_LAMBDA {
    I32 most = {};
    for (std::size_t at = first; at < end; at += kLanes) {
      most = max(most, load<I32>(numbers + at * sizeof(float)) & INT32_MAX);
    }
    const auto found = static_cast<std::uint32_t>(max_of_all(most)[0]);
    largest[index] = found > largest[index] ? found : largest[index];
  });
}

void range_of_runs(const std::byte* numbers, std::size_t count, unsigned run_shift, float* low, float* high) {
  for_each_run(count, run_shift, [&](std::size_t index, std::size_t first, std::size_t end) SIMD_INLINE_LAMBDA {
    F32 least = splat(low[index]), most = splat(high[index]);
    for (std::size_t at = first; at < end; at += kLanes) {
      const F32 x = load_floats(numbers, at);
      least = select(less(x, least), x, least);
      most = select(less(most, x), x, most);
    }
    low[index] = reduce_min(least);
    high[index] = reduce_max(most);
  });
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
