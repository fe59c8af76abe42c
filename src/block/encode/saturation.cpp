// SPDX-License-Identifier: Apache-2.0
#include "block/encode/saturation.hpp"

#include <cmath>
#include <vector>

#include "block/format/code_packing.hpp"

namespace tensorcast::block {
namespace {

// The codes of the largest and of the lowest number, as they are stored.
struct EndCodes {
  std::uint8_t highest = 0, lowest = 0;
};

EndCodes end_codes(const BlockCoding& coding) {
  const unsigned sign = 1u << (coding.bits - 1);
  const auto ends = [](unsigned highest, unsigned lowest) {
    return EndCodes{static_cast<std::uint8_t>(highest), static_cast<std::uint8_t>(lowest)};
  };
  switch (coding.element) {
    case DType::int8:
      return ends(sign - 1, sign);
    case DType::uint8:  // stored with half of the range added
      return ends(2 * sign - 1, 0);
    case DType::float8_e4m3fn:
      return ends(0x7e, 0xfe);
    case DType::float8_e5m2:
      return ends(0x7b, 0xfb);
    default:  // no infinity and no NaN
      return ends(sign - 1, 2 * sign - 1);
  }
}

}  // namespace

std::uint64_t count_saturated(const BlockCoding& coding, std::span<const std::byte> codes, std::size_t columns,
                              std::span<const float> numbers, std::span<const float> decoded) {
  if (columns == 0 || numbers.empty()) return 0;
  const EndCodes ends = end_codes(coding);
  const std::size_t rows = numbers.size() / columns, row_bytes = codes.size() / rows;
  std::vector<std::uint8_t> row(columns);
  std::uint64_t saturated = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    unpack_stream(coding.bits, codes.data() + i * row_bytes, row);
    const float* const x = numbers.data() + i * columns;
    const float* const y = decoded.data() + i * columns;
    std::uint32_t count = 0;  // without branches, which vectors need
    for (std::size_t j = 0; j < columns; ++j) {
      const unsigned at_end =
          static_cast<unsigned>(row[j] == ends.highest) | static_cast<unsigned>(row[j] == ends.lowest);
      count += at_end & static_cast<unsigned>(std::fabs(x[j]) > std::fabs(y[j]));
    }
    saturated += count;
  }
  return saturated;
}

}  // namespace tensorcast::block
