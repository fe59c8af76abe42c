// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/encode_by_word.hpp"

#include <array>
#include <utility>

#include "dtype/platform.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/simd/environment.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {
namespace {

template <DType to, class Encoder>
[[gnu::noinline]] void encode_blocks(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                                     const std::uint32_t* random) {
  constexpr std::size_t src_bytes = bytes_of<DType::float32>(kBlock), dst_bytes = bytes_of<to>(kBlock);
  const Encoder encoder(policy);
  alignas(64) std::uint32_t words[kBlock] = {};  // of the last numbers, and without random words, which nobody reads
  for (; count >= kBlock; count -= kBlock, src += src_bytes, dst += dst_bytes) {
    encoder.store_block(dst, load_block<DType::float32>(src), random != nullptr ? random : words);
    if (random != nullptr) random += kBlock;
  }
  if (count == 0) return;
  alignas(64) std::byte rest[src_bytes] = {}, codes[dst_bytes < 64 ? 64 : dst_bytes];
  __builtin_memcpy(rest, src, bytes_of<DType::float32>(count));
  if (random != nullptr) __builtin_memcpy(words, random, count * sizeof words[0]);
  encoder.store_block(codes, load_block<DType::float32>(rest), words);
  __builtin_memcpy(dst, codes, (count * bits_of<to> + 7) / 8);
}

template <DType to, class Encoder>
void encode_each(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                 const std::uint32_t* random) {
  in_default_environment([&] { encode_blocks<to, Encoder>(src, dst, count, policy, random); });
}

template <DType to>
void encode_by_word(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy,
                    const std::uint32_t* random) {
  if constexpr (row(to).family == Family::integer) {
    return encode_each<to, WordOfIntegerEncoder<to>>(src, dst, count, policy, random);
  } else {
    switch (policy.rounding) {
      case Rounding::automatic:
      case Rounding::nearest_even:
        return;  // not words of these encoders
      case Rounding::nearest_away:
        return encode_each<to, WordEncoder<to, WordKind::away>>(src, dst, count, policy, random);
      case Rounding::toward_zero:
        return encode_each<to, WordEncoder<to, WordKind::zero>>(src, dst, count, policy, random);
      case Rounding::toward_positive:
      case Rounding::toward_negative:
        return encode_each<to, WordEncoder<to, WordKind::directed>>(src, dst, count, policy, random);
      case Rounding::to_odd:
        return encode_each<to, WordEncoder<to, WordKind::odd>>(src, dst, count, policy, random);
      case Rounding::stochastic:
        return encode_each<to, WordEncoder<to, WordKind::stochastic>>(src, dst, count, policy, random);
    }
  }
}

template <DType to>
constexpr EncodeByWordFn encoder_of() {
  constexpr DTypeRow type = row(to);
  const bool is_short_float = type.family == Family::floating && type.bits <= 8 && type.format.has_zero;
  constexpr bool has_one = is_short_float || to == DType::bfloat16 || type.family == Family::integer;
  if constexpr (has_one && TENSORCAST_HAS_SHORTCUTS != 0) return encode_by_word<to>;
  return nullptr;
}

template <std::size_t... i>
constexpr std::array<EncodeByWordFn, dtype_table.size()> encoders_of(std::index_sequence<i...>) {
  return {encoder_of<dtype_table[i].id>()...};
}

constexpr std::array<EncodeByWordFn, dtype_table.size()> encoders =
    encoders_of(std::make_index_sequence<dtype_table.size()>());

}  // namespace

EncodeByWordFn find_encode_by_word(DType to) noexcept { return encoders[row_number(to)]; }

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
