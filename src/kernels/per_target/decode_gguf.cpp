// SPDX-License-Identifier: Apache-2.0
// ggml's blocks as bfloat16, in one pass: the codes of a run are few, so that all its results are made at once, in the
// order of operations of unpack_gguf.cpp and rounded once, and codes look them up.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/per_target/functions.hpp"
#include "kernels/per_target/gguf_blocks.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/simd.hpp"
#include "kernels/simd/store_line.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_REGISTER_BYTES == 64

namespace {

// The magnitude of a scale of float16, by which NaN is found.
SIMD_INLINE unsigned magnitude_at(Bytes b) { return word_at<std::uint16_t>(b) & 0x7fffu; }
constexpr unsigned infinity = 0x7c00;

SIMD_INLINE const std::byte* at(Bytes b) { return reinterpret_cast<const std::byte*>(b); }
SIMD_INLINE F32 scale_at(Bytes b) { return splat_float16(at(b)); }

// Stores 32 results from place `i` of a block on.
SIMD_INLINE void put(std::byte* dst, int i, U16 results, bool bypasses_cache) {
  store_line(dst + 2 * i, results, bypasses_cache);
}

// Lanes of which each `each` are one number: first, first + step, ...
template <class V>
struct Ramp {
  alignas(64) std::remove_cvref_t<decltype(V{}[0])> lanes[sizeof(V) / sizeof(V{}[0])];

  constexpr Ramp(int first, int each, int step = 1) {
    for (int i = 0; auto& lane : lanes)
      lane = static_cast<std::remove_cvref_t<decltype(lane)>>(first + i++ / each * step);
  }
  [[nodiscard]] SIMD_INLINE V get() const { return load<V>(reinterpret_cast<const std::byte*>(lanes)); }
};
// The numbers of codes: integers from `first` on, again after every `period`, or a table's.
struct Numbers {
  alignas(64) float lanes[16];

  constexpr Numbers(int first, int period) {
    for (int i = 0; float& lane : lanes) lane = static_cast<float>(first + i++ % period);
  }
  constexpr explicit Numbers(const std::int8_t* numbers) {
    for (float& lane : lanes) lane = *numbers++;
  }
  [[nodiscard]] SIMD_INLINE F32 get() const { return load<F32>(reinterpret_cast<const std::byte*>(lanes)); }
};

template <GgufBlock block>
struct Format;

// --- Blocks of 32 elements with one scale

template <int first, int period = 16>
inline constexpr Numbers counted{first, period};
inline constexpr Numbers of_iq4{iq4_numbers};

template <const Numbers& numbers, bool has_bias>
struct Nibbles {
  static constexpr int elements = 32, codes = has_bias ? 4 : 2, bytes = codes + 16;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t*, bool bypasses_cache) {
    F32 x = numbers.get() * scale_at(b);
    if constexpr (has_bias) x += scale_at(b + 2);
    put(dst, 0, WordTable32::of_upper(to_upper_bfloat16(x))(load_nibbles_as_u16(at(b + codes))), bypasses_cache);
    return has_bias ? std::max(magnitude_at(b), magnitude_at(b + 2)) : magnitude_at(b);
  }
};

template <>
struct Format<GgufBlock::q4_0> : Nibbles<counted<-8>, false> {};
template <>
struct Format<GgufBlock::q4_1> : Nibbles<counted<0>, true> {};
template <>
struct Format<GgufBlock::iq4_nl> : Nibbles<of_iq4, false> {};

template <int zero, bool has_bias>
struct FiveBits {
  static constexpr int elements = 32, fifths = has_bias ? 4 : 2, codes = fifths + 4, bytes = codes + 16;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t*, bool bypasses_cache) {
    const F32 scale = scale_at(b);
    F32 low = counted<-zero>.get() * scale, high = counted<16 - zero>.get() * scale;
    if constexpr (has_bias) {
      const F32 bias = scale_at(b + 2);
      low += bias;
      high += bias;
    }
    const auto table = WordTable32::of_uppers(to_upper_bfloat16(low), to_upper_bfloat16(high));
    put(dst, 0, table(with_bit_where(load_nibbles_as_u16(at(b + codes)) & 15, word_at<std::uint32_t>(b + fifths), 16)),
        bypasses_cache);
    return has_bias ? std::max(magnitude_at(b), magnitude_at(b + 2)) : magnitude_at(b);
  }
};

template <>
struct Format<GgufBlock::q5_0> : FiveBits<16, false> {};
template <>
struct Format<GgufBlock::q5_1> : FiveBits<0, true> {};

template <>
struct Format<GgufBlock::q8_0> {
  static constexpr int elements = 32, bytes = 34;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t*, bool bypasses_cache) {
    const F32 scale = scale_at(b);
    const auto product = [&](int i) SIMD_INLINE_LAMBDA {
      return as<I32>(to_upper_bfloat16(to_f32<true>(load_int8(at(b + 2 + i))) * scale));
    };
    put(dst, 0, pack_high_u16(product(0), product(16)), bypasses_cache);
    return magnitude_at(b);
  }
};

