// SPDX-License-Identifier: Apache-2.0
// Quantization: the codes of runs of numbers, once their scales are known.
#include <utility>

#include "kernels/encode/encode_float.hpp"
#include "kernels/encode/encode_powers.hpp"
#include "kernels/encode/encode_quotients.hpp"
#include "kernels/encode/run_operands.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/divide.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/prefetch_block.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

static_assert(run_step % kBlock == 0 && (1 << least_run_shift) % kLanes == 0);

constexpr std::int32_t sign_bit = INT32_MIN;
constexpr std::int32_t infinity = 0x7f800000;

template <DType from>
SIMD_INLINE F32 load_floats(const std::byte* numbers, std::size_t at) {
  return load_unit<from>(numbers + bytes_of<from>(at));
}

// A number's neighbours are bfloat16 numbers; the even one of two equally near.
SIMD_INLINE F32 number_rounded_to_bfloat16(F32 x) {
  const U32 bits = as<U32>(x);
  return as<F32>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u);
}

// The same, but NaN for the largest ones, and all digits of the least. The sum with a power of two, 16 binades above
// the number's, is rounded at bfloat16's last place.
[[maybe_unused]] SIMD_INLINE F32 ordinary_rounded_to_bfloat16(F32 x) {
  if constexpr (!has_fused_float32) return number_rounded_to_bfloat16(x);
  constexpr float above = 0x1p16F;
  const F32 power = as<F32>(as<U32>(x) & 0xff800000u);
  return multiply_add(power, splat(-above), multiply_add(power, splat(above), x));
}

// NaN stays.
SIMD_INLINE F32 rounded_to_bfloat16(F32 x) {
  return as<F32>(select(is_nan(x), as<I32>(x), as<I32>(number_rounded_to_bfloat16(x))));
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
      if (ties_ == Ties::towards_zero) bits = select(is_tie(size), as<I32>(as<U32>(bits) - 1U), bits);
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
                 unsigned run_shift, std::byte* codes, const Ahead& ahead) {
  in_default_environment([&] {
    const Codes encoder(rule);
    const auto quotient = [&](std::size_t at) SIMD_INLINE_LAMBDA {
      const RunOperand& operand = operands[at >> run_shift];
      const F32 x = load_floats<DType::float32>(numbers, at), factor = splat(operand.factor);
      F32 y = rounded_to(rule.rounds_to, rule.multiplies ? x * factor : x / factor);
      if constexpr (is_integer) y = rounded_to(rule.rounds_to, y + splat(operand.zero));
      return y;
    };
    for (std::size_t at = 0; at < count; at += kBlock, codes += kBlock * Codes::width / 8) {
      prefetch_block(numbers, at * sizeof(float), kBlock * sizeof(float), ahead);
      encoder.store_block(codes,
                          {quotient(at), quotient(at + kLanes), quotient(at + 2 * kLanes), quotient(at + 3 * kLanes)});
    }
  });
}

// --- The short way: quotients of ordinary size, by a rule that most recipes have

[[maybe_unused]] SIMD_INLINE bool are_ordinary(const Block<I32>& sizes) {
  constexpr std::int32_t largest_ordinary = 0x47800000;  // 65536
  const I32 greatest = max(max(sizes.a, sizes.b), max(sizes.c, sizes.d));
  return !any(greater(greatest, keep_in_register(splat(largest_ordinary))));
}

// Any block, whatever is in it.
template <class Codes, bool is_integer, DType from>
[[gnu::noinline]] void encode_any_block(const std::byte* numbers, const CodeRule& rule, const RunOperand* operands,
                                        unsigned run_shift, std::byte* codes) {
  std::byte wide[kBlock * sizeof(float)];
  store_units(wide, load_block<from>(numbers));
  encode_runs<Codes, is_integer>(wide, kBlock, rule, operands, run_shift, codes, {});
}

