// SPDX-License-Identifier: Apache-2.0
#include "block/gguf/gguf_encode.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "block/gguf/gguf_search.hpp"
#include "block/recipe/float_steps.hpp"
#include "block/recipe/run_encoder.hpp"
#include "block/recipe/scale_rule_mx.hpp"
#include "block/recipe/scale_rule_nv.hpp"
#include "dtype/lookup.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/element.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t count = 32;  // numbers of a block

// The low byte of a conversion to int, as x86 does it: numbers out of int's range give 0.
int low_byte(float x) noexcept {
  if (!(x > -2147483648.0f && x < 2147483648.0f)) return 0;
  return static_cast<std::int8_t>(static_cast<int>(x));
}

// 1 / d, or 0.
float inverse(float d) noexcept { return d != 0.0f ? 1.0f / d : 0.0f; }

struct Range {
  float low = std::numeric_limits<float>::max(), high = -low;
};
Range range_of(const float* x) noexcept {
  Range range;
  for (std::size_t i = 0; i < count; ++i) {
    if (x[i] < range.low) range.low = x[i];
    if (x[i] > range.high) range.high = x[i];
  }
  return range;
}

using Codes = std::array<std::uint8_t, count>;

// Low nibbles are the first half of the codes, high nibbles the second.
void put_nibbles(const std::uint8_t* codes, std::size_t codes_count, std::uint8_t* bytes) noexcept {
  for (std::size_t i = 0; i < codes_count / 2; ++i) {
    bytes[i] = static_cast<std::uint8_t>((codes[i] & 15) | (codes[i + codes_count / 2] & 15) << 4);
  }
}
void put_fifth_bits(const Codes& codes, std::uint8_t* bytes) noexcept {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < count; ++i) word |= static_cast<std::uint32_t>(codes[i] >> 4 & 1) << i;
  std::memcpy(bytes, &word, sizeof(word));
}

template <int levels>
Codes symmetric_codes(const float* x, std::uint8_t* bytes) noexcept {
  const float d = first_of_largest({x, count}) / static_cast<float>(-levels / 2);
  const float id = inverse(d);
  put_half(d, bytes);
  Codes codes;
  for (std::size_t i = 0; i < count; ++i) {
    const int q = low_byte(x[i] * id + (static_cast<float>(levels / 2) + 0.5f));
    codes[i] = static_cast<std::uint8_t>(std::min(levels - 1, q));
  }
  return codes;
}

template <int levels>
Codes offset_codes(const float* x, std::uint8_t* bytes) noexcept {
  const Range range = range_of(x);
  const float d = (range.high - range.low) / static_cast<float>(levels - 1);
  const float id = inverse(d);
  put_half(d, bytes);
  put_half(range.low, bytes + 2);
  Codes codes;
  for (std::size_t i = 0; i < count; ++i) {
    const int q = low_byte((x[i] - range.low) * id + 0.5f);
    codes[i] = static_cast<std::uint8_t>(levels == 16 ? std::min(levels - 1, q) : q);
  }
  return codes;
}

void encode_q4_0(const float* x, const float* /*importance*/, std::uint8_t* bytes) noexcept {
  put_nibbles(symmetric_codes<16>(x, bytes).data(), count, bytes + 2);
}
void encode_q4_1(const float* x, const float* /*importance*/, std::uint8_t* bytes) noexcept {
  put_nibbles(offset_codes<16>(x, bytes).data(), count, bytes + 4);
}
void encode_q5_0(const float* x, const float* /*importance*/, std::uint8_t* bytes) noexcept {
  const Codes codes = symmetric_codes<32>(x, bytes);
  put_fifth_bits(codes, bytes + 2);
  put_nibbles(codes.data(), count, bytes + 6);
}
void encode_q5_1(const float* x, const float* /*importance*/, std::uint8_t* bytes) noexcept {
  const Codes codes = offset_codes<32>(x, bytes);
  put_fifth_bits(codes, bytes + 4);
  put_nibbles(codes.data(), count, bytes + 8);
}

void encode_q8_0(const float* x, const float* /*importance*/, std::uint8_t* bytes) noexcept {
  float largest = 0.0f;
  for (std::size_t i = 0; i < count; ++i) largest = largest > magnitude(x[i]) ? largest : magnitude(x[i]);
  const float d = largest / 127.0f;
  const float id = inverse(d);
  put_half(d, bytes);
  for (std::size_t i = 0; i < count; ++i) {
    // Half away from zero: the fraction is exact, as the product is below 2^23.
    const float product = x[i] * id;
    const int whole = low_byte(product);
    const float fraction = product - static_cast<float>(whole);
    const int up = fraction >= 0.5f ? 1 : fraction <= -0.5f ? -1 : 0;
    bytes[2 + i] = static_cast<std::uint8_t>(whole + (is_finite(product) ? up : 0));
  }
}

// Float4 codes of a run of numbers under one scale.
void put_float4(const float* x, std::size_t run, const BlockScale& scale, std::uint8_t* bytes) noexcept {
  Codes codes{};
  if (!scale.clears) encode(searched_float4(Search::numbers), DType::float32, scale.operand, {x, run}, codes);
  put_nibbles(codes.data(), run, bytes);
}

Extent extent_of(const float* x, std::size_t run) noexcept {
  Extent extent;
  for (std::size_t i = 0; i < run; ++i) extent.largest = std::max(extent.largest, magnitude(x[i]));
  return extent;
}

