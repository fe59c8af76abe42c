// Quantization: float4 codes of bfloat16 numbers, from tables of where the codes of a scale begin.
#include "dtype/platform.hpp"
// SPDX-License-Identifier: Apache-2.0
#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/prefetch_block.hpp"
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
  static constexpr __mmask32 second = 0xffff0000;

 public:
  StepEncoder(const StepTables& tables, Zeros zeros)
      : tables_(tables),
        largest_positive_(
            keep_in_register(splat(static_cast<std::uint16_t>(zeros == Zeros::sign_kept ? 0x7fff : 0x8000)))) {}

  SIMD_INLINE U16 codes(const std::byte* numbers, const std::uint8_t* scales) const {
    const U16 x = load<U16>(numbers);
    const std::uint8_t* const steps = reinterpret_cast<const std::uint8_t*>(tables_.steps);
    __m512i base = _mm512_set1_epi32(static_cast<int>(tables_.bases[scales[0]]));
    if constexpr (has_two) {
      base = _mm512_mask_set1_epi32(base, static_cast<__mmask16>(0xff00), static_cast<int>(tables_.bases[scales[1]]));
    }
    const U16 place = min(subtract_to_zero(x & magnitude_, (U16)base), last_place_);
    const __m512i cell = (__m512i)(place >> StepTables::cell_bits);
    __m512i step = _mm512_permutexvar_epi16(cell, _mm512_loadu_si512(steps + tables_.offsets[scales[0]]));
    if constexpr (has_two) {
      step = _mm512_mask_permutexvar_epi16(step, second, cell, _mm512_loadu_si512(steps + tables_.offsets[scales[1]]));
    }
    const __m512i code = (__m512i)((place + (U16)step) >> StepTables::cell_bits);
    const __mmask32 is_negative = _mm512_cmpgt_epu16_mask((__m512i)x, (__m512i)largest_positive_);
    return (U16)_mm512_mask_add_epi16(code, is_negative, code, (__m512i)sign_);
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

}  // namespace

void encode_steps(const std::byte* numbers, std::size_t count, const StepTables& tables, const std::uint8_t* scales,
                  unsigned run_shift, Zeros zeros, std::byte* codes, const Ahead& ahead) {
  if (run_shift == 4) return encode_runs_by_steps<4>(numbers, count, tables, scales, zeros, codes, ahead);
  encode_runs_by_steps<5>(numbers, count, tables, scales, zeros, codes, ahead);
}

#else

void encode_steps(const std::byte*, std::size_t, const StepTables&, const std::uint8_t*, unsigned, Zeros, std::byte*,
                  const Ahead&) {}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
