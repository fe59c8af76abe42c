#include "block/code_packing.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "kernels/ops.hpp"

namespace tensorcast::block {

namespace {

constexpr std::uint64_t each_of(std::uint64_t field, int bits) noexcept {
  std::uint64_t all = 0;
  for (int at = 0; at < 64; at += bits) all |= field << at;
  return all;
}

}  // namespace

void pack_stream(int bits, std::span<const std::uint8_t> codes, std::byte* packed) noexcept {
  const std::size_t count = codes.size();
  if (bits == 8) {
    std::memcpy(packed, codes.data(), count);
  } else if (bits == 4) {
    for (std::size_t i = 0; i < count / 2; ++i) {
      packed[i] = static_cast<std::byte>(codes[2 * i] | codes[2 * i + 1] << 4);
    }
    if (count % 2 != 0) packed[count / 2] = static_cast<std::byte>(codes[count - 1]);
  } else {
    kernels::ops_of(active_target()).pack_six_bits(reinterpret_cast<const std::byte*>(codes.data()), packed, count);
  }
}

void unpack_stream(int bits, const std::byte* packed, std::span<std::uint8_t> codes) noexcept {
  if (bits == 8) {
    std::memcpy(codes.data(), packed, codes.size());
    return;
  }
  // Eight codes take `width` bytes: halves of the bits move apart three times, until each code has a byte.
  const auto width = static_cast<std::size_t>(bits);
  const auto low_bits = [](std::size_t n) { return (std::uint64_t{1} << n) - 1; };
  const std::uint64_t fours = low_bits(4 * width), pairs = each_of(low_bits(2 * width), 32),
                      singles = each_of(low_bits(width), 16);
  const auto apart = [](std::uint64_t whole, std::uint64_t low, std::size_t size, std::size_t lane) {
    return (whole & low) | (whole & low << size) << (lane - size);
  };
  const std::byte* const end = packed + (codes.size() * width + 7) / 8;
  for (std::size_t done = 0; done < codes.size(); done += 8, packed += width) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, packed, end - packed < 8 ? static_cast<std::size_t>(end - packed) : 8);
    eight = apart(eight, fours, 4 * width, 32);
    eight = apart(eight, pairs, 2 * width, 16);
    eight = apart(eight, singles, width, 8);
    std::memcpy(&codes[done], &eight, std::min<std::size_t>(8, codes.size() - done));
  }
}

}  // namespace tensorcast::block
