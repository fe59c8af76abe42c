// SPDX-License-Identifier: Apache-2.0
// Layouts as in ggml-quants.c and the gguf package; each product and each sum is one float32 operation there.
#include <bit>
#include <cstring>

#include "kernels/per_target/functions.hpp"
#include "kernels/per_target/gguf_blocks.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/short_vectors.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

// Where the numbers of one block go.
struct Runs {
  std::int8_t* q;
  float* scale;
  float* bias;
  std::uint8_t* scale_code;
};

// Vectors of bytes, as a compiler does not know that `q` and the blocks are disjoint.
template <int bytes>
struct Vector {
  typedef std::uint8_t Type __attribute__((vector_size(bytes)));
};
template <int bytes>
using VectorOf = typename Vector<bytes>::Type;

template <int bytes>
SIMD_INLINE VectorOf<bytes> read_vector(const void* src) {
  return load<VectorOf<bytes>>(static_cast<const std::byte*>(src));
}
template <class V>
SIMD_INLINE void write_vector(std::int8_t* q, V numbers) {
  store(reinterpret_cast<std::byte*>(q), numbers);
}

// `count` elements less `zero`: low nibbles are the first half, high ones the second.
template <int count, std::uint8_t zero = 0>
SIMD_INLINE void split_nibbles(Bytes bytes, std::int8_t* q) {
  const auto both = read_vector<count / 2>(bytes);
  write_vector(q, (both & 15) - zero);
  write_vector(q + count / 2, (both >> 4) - zero);
}

// 32 elements: low nibbles are indices of the first half, high ones of the second.
template <GgufElements elements>
SIMD_INLINE void look_up_nibbles(Bytes bytes, std::int8_t* q, const std::int8_t* numbers) {
  if constexpr (elements == GgufElements::codes) return split_nibbles<32>(bytes, q);
  const auto both = read_vector<16>(bytes);
  const Bytes16 entries = read_vector<16>(numbers);
  write_vector(q, look_up(entries, both & 15));
  write_vector(q + 16, look_up(entries, both >> 4));
}

// Nibbles with a fifth bit each, bit i that of element i, less `zero`.
template <std::uint8_t zero>
SIMD_INLINE void split_fifth_bits(Bytes nibbles, Bytes bits, std::int8_t* q) {
  const auto both = read_vector<16>(nibbles);
  write_vector(q, added_where_set(both & 15, bits, 16) - zero);
  write_vector(q + 16, added_where_set(both >> 4, bits + 2, 16) - zero);
}

template <GgufBlock block, GgufElements form = GgufElements::numbers>
struct Format;

template <>
struct Format<GgufBlock::q4_0> {
  static constexpr int elements = 32, bytes = 18, runs = 1;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    *to.scale = half_at(b);
    split_nibbles<32, 8>(b + 2, to.q);
  }
};

template <>
struct Format<GgufBlock::q4_1> {
  static constexpr int elements = 32, bytes = 20, runs = 1;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    *to.scale = half_at(b);
    *to.bias = half_at(b + 2);
    split_nibbles<32>(b + 4, to.q);
  }
};

template <>
struct Format<GgufBlock::q5_0> {
  static constexpr int elements = 32, bytes = 22, runs = 1;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    *to.scale = half_at(b);
    split_fifth_bits<16>(b + 6, b + 2, to.q);
  }
};

template <>
struct Format<GgufBlock::q5_1> {
  static constexpr int elements = 32, bytes = 24, runs = 1;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    *to.scale = half_at(b);
    *to.bias = half_at(b + 2);
    split_fifth_bits<0>(b + 8, b + 4, to.q);
  }
};

template <>
struct Format<GgufBlock::q8_0> {
  static constexpr int elements = 32, bytes = 34, runs = 1;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    *to.scale = half_at(b);
    std::memcpy(to.q, b + 2, 32);
  }
};

using V32 = VectorOf<32>;

// Gives each of `count` bytes, 8 or 16, a float.
template <int count, class Scale>
SIMD_INLINE void scale_bytes(VectorOf<16> bytes, float* to, const Scale& scale) {
  alignas(16) std::byte each[16];  // one store: loads wait for a store that is narrower than they are
  store(each, bytes);
  for (int i = 0; i < count; i += kLanes) {
    const F32 scaled = scale(load_uint8(each + i));
    std::memcpy(to + i, &scaled, sizeof(float) * (kLanes < count ? kLanes : count));
  }
}

