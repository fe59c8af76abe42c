// SPDX-License-Identifier: Apache-2.0
#include "kernels/simd/six_bit_registers.hpp"

#include "kernels/per_target/functions.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// The last codes, if they do not fill a register, go through a padded buffer.

namespace {

template <class Function>
SIMD_INLINE void unpack_and(const std::byte* src, std::byte* dst, std::size_t count, Function function) {
  for (; count >= kRegisterBytes; count -= kRegisterBytes) {
    store(dst, function(load_six_bits(src)));
    src += kSixBitBytes;
    dst += kRegisterBytes;
  }
  if (count == 0) return;
  std::byte codes[kSixBitBytes] = {};
  std::byte results[kRegisterBytes];
  __builtin_memcpy(codes, src, (count * 6 + 7) / 8);
  store(results, function(load_six_bits(codes)));
  __builtin_memcpy(dst, results, count);
}

}  // namespace

void unpack_six_bits(const std::byte* src, std::byte* dst, std::size_t count) noexcept {
  unpack_and(src, dst, count, [](U8 codes) SIMD_INLINE_LAMBDA { return codes; });
}

void look_up_six_bits(const std::byte* src, std::byte* dst, std::size_t count, const std::uint8_t* table) noexcept {
  unpack_and(src, dst, count, SixBitTable(table));
}

void pack_six_bits(const std::byte* codes, std::byte* dst, std::size_t count) noexcept {
  for (; count >= kRegisterBytes; count -= kRegisterBytes) {
    store_six_bits(dst, load<U8>(codes));
    codes += kRegisterBytes;
    dst += kSixBitBytes;
  }
  if (count == 0) return;
  std::byte rest[kRegisterBytes] = {};
  std::byte packed[kSixBitBytes];
  __builtin_memcpy(rest, codes, count);
  store_six_bits(packed, load<U8>(rest));
  __builtin_memcpy(dst, packed, (count * 6 + 7) / 8);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
