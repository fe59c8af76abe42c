// SPDX-License-Identifier: Apache-2.0
// ggml's blocks of 32 numbers, as many at once as a register has lanes, each step as ggml rounds it.
#include "kernels/encode/blocks.hpp"

#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/largest_lanes.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

constexpr std::size_t run = 32;  // numbers of a block
constexpr std::size_t numbers_of_step = run * kLanes;

using Lanes = float[kLanes];

SIMD_INLINE F32 load_at(const float* numbers) { return load<F32>(reinterpret_cast<const std::byte*>(numbers)); }
SIMD_INLINE void put(F32 x, Lanes& lanes) { store(reinterpret_cast<std::byte*>(lanes), x); }

// Integers in the order of the numbers, NaN at both ends; the same operation turns them back.
SIMD_INLINE I32 ordered(I32 bits) { return bits ^ ((bits >> 31) & INT32_MAX); }

// Of each block.
struct Range {
  F32 low, high;
};
SIMD_INLINE Range range_of(const float* numbers) {
  // The greatest of each block; with all bits flipped, the least.
  const auto greatest = [&](I32 flip) SIMD_INLINE_LAMBDA {
    const I32 found = max_of_each(0, [&](std::size_t block) SIMD_INLINE_LAMBDA {
      I32 most = splat(INT32_MIN);
      for (std::size_t i = 0; i < run; i += kLanes) {
        most = max(most, ordered(as<I32>(load_at(numbers + block * run + i))) ^ flip);
      }
      return most;
    });
    return as<F32>(ordered(found ^ flip));
  };
  return {greatest(splat(-1)), greatest(I32{})};
}

SIMD_INLINE F32 magnitude(F32 x) { return as<F32>(as<I32>(x) & INT32_MAX); }

// NaN is neither.
SIMD_INLINE bool are_small(F32 x) { return all_of(less(magnitude(x), splat(0x1p60F))); }
SIMD_INLINE bool are_ordinary(F32 x) { return are_small(x) && all_of(less(splat(0x1p-60F), magnitude(x))); }

// The first of each block's numbers whose magnitude is largest.
SIMD_INLINE F32 first_largest(const float* numbers, const Range& range) {
  const Mask32 is_high = less(-range.low, range.high), is_low = less(range.high, -range.low);
  F32 found = select(is_high, range.high, range.low);
  if (all_of(mask_or(is_high, is_low))) [[likely]]
    return found;
  Lanes lanes;
  put(found, lanes);
  for (std::size_t block = 0; block < kLanes; ++block) {
    const float* x = numbers + block * run;
    const float low = lanes[block];
    for (std::size_t i = 0; i < run && low < 0; ++i) {
      if (x[i] != low && x[i] != -low) continue;
      lanes[block] = x[i];
      break;
    }
  }
  return load_at(lanes);
}

// How a block's numbers become codes: (x - low) * inverse + 0.5, cut, where low is 0 for half of the formats.
struct Scales {
  F32 scale;
  F32 low;
  Lanes inverses, lows;
};

// The codes of all blocks, one a byte.
template <class Code>
SIMD_INLINE void put_codes(const float* numbers, const Scales& scales, std::uint8_t* codes, const Code& code) {
  for (std::size_t at = 0; at < numbers_of_step; at += kBlock) {
    const auto unit = [&](std::size_t i) SIMD_INLINE_LAMBDA {
      const std::size_t first = at + i * kLanes, block = first / run;
      return code(load_at(numbers + first), splat(scales.inverses[block]), splat(scales.lows[block]));
    };
    store(reinterpret_cast<std::byte*>(codes + at), pack_bytes({unit(0), unit(1), unit(2), unit(3)}));
  }
}

SIMD_INLINE std::uint64_t eight_at(const std::uint8_t* codes) {
  std::uint64_t eight;
  __builtin_memcpy(&eight, codes, sizeof(eight));
  return eight;
}

// Low nibbles are the first half of the codes, high nibbles the second.
SIMD_INLINE void put_nibbles(const std::uint8_t* codes, std::byte* bytes) {
  constexpr std::uint64_t low = 0x0f0f0f0f0f0f0f0f;
  for (std::size_t i = 0; i < run / 2; i += 8) {
    const std::uint64_t both = (eight_at(codes + i) & low) | (eight_at(codes + i + run / 2) & low) << 4;
    __builtin_memcpy(bytes + i, &both, sizeof(both));
  }
}

SIMD_INLINE void put_fifth_bits(const std::uint8_t* codes, std::byte* bytes) {
  for (std::size_t i = 0; i < run / 8; ++i) {
    // The product has bit 8 k of the factor at 56 + k.
    const std::uint64_t bits = (eight_at(codes + i * 8) >> 4) & 0x0101010101010101;
    bytes[i] = static_cast<std::byte>(bits * 0x0102040810204080 >> 56);
  }
}

SIMD_INLINE bool set_scales(F32 scale, F32 low, Scales& scales) {
  if (!are_ordinary(scale)) return false;
  scales.scale = scale, scales.low = low;
  put(1.0F / scale, scales.inverses);
  put(low, scales.lows);
  return true;
}