void encode_mxfp4(const float* x, const float* /*importance*/, std::uint8_t* bytes) noexcept {
  const BlockScale scale = mx::ggml(extent_of(x, count), {});
  bytes[0] = scale.code;
  put_float4(x, count, scale, bytes + 1);
}

void encode_nvfp4(const float* x, const float* /*importance*/, std::uint8_t* bytes) noexcept {
  constexpr std::size_t run = 16, runs = 4;
  for (std::size_t i = 0; i < runs; ++i) {
    const BlockScale scale = nv::ggml(extent_of(x + i * run, run), {});
    bytes[i] = scale.code;
    put_float4(x + i * run, run, scale, bytes + runs + i * run / 2);
  }
}

using EncodeBlock = void (*)(const float* numbers, const float* importance, std::uint8_t* block) noexcept;

// A format's blocks one by one: the definition.
template <GgufBlock format, EncodeBlock encode_block>
void encode_each(const float* numbers, const float* importance, std::size_t blocks, std::uint8_t* bytes) noexcept {
  const GgufBlockSize size = block_size(format);
  for (std::size_t i = 0; i < blocks; ++i) {
    const float* const of_block = importance == nullptr ? nullptr : importance + i * size.elements;
    encode_block(numbers + i * size.elements, of_block, bytes + i * size.bytes);
  }
}

// By the kernels of this CPU, and one by one where they stop.
template <GgufBlock format, EncodeBlock encode_block>
void encode_many(const float* numbers, const float* /*importance*/, std::size_t blocks, std::uint8_t* bytes) noexcept {
  const GgufBlockSize size = block_size(format);
  const kernels::EncodeGgufFn encode = kernels::ops_of(active_target()).find_encode_gguf(format);
  for (std::size_t done = 0; done < blocks;) {
    done += encode(numbers + done * count, blocks - done, reinterpret_cast<std::byte*>(bytes + done * size.bytes));
    if (done == blocks) return;
    encode_block(numbers + done * count, nullptr, bytes + done * size.bytes);
    ++done;
  }
}

struct Encoders {
  GgufEncode definition = nullptr, fastest = nullptr;
};

template <GgufBlock format, EncodeBlock encode_block>
constexpr Encoders by_kernels = {encode_each<format, encode_block>, encode_many<format, encode_block>};

constexpr Encoders alone(GgufEncode encode) noexcept { return {encode, encode}; }
template <GgufBlock format, EncodeBlock encode_block>
constexpr Encoders one_by_one = alone(encode_each<format, encode_block>);

struct EncoderRow {
  GgufBlock format;
  Encoders encoders;
};
constexpr EncoderRow encoder_rows[] = {{GgufBlock::q4_0, by_kernels<GgufBlock::q4_0, encode_q4_0>},
                                       {GgufBlock::q4_1, by_kernels<GgufBlock::q4_1, encode_q4_1>},
                                       {GgufBlock::q5_0, by_kernels<GgufBlock::q5_0, encode_q5_0>},
                                       {GgufBlock::q5_1, by_kernels<GgufBlock::q5_1, encode_q5_1>},
                                       {GgufBlock::q8_0, by_kernels<GgufBlock::q8_0, encode_q8_0>},
                                       {GgufBlock::q2_k, one_by_one<GgufBlock::q2_k, encode_q2_k>},
                                       {GgufBlock::q3_k, one_by_one<GgufBlock::q3_k, encode_q3_k>},
                                       {GgufBlock::q4_k, alone(encode_q4_k)},
                                       {GgufBlock::q5_k, alone(encode_q5_k)},
                                       {GgufBlock::q6_k, one_by_one<GgufBlock::q6_k, encode_q6_k>},
                                       {GgufBlock::iq4_nl, one_by_one<GgufBlock::iq4_nl, encode_iq4_nl>},
                                       {GgufBlock::iq4_xs, one_by_one<GgufBlock::iq4_xs, encode_iq4_xs>},
                                       {GgufBlock::mxfp4, one_by_one<GgufBlock::mxfp4, encode_mxfp4>},
                                       {GgufBlock::nvfp4, one_by_one<GgufBlock::nvfp4, encode_nvfp4>}};

Encoders encoders_of(GgufBlock format) noexcept {
  const EncoderRow* const found = find_row(encoder_rows, &EncoderRow::format, format);
  return found == nullptr ? Encoders{} : found->encoders;
}

}  // namespace

void put_half(float number, std::uint8_t* bytes) noexcept {
  constexpr unsigned nan = 0x7e00;
  const unsigned half = is_nan(number) ? (bits_of(number) >> 16 & 0x8000) | nan : float16(number).bits();
  bytes[0] = static_cast<std::uint8_t>(half);
  bytes[1] = static_cast<std::uint8_t>(half >> 8);
}

float half_number(float number) noexcept { return round_to_float16(number); }

GgufEncode gguf_encoder(GgufBlock format) noexcept { return encoders_of(format).fastest; }

GgufEncode gguf_definition(GgufBlock format) noexcept { return encoders_of(format).definition; }

bool weighs_importance(GgufBlock format) noexcept { return format >= GgufBlock::q2_k && format <= GgufBlock::iq4_xs; }

}  // namespace tensorcast::block