template <class Codes, bool is_integer, DType from>
void encode_any_runs(const std::byte* numbers, std::size_t count, const CodeRule& rule, const RunOperand* operands,
                     unsigned run_shift, std::byte* codes, const Ahead& ahead) {
  for (std::size_t at = 0; at < count; at += kBlock, codes += kBlock * Codes::width / 8) {
    prefetch_block(numbers, bytes_of<from>(at), bytes_of<from>(kBlock), ahead);
    encode_any_block<Codes, is_integer, from>(numbers + bytes_of<from>(at), rule, operands + (at >> run_shift),
                                              run_shift, codes);
  }
}

// A step of a block of quotients returns false, and has stored nothing, if they are not ordinary.

// Codes of ordinary quotients. Zeros are sign_kept, or negative_numbers in a division.
template <DType to>
class ShortFloatCodes {
 public:
  using Any = FloatCodes<to>;
  static constexpr DType type = to;
  static constexpr bool is_integer = false, has_powers = has_power_encoder<to>;
  static constexpr bool multiplies_short_divisors = false;
  static constexpr float unit = has_signed_powers ? QuotientEncoder<to>::unit : 1.0F;

  explicit ShortFloatCodes(const CodeRule& rule)
      : keeps_signs_(rule.zeros == Zeros::sign_kept), encoder_(rule.bypasses_cache) {}

  SIMD_INLINE bool store_block(std::byte* dst, const Block<F32>& x, const Block<F32>& quotients) const {
    if constexpr (has_signed_powers) return encoder_.store_block(dst, quotients);
    const Block<I32> sizes = map(quotients, [](F32 lanes) { return as<I32>(lanes) & INT32_MAX; });
    if (!are_ordinary(sizes)) [[unlikely]]
      return false;
    const auto bits = [](F32 lanes) { return as<I32>(lanes); };
    if (keeps_signs_) {  // also of zeros
      any_encoder_.template store_block<true>(dst, map(x, bits), sizes);
    } else {
      any_encoder_.template store_block<true>(dst, map(quotients, bits), sizes);
    }
    return true;
  }

 private:
  bool keeps_signs_;
  QuotientEncoder<to> encoder_;
  FloatEncoder<to, false> any_encoder_{Policy{}};
};

template <DType from, int bits, DType rounds_to>
class ShortIntegerCodes {
 public:
  using Any = IntegerCodes<bits>;
  static constexpr bool is_integer = true, has_powers = false;
  // A quotient of two bfloat16 numbers is never halfway between two others, nor nearer than 2^-17 of itself to such a
  // place: the product with the inverse rounds to the same one.
  static constexpr bool multiplies_short_divisors = from == DType::bfloat16 && rounds_to == DType::bfloat16;
  static constexpr float unit = 1.0F;

  explicit ShortIntegerCodes(const CodeRule& rule) : flip_(splat(static_cast<std::uint8_t>(rule.is_offset ? 8 : 0))) {}

  SIMD_INLINE bool store_block(std::byte* dst, const Block<F32>&, const Block<F32>& quotients) const {
    if constexpr (!has_nearest_integers) {
      if (!are_ordinary(map(quotients, [](F32 x) { return as<I32>(x) & INT32_MAX; }))) return false;
    }
    const U8 bytes = pack_bytes_saturated<true>(map(quotients, [](F32 x) SIMD_INLINE_LAMBDA {
      if constexpr (rounds_to == DType::bfloat16) x = ordinary_rounded_to_bfloat16(x);
      if constexpr (has_nearest_integers) return nearest_integer(x);
      constexpr float unit_of_ones = 0x1.8p23f;  // whose low bits count ones
      return as<I32>(x + unit_of_ones) - as<I32>(splat(unit_of_ones));
    }));
    if constexpr (has_nearest_integers) {
      if (any_least(bytes)) [[unlikely]]
        return false;
    }
    if constexpr (bits == 8) {
      store(dst, bytes);
    } else {
      const I8 limited = min(max(as<I8>(bytes), splat(std::int8_t{-8})), splat(std::int8_t{7}));
      store(dst, pack_u4((as<U8>(limited) & 15) ^ flip_));
    }
    return true;
  }

 private:
  U8 flip_;
};