// --- Blocks of 256 elements

// A float for each run, from where lanes are read one by one.
struct Parameters {
  alignas(64) float each[16];

  SIMD_INLINE explicit Parameters(F32 all) { store(reinterpret_cast<std::byte*>(each), all); }
  SIMD_INLINE F32 operator[](int i) const { return splat(each[i]); }
};

SIMD_INLINE F32 floats_of_bytes(Words2 bytes) { return to_f32<true>(widen_bytes(bytes)); }

// Scales of Q4_K and Q5_K, then minima as what is added.
SIMD_INLINE Parameters scales_and_biases(Bytes b) {
  constexpr std::int32_t sign = INT32_MIN;
  const I32 signs = {0, 0, 0, 0, 0, 0, 0, 0, sign, sign, sign, sign, sign, sign, sign, sign};
  const F32 units = select(0xff00, scale_at(b + 2), scale_at(b));
  return Parameters(as<F32>(as<I32>(floats_of_bytes(scales_and_minima(b + 4)) * units) ^ signs));
}

// Shifts bits from place `from` to place `to`.
template <int from, int to>
SIMD_INLINE U16 moved(U16 x) {
  if constexpr (from < to) return x << (to - from);
  return x >> (from - to);
}

// Calls body(std::integral_constant<int, i>) for each i below n.
template <int n, class Body>
SIMD_INLINE void unrolled(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>)
      SIMD_INLINE_LAMBDA { (body(std::integral_constant<int, i>{}), ...); }(std::make_integer_sequence<int, n>{});
}

template <>
struct Format<GgufBlock::q4_k> {
  static constexpr int elements = 256, bytes = 144;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t*, bool bypasses_cache) {
    const Parameters by = scales_and_biases(b);
    const auto table = [&](int run) SIMD_INLINE_LAMBDA {
      return WordTable32::of_upper(to_upper_bfloat16(counted<0>.get() * by[run] + by[8 + run]));
    };
    unrolled<4>([&](auto part) SIMD_INLINE_LAMBDA {
      const U16 both = load_bytes_as_u16(at(b + 16 + 32 * part));
      put(dst, 64 * part, table(2 * part)(both), bypasses_cache);
      put(dst, 64 * part + 32, table(2 * part + 1)(both >> 4), bypasses_cache);
    });
    return std::max(magnitude_at(b), magnitude_at(b + 2));
  }
};

template <>
struct Format<GgufBlock::q5_k> {
  static constexpr int elements = 256, bytes = 176;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t*, bool bypasses_cache) {
    const Parameters by = scales_and_biases(b);
    const U16 fifths = load_bytes_as_u16(at(b + 16)), four_bits = splat(std::uint16_t{15});
    unrolled<8>([&](auto run) SIMD_INLINE_LAMBDA {
      const auto results = [&](const Numbers& numbers)
                               SIMD_INLINE_LAMBDA { return to_upper_bfloat16(numbers.get() * by[run] + by[8 + run]); };
      const auto table = WordTable32::of_uppers(results(counted<0>), results(counted<16>));
      const U16 both = load_bytes_as_u16(at(b + 48 + 32 * (run / 2)));
      put(dst, 32 * run, table(select_bits(four_bits, moved<4 * (run % 2), 0>(both), moved<run, 4>(fifths))),
          bypasses_cache);
    });
    return std::max(magnitude_at(b), magnitude_at(b + 2));
  }
};

// The parameters of as many runs as have `codes` lanes each: the first ones, the next ones, ...
template <int codes>
SIMD_INLINE F32 of_runs(F32 parameters, int which) {
  static constexpr Ramp<I32> runs[] = {{0, codes},          {16 / codes, codes}, {32 / codes, codes},
                                       {48 / codes, codes}, {64 / codes, codes}, {80 / codes, codes},
                                       {96 / codes, codes}, {112 / codes, codes}};
  return permute(parameters, runs[which].get());
}

template <>
struct Format<GgufBlock::q2_k> {
  static constexpr int elements = 256, bytes = 84;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t*, bool bypasses_cache) {
    const I32 both = widen_bytes(word_at<Words2>(b));
    const F32 scales = to_f32<true>(both & 15) * scale_at(b + 80);
    const F32 biases = -(to_f32<true>(both >> 4) * scale_at(b + 82));
    const auto results = [&](int which) SIMD_INLINE_LAMBDA {
      return to_upper_bfloat16(counted<0, 4>.get() * of_runs<4>(scales, which) + of_runs<4>(biases, which));
    };
    static constexpr Ramp<U16> of_run[] = {{0, 16, 4}, {8, 16, 4}, {16, 16, 4}, {24, 16, 4}};
    const U16 two_bits = splat(std::uint16_t{3});
    unrolled<2>([&](auto half) SIMD_INLINE_LAMBDA {
      const auto table = WordTable32::of_uppers(results(2 * half), results(2 * half + 1));
      const U16 bits = load_bytes_as_u16(at(b + 16 + 32 * half));
      unrolled<4>([&](auto part) SIMD_INLINE_LAMBDA {
        put(dst, 128 * half + 32 * part, table(select_bits(two_bits, bits >> (2 * part), of_run[part].get())),
            bypasses_cache);
      });
    });
    return std::max(magnitude_at(b + 80), magnitude_at(b + 82));
  }
};

