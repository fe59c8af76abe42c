// SPDX-License-Identifier: Apache-2.0
// Quantization: float8 codes of bfloat16 numbers that share a scale with so many others that a table of their mantissas
// pays. Numbers of one mantissa have codes that differ by their exponents alone, whatever the scale is.
#include "kernels/encode/encode_lane16.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/prefetch_block.hpp"
#include "kernels/simd/quotients.hpp"
#include "kernels/simd/store_line.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

// How much the code of a mantissa is below the bits of its number.
class Differences {
 public:
#if TENSORCAST_TARGET_LEVEL >= 3
  explicit Differences(const MantissaTable& table) : all_(table.differences) {}
  SIMD_INLINE U8 operator()(U8 mantissas) const { return all_(mantissas); }

 private:
  ByteTable128 all_;
#elif TENSORCAST_HAS_BYTE_LOOKUP
  explicit Differences(const MantissaTable& table)
      : first_(reinterpret_cast<const std::byte*>(table.first)),
        last_(reinterpret_cast<const std::byte*>(table.last)) {}
  SIMD_INLINE U8 operator()(U8 mantissas) const {
    const U8 cells = as<U8>(as<U16>(mantissas) >> 3) & 0xf, low = mantissas & 0x7f;
    return first_(cells) + as<U8>(as<I8>(low) > as<I8>(last_(cells)));
  }

 private:
  Table16 first_, last_;
#else
  explicit Differences(const MantissaTable&) {}
  U8 operator()(U8 mantissas) const;
#endif
};

template <DType to>
class MantissaEncoder {
  static constexpr FloatFormat format = row(to).format;
  static constexpr int dropped_bits = 7 - format.mantissa_bits;

 public:
  MantissaEncoder(const MantissaTable& table, bool bypasses_cache)
      : bypasses_cache_(bypasses_cache),
        differences_(table),
        base_(keep_in_register(splat(table.base))),
        below_normal_(keep_in_register(splat(table.below_normal))) {}

  // Returns false, and has stored nothing, for NaN, infinities and subnormal results.
  SIMD_INLINE bool store_block(std::byte* dst, const U16x2& x) const {
    const U16x2 sizes = {x.lo & magnitude_, x.hi & magnitude_};
    const U8 bits = grouped_bytes(
        {subtract_to_zero(sizes.lo, base_) >> dropped_bits, subtract_to_zero(sizes.hi, base_) >> dropped_bits});
    const U8 mantissas = grouped_bytes({x.lo & mantissa_, x.hi & mantissa_});
    const U8 codes = bits - min(bits, differences_(mantissas));
    // Zeros are not rare.
    if (normal_codes_.has_others(codes) && is_rare(sizes)) [[unlikely]]
      return false;
    store_line(dst, in_order(min(codes, largest_code_) | (grouped_signs(x) & sign_)), bypasses_cache_);
    return true;
  }

 private:
  SIMD_INLINE bool is_rare(const U16x2& sizes) const {
    // Zero, less one, is above all.
    const U16 rare = subtract_to_zero(max(sizes.lo, sizes.hi), largest_finite_) |
                     subtract_to_zero(below_normal_, min(sizes.lo - 1, sizes.hi - 1));
    return any_greater(as<I16>(rare), I16{});
  }

  bool bypasses_cache_;
  NormalCodes<to> normal_codes_;
  Differences differences_;
  U16 base_, below_normal_;
  U16 magnitude_ = constant(std::uint16_t{0x7fff});
  U16 largest_finite_ = constant(std::uint16_t{0x7f7f});
  U16 mantissa_ = constant(std::uint16_t{0x7f});
  U8 sign_ = constant(std::uint8_t{0x80});
  U8 largest_code_ = constant(static_cast<std::uint8_t>(format.largest_code()));
};

template <DType to>
void encode_mantissas(const std::byte* numbers, std::size_t count, const CodeRule& rule, const MantissaTable* tables,
                      const RunOperand* operands, unsigned run_shift, std::byte* codes, const Ahead& ahead) {
  static_assert(run_step % kBlock == 0);
  constexpr int most_rare = 8;
  int rare = 0;
  const EncodeRunsFn encode_any = find_encode_runs(rule);
  const std::size_t size = run_shift == shift_of_all ? count : std::size_t{1} << run_shift;
  for (std::size_t first = 0; first < count; first += size) {
    const MantissaEncoder<to> encoder(tables[first >> run_shift], rule.bypasses_cache);
    const std::size_t end = size < count - first ? first + size : count;
    for (std::size_t step = first; step < end; step += run_step) {
      const std::byte* const from = numbers + step * 2;
      prefetch_block(numbers, step * 2, run_step * 2, ahead);
      bool is_done = true;
#pragma GCC unroll 4
      for (std::size_t at = 0; at < run_step; at += kBlock) {
        is_done = is_done && encoder.store_block(codes + step + at, load_u16x2(from + at * 2));
      }
      if (!is_done) [[unlikely]] {
        // The rest of the run at once, where such numbers are not rare.
        const std::size_t left = ++rare > most_rare ? end - step : run_step;
        encode_any(from, left, rule, operands + (step >> run_shift), shift_of_all, codes + step,
                   left > run_step ? ahead.after(step * 2) : Ahead{});
        step += left - run_step;
      }
    }
  }
}

}  // namespace

EncodeMantissasFn find_encode_mantissas(const CodeRule& rule) noexcept {
  if constexpr (TENSORCAST_HAS_BYTE_LOOKUP) {
    const bool is_taken = rule.numbers == DType::bfloat16 && rule.zeros == Zeros::sign_kept && rule.ties == Ties::even;
    if (is_taken && rule.element == DType::float8_e4m3fn) return encode_mantissas<DType::float8_e4m3fn>;
    if (is_taken && rule.element == DType::float8_e5m2) return encode_mantissas<DType::float8_e5m2>;
  }
  return nullptr;
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