// Numbers whose factors are set, and where they lie: the first of them begins a run.
template <class Codes, DType from, bool multiplies>
void encode_chunk(const Codes& encoder, const std::byte* numbers, std::size_t count, const CodeRule& rule,
                  const RunFactors& by, const RunOperand* operands, unsigned run_shift, std::byte* codes,
                  const Ahead& ahead) {
  const auto encode_all = [&](const auto& quotient) SIMD_INLINE_LAMBDA {
    for (std::size_t at = 0; at < count; at += kBlock, codes += kBlock * Codes::Any::width / 8) {
      const std::byte* const from_here = numbers + bytes_of<from>(at);
      prefetch_block(numbers, bytes_of<from>(at), bytes_of<from>(kBlock), ahead);
      const Block<F32> x = load_block<from>(from_here);
      const auto of_unit = [&](F32 lanes, int unit)
                               SIMD_INLINE_LAMBDA { return quotient(lanes, (at + unit * kLanes) >> run_shift); };
      if (encoder.store_block(codes, x, {of_unit(x.a, 0), of_unit(x.b, 1), of_unit(x.c, 2), of_unit(x.d, 3)})) continue;
      encode_any_block<typename Codes::Any, Codes::is_integer, from>(from_here, rule, operands + (at >> run_shift),
                                                                     run_shift, codes);
    }
  };
  const auto product = [&](F32 x, std::size_t run) SIMD_INLINE_LAMBDA { return x * splat(by.factor[run]); };
  if constexpr (multiplies || Codes::multiplies_short_divisors) {
    encode_all(product);
  } else if (has_signed_powers && !Codes::is_integer && rule.zeros == Zeros::sign_kept) {
    encode_all([&](F32 x, std::size_t run) SIMD_INLINE_LAMBDA {
      return divide_signed(x, splat(by.factor[run]), splat(by.divisor[run]), splat(by.negative_inverse[run]));
    });
  } else {
    encode_all([&](F32 x, std::size_t run)
                   SIMD_INLINE_LAMBDA { return divide(x, splat(by.factor[run]), splat(by.negative_divisor[run])); });
  }
}

// Reports whether the operands of runs of bfloat16 are powers of two that PowerEncoder takes.
template <DType to, bool multiplies>
bool set_powers(const RunOperand* operands, std::size_t runs, typename PowerEncoder<to>::Run* powers) {
  return for_powers<multiplies>(operands, runs, most_power, [&](I64 power, std::size_t i) SIMD_INLINE_LAMBDA {
    store(reinterpret_cast<std::byte*>(powers + i), PowerEncoder<to>::runs_of(power));
  });
}

template <DType to>
void encode_power_chunk(const std::byte* numbers, std::size_t count, const CodeRule& rule,
                        const typename PowerEncoder<to>::Run* powers, const RunOperand* operands, unsigned run_shift,
                        std::byte* codes, const Ahead& ahead) {
  constexpr DType from = DType::bfloat16;
  const PowerEncoder<to> encoder(rule.bypasses_cache);
  for (std::size_t at = 0; at < count; at += kBlock, codes += bytes_of<to>(kBlock)) {
    const std::byte* const from_here = numbers + bytes_of<from>(at);
    prefetch_block(numbers, bytes_of<from>(at), bytes_of<from>(kBlock), ahead);
    const std::size_t run = at >> run_shift;
    if (encoder.store_block(codes, load_u16x2(from_here), powers[run], powers[(at + kBlock / 2) >> run_shift]))
      continue;
    encode_any_block<FloatCodes<to>, false, from>(from_here, rule, operands + run, run_shift, codes);
  }
}