struct Q8_0 {
  static constexpr std::size_t bytes = 34;
  static constexpr bool has_low = false;

  SIMD_INLINE static bool make(const float* numbers, Scales& scales, std::uint8_t* codes) {
    const F32 most = as<F32>(max_of_each(0, [&](std::size_t block) SIMD_INLINE_LAMBDA {
      I32 found = {};
      for (std::size_t i = 0; i < run; i += kLanes) {
        found = max(found, as<I32>(load_at(numbers + block * run + i)) & INT32_MAX);
      }
      return found;
    }));
    if (!set_scales(most / 127.0F, F32{}, scales)) return false;
    // Half away from zero: the fraction is exact.
    put_codes(numbers, scales, codes, [](F32 x, F32 inverse, F32) SIMD_INLINE_LAMBDA {
      const F32 product = x * inverse, size = magnitude(product);
      const I32 whole = truncate(size);
      const I32 rounded = count_where(whole, greater_equal(size - to_f32<true>(whole), splat(0.5F)));
      return negated_where(as<I32>(product) >> 31, rounded);
    });
    return true;
  }
  SIMD_INLINE static void finish(const std::uint8_t* codes, std::byte* dst) { __builtin_memcpy(dst, codes, run); }
};

template <int levels>
struct Symmetric {
  static constexpr std::size_t bytes = levels == 16 ? 18 : 22;
  static constexpr bool has_low = false;

  SIMD_INLINE static bool make(const float* numbers, Scales& scales, std::uint8_t* codes) {
    const Range range = range_of(numbers);
    if (!are_small(range.low) || !are_small(range.high)) return false;
    const F32 largest = first_largest(numbers, range);
    if (!set_scales(largest / static_cast<float>(-levels / 2), F32{}, scales)) return false;
    put_codes(numbers, scales, codes, [](F32 x, F32 inverse, F32) SIMD_INLINE_LAMBDA {
      const F32 moved = x * inverse + (static_cast<float>(levels / 2) + 0.5F);
      return min(truncate(moved), splat(levels - 1));
    });
    return true;
  }
  SIMD_INLINE static void finish(const std::uint8_t* codes, std::byte* dst) {
    if (levels == 32) put_fifth_bits(codes, dst), dst += 4;
    put_nibbles(codes, dst);
  }
};

template <int levels>
struct Offset {
  static constexpr std::size_t bytes = levels == 16 ? 20 : 24;
  static constexpr bool has_low = true;

  SIMD_INLINE static bool make(const float* numbers, Scales& scales, std::uint8_t* codes) {
    const Range range = range_of(numbers);
    // The sign of a least zero is that of the first.
    if (!are_ordinary(range.low) || !are_ordinary(range.high)) return false;
    if (!set_scales((range.high - range.low) / static_cast<float>(levels - 1), range.low, scales)) return false;
    put_codes(numbers, scales, codes, [](F32 x, F32 inverse, F32 low) SIMD_INLINE_LAMBDA {
      return min(truncate((x - low) * inverse + 0.5F), splat(levels - 1));
    });
    return true;
  }
  SIMD_INLINE static void finish(const std::uint8_t* codes, std::byte* dst) { Symmetric<levels>::finish(codes, dst); }
};

template <class Format>
SIMD_INLINE bool encode_step(const float* numbers, std::byte* dst) {
  Scales scales;
  std::uint8_t codes[numbers_of_step];
  if (!Format::make(numbers, scales, codes)) return false;
  std::byte halves[kLanes * 2], lows[kLanes * 2];
  store(halves, float16_codes(scales.scale));
  store(lows, float16_codes(scales.low));
  for (std::size_t block = 0; block < kLanes; ++block, dst += Format::bytes) {
    __builtin_memcpy(dst, halves + block * 2, 2);
    if (Format::has_low) __builtin_memcpy(dst + 2, lows + block * 2, 2);
    Format::finish(codes + block * run, dst + (Format::has_low ? 4 : 2));
  }
  return true;
}

template <class Format>
std::size_t encode_blocks(const float* numbers, std::size_t blocks, std::byte* dst) {
  return in_default_environment([&] {
    std::size_t done = 0;
    while (done + kLanes <= blocks && encode_step<Format>(numbers + done * run, dst + done * Format::bytes)) {
      done += kLanes;
    }
    return done;
  });
}

}  // namespace

EncodeGgufFn find_encode_gguf(GgufBlock block) noexcept {
  switch (block) {
    case GgufBlock::q8_0:
      return encode_blocks<Q8_0>;
    case GgufBlock::q4_0:
      return encode_blocks<Symmetric<16>>;
    case GgufBlock::q4_1:
      return encode_blocks<Offset<16>>;
    case GgufBlock::q5_0:
      return encode_blocks<Symmetric<32>>;
    case GgufBlock::q5_1:
      return encode_blocks<Offset<32>>;
    default:
      return nullptr;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
