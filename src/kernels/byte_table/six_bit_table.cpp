// SPDX-License-Identifier: Apache-2.0
#include "kernels/byte_table/six_bit_table.hpp"

#include <array>

#include "codec/reference_cast.hpp"

namespace tensorcast::kernels::byte_table {

const std::uint8_t* hub_codes(DType from) noexcept {
  static const auto tables = [] {
    std::array<std::array<std::uint8_t, 64>, dtype_table.size()> all = {};
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!has_six_bits(dtype_table[i])) continue;
      for (std::size_t code = 0; code < all[i].size(); ++code) {
        all[i][code] = static_cast<std::uint8_t>(codec::cast_code(dtype_table[i].id, code, six_bit_hub, {}).bits);
      }
    }
    return all;
  }();
  return tables[row_number(from)].data();
}

}  // namespace tensorcast::kernels::byte_table
