// float4_e2m1fn of scaled integers of 16 bits: no products, but the greatest magnitudes below each code, found
// beforehand.
#pragma once

#include <algorithm>

#include "kernels/multiply.hpp"
#include "kernels/wide/blocks.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using codec::Policy;

// The seven steps are sought by halves. Or, where there are tables of 32 words: the magnitude times a constant, cut
// off, is the number of a cell that has one step at most, and for that a code before it and one behind it. The sign is
// the integer's and the scale's; zero has one too.
template <DType from>
class Float4BySteps {
 public:
  Float4BySteps(const Policy&, const Factor& factor)
      : sign_(splat(static_cast<std::uint8_t>(factor.scale < 0.0 ? 0x80 : 0))) {
    search_.prepare(factor.float4_steps);
  }

  SIMD_INLINE bool store_block(const std::byte* src, std::byte* dst) const {
    const Words x = {load<U16>(src), load<U16>(src + kRegisterBytes)};
    U8 signs = sign_;
    if constexpr (is_signed_type<from>) signs ^= pack_high_bytes(x) & 0x80;
    const Words codes = {search_.code(magnitude(x.lo)), search_.code(magnitude(x.hi))};
    store(dst, pack_nibbles(pack_low_bytes(codes) | as<U8>(as<U16>(signs) >> 4)));
    return true;
  }

 private:
  SIMD_INLINE static U16 magnitude(U16 x) { return is_signed_type<from> ? min(x, 0 - x) : x; }  // 2^15 is its own

#if TENSORCAST_TARGET_LEVEL >= 2
  class Search {
   public:
    void prepare(const std::uint16_t (&steps)[7]) {
      constexpr int last_cell = 31;
      const std::uint32_t last = std::min(steps[6] + 1U, 65535U);
      const auto factor = static_cast<std::uint16_t>(last <= last_cell ? 65535 : last_cell * 65536 / last);
      alignas(64) std::uint16_t cells[32], step_of[32] = {};
      for (int i = 0; i < 32; ++i) cells[i] = static_cast<std::uint16_t>(i);
      const I16 cell = load<I16>(reinterpret_cast<const std::byte*>(cells));
      for (const std::uint16_t step : steps) {
        if (step == 65535) continue;  // nothing is greater
        const auto at = static_cast<std::int16_t>((step + 1U) * factor >> 16);
        step_of[at] = step;
        before_ = count_greater(before_, cell, splat(at));
        behind_ = count_greater(behind_, cell, splat(static_cast<std::int16_t>(at - 1)));
      }
      // Where there is none, one is as good as another.
      step_of_ = load<U16>(reinterpret_cast<const std::byte*>(step_of));
      last_ = splat(static_cast<std::uint16_t>(last));
      factor_ = splat(factor);
    }
    SIMD_INLINE U16 code(U16 magnitude) const {
      const U16 limited = min(magnitude, last_);
      const U16 cell = multiply_high(limited, factor_);
      return look_up_by(limited, look_up(step_of_, cell), before_, behind_, cell);
    }

   private:
    U16 last_, factor_, step_of_, before_ = {}, behind_ = {};
  };
#else
  // Magnitudes and steps have their first bit flipped, so that unsigned numbers compare as signed ones.
  class Search {
    static constexpr std::uint16_t bias = 0x8000;

   public:
    void prepare(const std::uint16_t (&steps)[7]) {
      for (int i = 0; i < 7; ++i) steps_[i] = as<I16>(splat(static_cast<std::uint16_t>(steps[i] ^ bias)));
    }
    SIMD_INLINE U16 code(U16 magnitude) const {
      const I16 biased = as<I16>(magnitude ^ bias);
      const I16 upper = biased > steps_[3];
      const I16 middle = upper ? steps_[5] : steps_[1];
      const I16 last = biased > middle ? (upper ? steps_[6] : steps_[2]) : (upper ? steps_[4] : steps_[0]);
      const U16 half = count_greater(U16{}, biased, steps_[3]);
      const U16 quarter = count_greater(half + half, biased, middle);
      return count_greater(quarter + quarter, biased, last);
    }

   private:
    I16 steps_[7];
  };
#endif

  Search search_;
  U8 sign_;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