// Calls put(i, two bits of each element from i on): element 128 h + 32 s + l has those of byte 32 h + l, from bit 2 s
// on.
template <class Put>
SIMD_INLINE void two_bits(Bytes b, const Put& put) {
  for (int half = 0; half < 2; ++half) {
    const V32 bits = read_vector<32>(b + 32 * half);
    put(128 * half, bits & 3);
    put(128 * half + 32, bits >> 2 & 3);
    put(128 * half + 64, bits >> 4 & 3);
    put(128 * half + 96, bits >> 6);
  }
}

// Calls put(i, a bit of each element from i on): element 32 p + l has bit p of byte l.
template <class Put>
SIMD_INLINE void one_bit(Bytes b, const Put& put) {
  const V32 bits = read_vector<32>(b);
#pragma GCC unroll 8
  for (int part = 0; part < 8; ++part) put(32 * part, bits >> part & 1);
}

template <>
struct Format<GgufBlock::q2_k> {
  static constexpr int elements = 256, bytes = 84, runs = 16;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    const float d = half_at(b + 80), least = half_at(b + 82);
    scale_bytes<16>(read_vector<16>(b), to.scale,
                    [&](I32 both) SIMD_INLINE_LAMBDA { return to_f32<true>(both & 15) * d; });
    scale_bytes<16>(read_vector<16>(b), to.bias,
                    [&](I32 both) SIMD_INLINE_LAMBDA { return -(to_f32<true>(both >> 4) * least); });
    two_bits(b + 16, [&](int i, V32 bits) SIMD_INLINE_LAMBDA { write_vector(to.q + i, bits); });
  }
};

template <>
struct Format<GgufBlock::q3_k> {
  static constexpr int elements = 256, bytes = 110, runs = 16;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    const float d = half_at(b + 108);
    scale_bytes<16>((VectorOf<16>)q3_k_scales(b + 96), to.scale,
                    [&](I32 scale) SIMD_INLINE_LAMBDA { return to_f32<true>(scale - 32) * d; });
    one_bit(b, [&](int i, V32 bit) SIMD_INLINE_LAMBDA { write_vector(to.q + i, (bit << 2) - 4); });
    two_bits(b + 32,
             [&](int i, V32 bits) SIMD_INLINE_LAMBDA { write_vector(to.q + i, read_vector<32>(to.q + i) + bits); });
  }
};

SIMD_INLINE void read_k_header(Bytes b, Runs to) {
  const float d = half_at(b), least = half_at(b + 2);
  const Words2 both = scales_and_minima(b + 4);
  scale_bytes<8>((VectorOf<16>)both, to.scale, [&](I32 scale) SIMD_INLINE_LAMBDA { return to_f32<true>(scale) * d; });
  scale_bytes<8>((VectorOf<16>)Words2{both[1], 0}, to.bias,
                 [&](I32 minimum) SIMD_INLINE_LAMBDA { return -(to_f32<true>(minimum) * least); });
}

template <>
struct Format<GgufBlock::q4_k> {
  static constexpr int elements = 256, bytes = 144, runs = 8;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    read_k_header(b, to);
    for (int part = 0; part < 4; ++part) split_nibbles<64>(b + 16 + 32 * part, to.q + 64 * part);
  }
};

template <>
struct Format<GgufBlock::q5_k> {
  static constexpr int elements = 256, bytes = 176, runs = 8;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    read_k_header(b, to);
    for (int part = 0; part < 4; ++part) split_nibbles<64>(b + 48 + 32 * part, to.q + 64 * part);
    one_bit(b + 16,
            [&](int i, V32 bit) SIMD_INLINE_LAMBDA { write_vector(to.q + i, read_vector<32>(to.q + i) | bit << 4); });
  }
};

template <>
struct Format<GgufBlock::q6_k> {
  static constexpr int elements = 256, bytes = 210, runs = 16;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    const float d = half_at(b + 208);
    scale_bytes<16>(read_vector<16>(b + 192), to.scale,
                    [&](I32 code) SIMD_INLINE_LAMBDA { return to_f32<true>(code << 24 >> 24) * d; });
    for (int half = 0; half < 2; ++half) split_nibbles<128>(b + 64 * half, to.q + 128 * half);
    two_bits(b + 128, [&](int i, V32 bits)
                          SIMD_INLINE_LAMBDA { write_vector(to.q + i, (read_vector<32>(to.q + i) | bits << 4) - 32); });
  }
};

template <>
struct Format<GgufBlock::iq4_nl> {
  static constexpr int elements = 32, bytes = 18, runs = 1;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    *to.scale = half_at(b);
    look_up_nibbles<GgufElements::numbers>(b + 2, to.q, iq4_numbers);
  }
};