template <class Codes, DType from, bool multiplies>
void encode_ordinary_runs(const std::byte* numbers, std::size_t count, const CodeRule& rule, const RunOperand* operands,
                          unsigned run_shift, std::byte* codes, const Ahead& ahead) {
  in_default_environment([&] {
    const Codes encoder(rule);
    const OperandLimits limits = {.allows_underflow = Codes::is_integer || rule.zeros == Zeros::sign_kept,
                                  .are_short = Codes::multiplies_short_divisors,
                                  .unit = Codes::unit};
    const std::size_t chunk = run_shift == shift_of_all ? count : RunFactors::most << run_shift;
    RunFactors by;
    for (std::size_t first = 0; first < count; first += chunk) {
      const Ahead here = ahead.after(bytes_of<from>(first));
      const std::size_t n = chunk < count - first ? chunk : count - first;
      const RunOperand* const of_chunk = operands + (first >> run_shift);
      const std::byte* const from_here = numbers + bytes_of<from>(first);
      std::byte* const to_here = codes + first * Codes::Any::width / 8;
      if constexpr (from == DType::bfloat16 && Codes::has_powers) {
        constexpr std::size_t lanes16 = kBlock / 2;  // those of a register share a run
        typename PowerEncoder<Codes::type>::Run powers[RunFactors::most];
        if (rule.zeros == Zeros::sign_kept && (lanes16 >> run_shift) <= 1 &&
            set_powers<Codes::type, multiplies>(of_chunk, ((n - 1) >> run_shift) + 1, powers)) {
          encode_power_chunk<Codes::type>(from_here, n, rule, powers, of_chunk, run_shift, to_here, here);
          continue;
        }
      }
      if (set_factors<multiplies>(of_chunk, ((n - 1) >> run_shift) + 1, limits, by)) {
        encode_chunk<Codes, from, multiplies>(encoder, from_here, n, rule, by, of_chunk, run_shift, to_here, here);
      } else {
        encode_any_runs<typename Codes::Any, Codes::is_integer, from>(from_here, n, rule, of_chunk, run_shift, to_here,
                                                                      here);
      }
    }
  });
}

template <DType from, class Any, bool is_integer>
EncodeRunsFn any_runs() {
  if constexpr (from == DType::float32) {
    return encode_runs<Any, is_integer>;
  } else {
    return encode_any_runs<Any, is_integer, from>;
  }
}

template <DType from, DType to>
EncodeRunsFn find_float(const CodeRule& rule) {
  const bool is_short = rule.ties == Ties::even && rule.rounds_to == DType::undefined;
  if (is_short && rule.multiplies && rule.zeros == Zeros::sign_kept) {
    return encode_ordinary_runs<ShortFloatCodes<to>, from, true>;
  }
  if (is_short && !rule.multiplies && (rule.zeros == Zeros::sign_kept || rule.zeros == Zeros::negative_numbers)) {
    return encode_ordinary_runs<ShortFloatCodes<to>, from, false>;
  }
  return any_runs<from, FloatCodes<to>, false>();
}

template <DType from, int bits>
EncodeRunsFn find_integer(const CodeRule& rule) {
  if (!rule.multiplies && rule.rounds_to == DType::undefined) {
    return encode_ordinary_runs<ShortIntegerCodes<from, bits, DType::undefined>, from, false>;
  }
  if (!rule.multiplies && rule.rounds_to == DType::bfloat16) {
    return encode_ordinary_runs<ShortIntegerCodes<from, bits, DType::bfloat16>, from, false>;
  }
  return any_runs<from, IntegerCodes<bits>, true>();
}

template <DType from>
EncodeRunsFn find_of(const CodeRule& rule) {
  switch (rule.element) {
    case DType::float8_e4m3fn:
      return find_float<from, DType::float8_e4m3fn>(rule);
    case DType::float8_e5m2:
      return find_float<from, DType::float8_e5m2>(rule);
    case DType::float6_e2m3fn:
      return find_float<from, DType::float6_e2m3fn>(rule);
    case DType::float6_e3m2fn:
      return find_float<from, DType::float6_e3m2fn>(rule);
    case DType::float4_e2m1fn:
      return find_float<from, DType::float4_e2m1fn>(rule);
    default:
      return rule.bits == 8 ? find_integer<from, 8>(rule) : find_integer<from, 4>(rule);
  }
}

}  // namespace

EncodeRunsFn find_encode_runs(const CodeRule& rule) noexcept {
  if (rule.numbers == DType::bfloat16) return find_of<DType::bfloat16>(rule);
  return find_of<DType::float32>(rule);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
