// SPDX-License-Identifier: Apache-2.0
// Quantization: codes of four bits of bfloat16 numbers, from tables of where the codes of a scale begin.
#include "dtype/platform.hpp"

#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/prefetch_block.hpp"
#include "kernels/simd/quotients.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_TARGET_LEVEL >= 2

namespace {

constexpr std::size_t lanes16 = kRegisterBytes / 2;
static_assert(StepTables::cells == lanes16 && run_step % (2 * lanes16) == 0);

// Codes of numbers, in the lanes of a register: runs of 16 are half of it.
template <unsigned run_shift>
class StepEncoder {
  static constexpr bool has_two = run_shift == 4;

 public:
  StepEncoder(const StepTables& tables, Zeros zeros)
      : tables_(tables),
        largest_positive_(
            keep_in_register(splat(static_cast<std::uint16_t>(zeros == Zeros::sign_kept ? 0x7fff : 0x8000)))) {}

  SIMD_INLINE U16 codes(const std::byte* numbers, const std::uint8_t* scales) const {
    const U16 x = load<U16>(numbers);
    const std::uint8_t* const steps = reinterpret_cast<const std::uint8_t*>(tables_.steps);
    U16 base = pairs_of(tables_.bases[scales[0]]);
    if constexpr (has_two) base = pairs_with_upper(base, tables_.bases[scales[1]]);
    const U16 place = min(subtract_to_zero(x & magnitude_, base), last_place_);
    const U16 cell = place >> StepTables::cell_bits;
    U16 step = words_at(steps + tables_.offsets[scales[0]], cell);
    if constexpr (has_two) step = words_with_upper(step, steps + tables_.offsets[scales[1]], cell);
    return added_where_above((place + step) >> StepTables::cell_bits, x, largest_positive_, sign_);
  }

 private:
  const StepTables& tables_;
  U16 largest_positive_;
  U16 magnitude_ = keep_in_register(splat(std::uint16_t{0x7fff}));
  U16 last_place_ =
      keep_in_register(splat(static_cast<std::uint16_t>((StepTables::cells << StepTables::cell_bits) - 1)));
  U16 sign_ = keep_in_register(splat(std::uint16_t{8}));
};

template <unsigned run_shift>
void encode_runs_by_steps(const std::byte* numbers, std::size_t count, const StepTables& tables,
                          const std::uint8_t* scales, Zeros zeros, std::byte* codes, const Ahead& ahead) {
  constexpr std::size_t step = 2 * lanes16, runs = lanes16 >> run_shift;
  const StepEncoder<run_shift> encoder(tables, zeros);
  for (std::size_t at = 0; at < count; at += step, scales += 2 * runs) {
    const std::byte* const from = numbers + 2 * at;
    prefetch_block(numbers, 2 * at, 2 * step, ahead);
    store(codes + at / 2, pack_u4({encoder.codes(from, scales), encoder.codes(from + kRegisterBytes, scales + runs)}));
  }
}

// Of one scale, counted from -8: the largest are 16, which is no code.
class IntegerStepEncoder {
  using Tables = IntegerStepTables;

 public:
  IntegerStepEncoder(const Tables& tables, float scale)
      : steps_(tables.steps[bits(scale) >> 16 & (Tables::mantissas - 1)]),
        base_(splat(static_cast<std::uint16_t>((field(scale) - 1) << 7))) {}

  // Reports whether a scale has a table.
  static bool takes(const RunOperand& operand) {
    constexpr std::uint32_t least_field = 27, most_field = 227, below_bfloat16 = 0xffff;
    const std::uint32_t exponent = field(operand.factor);  // of negative ones, too large
    return (bits(operand.factor) & below_bfloat16) == 0 && exponent >= least_field && exponent <= most_field &&
           operand.zero == 0.0f;
  }

  SIMD_INLINE U16 codes(U16 x) const {
    const U16 place = min(subtract_to_zero(x & magnitude_, base_), last_place_);
    const U16 size = (steps_(place >> Tables::cell_bits) + place) >> Tables::cell_bits;
    return signed_from(zero_, size, x);
  }

 private:
  static std::uint32_t bits(float x) { return __builtin_bit_cast(std::uint32_t, x); }
  static std::uint32_t field(float x) { return bits(x) >> 23; }

  WordTable64 steps_;
  U16 base_;
  U16 magnitude_ = constant(std::uint16_t{0x7fff});
  U16 last_place_ = constant(static_cast<std::uint16_t>((Tables::cells << Tables::cell_bits) - 1));
  U16 zero_ = constant(std::uint16_t{8});
};

}  // namespace

void encode_integer_steps(const std::byte* numbers, std::size_t count, const CodeRule& rule,
                          const IntegerStepTables& tables, const RunOperand* operands, unsigned run_shift,
                          std::byte* codes, const Ahead& ahead) {
  constexpr std::size_t step = 2 * lanes16;
  const EncodeRunsFn encode_any = find_encode_runs(rule);
  const U8 most = constant(std::uint8_t{15}), flip = splat(static_cast<std::uint8_t>(rule.is_offset ? 0 : 8));
  const std::size_t run = run_shift == shift_of_all ? count : std::size_t{1} << run_shift;
  const std::size_t size = run < step ? step : run;
  for (std::size_t first = 0; first < count; first += size) {
    const std::size_t n = size < count - first ? size : count - first;
    const RunOperand &lower = operands[first >> run_shift], &upper = operands[(first + lanes16) >> run_shift];
    if (!IntegerStepEncoder::takes(lower) || !IntegerStepEncoder::takes(upper)) [[unlikely]] {
      encode_any(numbers + 2 * first, n, rule, &lower, run_shift, codes + first / 2, ahead.after(2 * first));
      continue;
    }
    const IntegerStepEncoder lo(tables, lower.factor), hi(tables, upper.factor);
    for (std::size_t at = first; at < first + n; at += step) {
      const std::byte* const from = numbers + 2 * at;
      prefetch_block(numbers, 2 * at, 2 * step, ahead);
      const U8 counted = grouped_bytes({lo.codes(load<U16>(from)), hi.codes(load<U16>(from + kRegisterBytes))});
      store(codes + at / 2, pack_grouped_u4(min(counted, most) ^ flip));
    }
  }
}

void encode_steps(const std::byte* numbers, std::size_t count, const StepTables& tables, const std::uint8_t* scales,
                  unsigned run_shift, Zeros zeros, std::byte* codes, const Ahead& ahead) {
  if (run_shift == 4) return encode_runs_by_steps<4>(numbers, count, tables, scales, zeros, codes, ahead);
  encode_runs_by_steps<5>(numbers, count, tables, scales, zeros, codes, ahead);
}

#else

void encode_integer_steps(const std::byte*, std::size_t, const CodeRule&, const IntegerStepTables&, const RunOperand*,
                          unsigned, std::byte*, const Ahead&) {}
void encode_steps(const std::byte*, std::size_t, const StepTables&, const std::uint8_t*, unsigned, Zeros, std::byte*,
                  const Ahead&) {}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