template <>
struct Format<GgufBlock::iq4_xs> {
  static constexpr int elements = 256, bytes = 136, runs = 8;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    const float d = half_at(b);
    const int high = b[2] | b[3] << 8;
    for (int i = 0; i < 8; ++i) {
      const int low = b[4 + i / 2] >> (i % 2 * 4) & 15;
      to.scale[i] = d * static_cast<float>((low | (high >> (2 * i) & 3) << 4) - 32);
    }
    for (int i = 0; i < 8; ++i) look_up_nibbles<GgufElements::numbers>(b + 8 + 16 * i, to.q + 32 * i, iq4_numbers);
  }
};

template <GgufElements form>
struct Format<GgufBlock::mxfp4, form> {
  static constexpr int elements = 32, bytes = 17, runs = 1;
  SIMD_INLINE static void read(Bytes b, Runs to) {
    // 2^(exponent - 128): half of the scale of MX, as the numbers are doubled. All bytes are numbers.
    if constexpr (form == GgufElements::numbers) {
      *to.scale = std::bit_cast<float>(b[0] < 2 ? 0x00200000u << b[0] : (b[0] - 1u) << 23);
    } else {
      *to.scale_code = b[0];
    }
    look_up_nibbles<form>(b + 1, to.q, doubled_e2m1);
  }
};

template <GgufElements form>
struct Format<GgufBlock::nvfp4, form> {
  static constexpr int elements = 64, bytes = 36, runs = 4;
  // Half of an unsigned e4m3, in which 0x7f is 0 and the sign is not read.
  SIMD_INLINE static float scale(unsigned code) {
    const unsigned magnitude = code & 0x7f;
    if (code == 0x7f) return 0.0F;
    if (magnitude < 8) return static_cast<float>(magnitude) * 0x1p-10F;
    return std::bit_cast<float>((magnitude << 20) + (119u << 23));
  }
  SIMD_INLINE static void read(Bytes b, Runs to) {
    if constexpr (form == GgufElements::numbers) {
      for (int i = 0; i < 4; ++i) to.scale[i] = scale(b[i]);
    } else {
      std::memcpy(to.scale_code, b, runs);
    }
    // The nibbles of 8 bytes are 16 elements.
    typedef std::uint64_t Halves __attribute__((vector_size(16)));
    for (int i = 0; i < 2; ++i) {
      const auto both = read_vector<16>(b + 4 + 16 * i);
      const auto numbers = [](VectorOf<16> nibbles) SIMD_INLINE_LAMBDA {
        if constexpr (form == GgufElements::numbers) nibbles = look_up(read_vector<16>(doubled_e2m1), nibbles);
        return (Halves)nibbles;
      };
      const Halves low = numbers(both & 15), high = numbers(both >> 4);
      write_vector(to.q + 32 * i, Halves{low[0], high[0]});
      write_vector(to.q + 32 * i + 16, Halves{low[1], high[1]});
    }
  }
};

template <class Format>
[[gnu::noinline]] void unpack(const std::byte* src, std::size_t blocks, GgufRuns& runs) {
  const auto* const bytes = reinterpret_cast<Bytes>(src);
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::size_t run = i * Format::runs;
    Format::read(bytes + i * Format::bytes,
                 {runs.q + i * Format::elements, runs.scales + run, runs.biases + run, runs.scale_codes + run});
  }
}

template <class Format>
void run(const std::byte* src, std::size_t blocks, GgufRuns& runs) {
  in_default_environment([&] { unpack<Format>(src, blocks, runs); });
}

template <GgufBlock block>
void run_low_bits(const std::byte* src, std::size_t blocks, GgufRuns& runs) {
  in_default_environment([&] { unpack_low_bits(block, src, blocks, runs); });
}

}  // namespace

UnpackGgufFn find_unpack_gguf(GgufBlock block, GgufElements elements) noexcept {
  if (elements == GgufElements::codes) {
#if TENSORCAST_HAS_BYTE_LOOKUP
    constexpr auto codes = GgufElements::codes;
    if (block == GgufBlock::mxfp4) return run<Format<GgufBlock::mxfp4, codes>>;
    if (block == GgufBlock::nvfp4) return run<Format<GgufBlock::nvfp4, codes>>;
#endif
    return nullptr;
  }
  return find_by_block<UnpackGgufFn>(block, []<GgufBlock each>() {
    if constexpr (is_low_bit(each)) {
      return run_low_bits<each>;
    } else {
      return run<Format<each>>;
    }
  });
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
