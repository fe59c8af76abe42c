// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/encode_by_word.hpp"

#include <array>
#include <utility>

#include "dtype/platform.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/simd/environment.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {
namespace {

template <DType from, DType to, class Encoder>
[[gnu::noinline]] void encode_blocks(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                                     const std::uint32_t* random) {
  constexpr std::size_t src_bytes = bytes_of<from>(kBlock), dst_bytes = bytes_of<to>(kBlock);
  const Encoder encoder(policy);
  alignas(64) std::uint32_t words[kBlock] = {};  // of the last numbers, and without random words, which nobody reads
  const auto encode = [&](const std::byte* numbers, std::byte* codes, const std::uint32_t* block_words) {
    if constexpr (requires { encoder.store_block(codes, load_u16x2(numbers)); }) {
      encoder.store_block(codes, load_u16x2(numbers));
    } else {
      encoder.store_block(codes, load_block<from>(numbers), block_words);
    }
  };
  for (; count >= kBlock; count -= kBlock, src += src_bytes, dst += dst_bytes) {
    encode(src, dst, random != nullptr ? random : words);
    if (random != nullptr) random += kBlock;
  }
  if (count == 0) return;
  alignas(64) std::byte rest[src_bytes] = {}, codes[dst_bytes < 64 ? 64 : dst_bytes];
  __builtin_memcpy(rest, src, bytes_of<from>(count));
  if (random != nullptr) __builtin_memcpy(words, random, count * sizeof words[0]);
  encode(rest, codes, words);
  __builtin_memcpy(dst, codes, (count * bits_of<to> + 7) / 8);
}

template <DType from, DType to, class Encoder>
void encode_each(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                 const std::uint32_t* random) {
  in_default_environment([&] { encode_blocks<from, to, Encoder>(src, dst, count, policy, random); });
}

template <DType from, DType to>
void encode_by_word(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                    const std::uint32_t* random) {
  if constexpr (row(to).family == Family::integer) {
    return encode_each<from, to, WordOfIntegerEncoder<to>>(src, dst, count, policy, random);
  } else if constexpr (in_lanes16<from, to>) {
    return encode_each<from, to, Lane16Encoder<from, to, true>>(src, dst, count, policy, random);
  } else {
    switch (policy.rounding) {
      case Rounding::automatic:
      case Rounding::nearest_even:
        return;  // not words of these encoders
      case Rounding::nearest_away:
        return encode_each<from, to, WordEncoder<to, WordKind::away>>(src, dst, count, policy, random);
      case Rounding::toward_zero:
        return encode_each<from, to, WordEncoder<to, WordKind::zero>>(src, dst, count, policy, random);
      case Rounding::toward_positive:
      case Rounding::toward_negative:
        return encode_each<from, to, WordEncoder<to, WordKind::directed>>(src, dst, count, policy, random);
      case Rounding::to_odd:
        return encode_each<from, to, WordEncoder<to, WordKind::odd>>(src, dst, count, policy, random);
      case Rounding::stochastic:
        if constexpr (from == DType::float32 && to != DType::float16) {
          return encode_each<from, to, WordEncoder<to, WordKind::stochastic>>(src, dst, count, policy, random);
        }
        return;  // not a word of the others
    }
  }
}

template <DType from, DType to>
constexpr EncodeByWordFn encoder_of() {
  constexpr DTypeRow type = row(to);
  const bool is_short_float = type.family == Family::floating && type.bits <= 8 && type.format.has_zero;
  const bool is_16_bit_float = to == DType::bfloat16 || (to == DType::float16 && has_directed_float16);
  // Others of 16 bits become float32 first: the gain would be small beside the code.
  const bool reads_source = from == DType::float32 ? is_short_float || type.family == Family::integer
                                                   : is_short_float && in_lanes16<from, to>;
  const bool has_one = reads_source || (is_16_bit_float && from != to);
  const bool may_read = from == DType::float32 || has_u16_shifts;
  if constexpr (has_one && may_read && TENSORCAST_HAS_SHORTCUTS != 0) return encode_by_word<from, to>;
  return nullptr;
}

using Encoders = std::array<EncodeByWordFn, dtype_table.size()>;

template <DType from, std::size_t... i>
constexpr Encoders encoders_of(std::index_sequence<i...>) {
  return {encoder_of<from, dtype_table[i].id>()...};
}

template <DType from>
constexpr Encoders encoders = encoders_of<from>(std::make_index_sequence<dtype_table.size()>());

}  // namespace

EncodeByWordFn find_encode_by_word(DType from, DType to) noexcept {
  switch (from) {
    case DType::float32:
      return encoders<DType::float32>[row_number(to)];
    case DType::float16:
      return encoders<DType::float16>[row_number(to)];
    case DType::bfloat16:
      return encoders<DType::bfloat16>[row_number(to)];
    default:
      return nullptr;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
