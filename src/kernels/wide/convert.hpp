// The kernel of one pair: blocks, the tail, and the floating-point environment.
#pragma once

#include "kernels/kernel.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/wide/encode_integer.hpp"
#include "kernels/wide/encode_words.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// An encoder holds what the policy decides as constants, and stores blocks.
template <DType from, DType to>
auto make_encoder(const Policy& policy) {
  if constexpr (in_words<from, to>) {
    return WordEncoder<from, to>(policy);
  } else if constexpr (to == DType::boolean) {
    return BoolEncoder<from>(policy);
  } else if constexpr (to == DType::float64) {
    return Float64Encoder<from>(policy);
  } else if constexpr (to == DType::float4_e2m1fn && !is_float<from>) {
    return Float4OfIntegerEncoder<from>(policy);
  } else if constexpr (to == DType::float8_e8m0fnu && from == DType::float64) {
    return PowerOfTwoOfFloat64Encoder(policy);
  } else if constexpr (to == DType::float8_e8m0fnu && (from == DType::float16 || !is_float<from>)) {
    return PowerOfTwoEncoder<from>(policy);
  } else if constexpr (is_float<to>) {
    return EncoderThroughFloat32<from, to>(policy);
  } else if constexpr (is_float<from>) {
    return TruncatingEncoder<from, to>(policy);
  } else {
    return IntegerEncoder<from, to>(policy);
  }
}

template <DType from, DType to>
SIMD_INLINE auto load_block_for(const std::byte* src) {
  if constexpr (in_words<from, to>) {
    return load_words(src);
  } else {
    return load_block<from>(src);
  }
}

template <DType from, DType to>
[[gnu::noinline]] void convert(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  constexpr std::size_t src_block = bytes_of<from>(kBlock);
  constexpr std::size_t dst_block = bytes_of<to>(kBlock);
  const auto encoder = make_encoder<from, to>(policy);

  const bool in_place = src == dst;
  const bool has_block = count >= kBlock;

  // The tail is the end of one more block, which repeats results of the last; or of a zero-padded one of its own where
  // there is none, where sources are overwritten, and where blocks do not end at whole bytes. All go through the same
  // loop: one copy of the code.
  alignas(64) std::byte padded_src[src_block];
  alignas(64) std::byte padded_dst[dst_block < 64 ? 64 : dst_block];
  std::byte* tail = nullptr;
  std::size_t tail_bytes = 0;
  std::size_t blocks = count / kBlock;
  std::size_t rest = count % kBlock;
  for (;;) {
    for (; blocks != 0; --blocks) {
      encoder.store_block(dst, load_block_for<from, to>(src));
      src += src_block;
      dst += dst_block;
    }
    if (rest == 0) break;
    if (has_block && !in_place && rest * bits_of<to> % 8 == 0) {
      src -= bytes_of<from>(kBlock - rest);
      dst -= bytes_of<to>(kBlock - rest);
    } else {
      copy_and_pad<src_block>(padded_src, src, bytes_of<from>(rest));
      tail = dst;
      tail_bytes = (rest * bits_of<to> + 7) / 8;
      src = padded_src;
      dst = padded_dst;
    }
    blocks = 1;
    rest = 0;
  }
  if (tail != nullptr) copy_front<dst_block>(tail, padded_dst, tail_bytes);
}

template <KernelFn kernel>
void in_default_environment(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  const FloatEnvironment saved = float_environment();
  if (is_default(saved)) [[likely]]
    return kernel(src, dst, count, policy);
  set_default_environment();
  kernel(src, dst, count, policy);
  restore(saved);
}

// Integers of one width share their codes.
template <int bytes>
void copy_codes(const std::byte* src, std::byte* dst, std::size_t count, const Policy&) {
  if (src != dst && count != 0) __builtin_memcpy(dst, src, count * bytes);
}

template <DType from, DType to>
constexpr Kernel kernel_row() {
  constexpr bool integers = !is_float<from> && row(to).family == Family::integer;
  if constexpr (integers && bits_of<from> == bits_of<to>) {
    return {from, to, copy_codes<bits_of<from> / 8>, "copy"};
  } else if constexpr (integers || (to == DType::boolean && !is_float<from>)) {
    return {from, to, convert<from, to>, "fused"};
  } else {
    return {from, to, in_default_environment<convert<from, to>>, "fused"};
  }
}

// The rows of several sources to all other types.
template <DType... from>
struct RowTable {
  static constexpr std::size_t targets = number_type_count - 1;  // not the source itself
  Kernel rows[sizeof...(from) * targets] = {};
  int size = 0;

  constexpr RowTable() { (add_source<from>(), ...); }

 private:
  template <DType source, std::size_t index = 0>
  constexpr void add_source() {
    if constexpr (index < dtype_table.size()) {
      constexpr DType target = dtype_table[index].id;
      if constexpr (target != source && target != DType::string) rows[size++] = kernel_row<source, target>();
      add_source<source, index + 1>();
    }
  }
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
