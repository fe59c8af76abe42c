// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/layer.hpp"

#include "dtype/ceil_div.hpp"

namespace tensorcast::quantized {

std::uint64_t BlockWeight::columns() const noexcept {
  return shape.empty() ? 1 : static_cast<std::uint64_t>(shape.back());
}

std::uint64_t BlockWeight::rows() const noexcept {
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= static_cast<std::uint64_t>(shape[i]);
  return rows;
}

std::uint64_t BlockWeight::matrices() const noexcept {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) count *= static_cast<std::uint64_t>(shape[i]);
  return count;
}

std::uint64_t BlockWeight::grid_columns() const noexcept {
  return block_columns == 0 ? 1 : ceil_div(columns(), static_cast<std::uint64_t>(block_columns));
}

std::uint64_t BlockWeight::grid_rows() const noexcept {
  if (block_rows == 0) return 1;
  const std::uint64_t outputs = shape.size() < 2 ? 1 : static_cast<std::uint64_t>(shape[shape.size() - 2]);
  return matrices() * ceil_div(outputs, static_cast<std::uint64_t>(block_rows));
}

}  // namespace tensorcast::quantized