template <>
struct Format<GgufBlock::q3_k> {
  static constexpr int elements = 256, bytes = 110;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t*, bool bypasses_cache) {
    const F32 scales = to_f32<true>(widen_bytes(q3_k_scales(b + 96)) - 32) * scale_at(b + 108);
    const auto results = [&](int which) SIMD_INLINE_LAMBDA {
      return to_upper_bfloat16(counted<-4, 8>.get() * of_runs<8>(scales, which));
    };
    static constexpr Ramp<U16> of_run[] = {{0, 16, 8}, {16, 16, 8}};
    const U16 two_bits = splat(std::uint16_t{3}), four = splat(std::uint16_t{4});
    const U16 thirds = load_bytes_as_u16(at(b));
    unrolled<4>([&](auto quarter) SIMD_INLINE_LAMBDA {
      const auto table = WordTable32::of_uppers(results(2 * quarter), results(2 * quarter + 1));
      const U16 bits = load_bytes_as_u16(at(b + 32 + 32 * (quarter / 2)));
      unrolled<2>([&](auto i) SIMD_INLINE_LAMBDA {
        constexpr int part = 2 * quarter + i;
        const U16 third = select_bits(four, moved<part, 2>(thirds), of_run[i].get());
        put(dst, 32 * part, table(select_bits(two_bits, bits >> (2 * (part % 4)), third)), bypasses_cache);
      });
    });
    return magnitude_at(b + 108);
  }
};

template <>
struct Format<GgufBlock::iq4_xs> {
  static constexpr int elements = 256, bytes = 136;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t*, bool bypasses_cache) {
    const Parameters by(scale_at(b) * to_f32<true>(widen_bytes(Words2{iq4_xs_scales(b + 2), 0}) - 32));
    unrolled<8>([&](auto run) SIMD_INLINE_LAMBDA {
      const auto table = WordTable32::of_upper(to_upper_bfloat16(of_iq4.get() * by[run]));
      put(dst, 32 * run, table(load_nibbles_as_u16(at(b + 8 + 16 * run))), bypasses_cache);
    });
    return magnitude_at(b);
  }
};

// --- Scales of a byte, of which each has a table

template <>
struct Format<GgufBlock::mxfp4> {
  static constexpr int elements = 32, bytes = 17;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t* tables, bool bypasses_cache) {
    const std::uint16_t* const table = tables + 16 * b[0];
    put(dst, 0, WordTable32::of_halves(table, table)(load_nibbles_as_u16(at(b + 1))), bypasses_cache);
    return 0;
  }
};

template <>
struct Format<GgufBlock::nvfp4> {
  static constexpr int elements = 64, bytes = 36;

  SIMD_INLINE static unsigned decode(Bytes b, std::byte* dst, const std::uint16_t* tables, bool bypasses_cache) {
    const U16 four_bits = splat(std::uint16_t{15});
    for (int i = 0; i < 2; ++i) {
      const auto table = WordTable32::of_halves(tables + 16 * b[2 * i], tables + 16 * b[2 * i + 1]);
      const U16 codes = load_runs_of_nibbles_as_u16(at(b + 4 + 16 * i));
      put(dst, 32 * i, table(select_bits(four_bits, codes, Ramp<U16>(0, 16, 16).get())), bypasses_cache);
    }
    return 0;
  }
};

template <class Format>
[[gnu::noinline]] bool decode(const std::byte* src, std::size_t blocks, std::byte* dst, const std::uint16_t* tables,
                              bool bypasses_cache) {
  const auto* const bytes = reinterpret_cast<Bytes>(src);
  unsigned largest = 0;
  for (std::size_t i = 0; i < blocks; ++i) {
    largest = std::max(
        largest, Format::decode(bytes + i * Format::bytes, dst + 2 * i * Format::elements, tables, bypasses_cache));
  }
  return largest <= infinity;
}

template <class Format>
bool run(const std::byte* src, std::size_t blocks, std::byte* dst, const std::uint16_t* tables, bool bypasses_cache) {
  return in_default_environment([&] { return decode<Format>(src, blocks, dst, tables, bypasses_cache); });
}

}  // namespace

DecodeGgufFn find_decode_gguf(GgufBlock block) noexcept {
  return find_by_block<DecodeGgufFn>(block, []<GgufBlock each>() {
    if constexpr (is_low_bit(each) || each == GgufBlock::q6_k) {
      return DecodeGgufFn{};  // unpacked, then multiplied: of Q6_K no slower
    } else {
      return run<Format<each>>;
    }
  });
}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
