// SPDX-License-Identifier: Apache-2.0
#include "quantized/layer/hadamard.hpp"

#include <algorithm>
#include <vector>

#include "dtype/try.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::quantized {

Result<void> rotate_groups(DType dtype, DType compute, std::int64_t size, std::span<std::byte> numbers) {
  constexpr std::size_t usual = 4096;  // in the cache
  const std::size_t group = static_cast<std::size_t>(size), step = std::max(usual, group) / group * group;
  const std::size_t item = storage_bytes(dtype, 1), count = numbers.size() / item;
  std::vector<double> sums(std::min(step, count));
  std::vector<std::byte> rounded(storage_bytes(compute, sums.size()));
  const double norm = group_norm(size);
  for (std::size_t first = 0; first < count; first += step) {
    const std::size_t here = std::min(step, count - first);
    const std::int64_t shape[] = {static_cast<std::int64_t>(here)};
    const std::span<std::byte> part = numbers.subspan(first * item, here * item);
    const std::span<std::byte> narrow = std::span(rounded).first(storage_bytes(compute, here));
    const std::span<double> wide = std::span(sums).first(here);
    const auto convert = [&](DType from, std::span<const std::byte> source, DType to, std::span<std::byte> target) {
      return cast({from, shape, source}, {to, shape, target}, {}, {.threads = 1});
    };
    TRY(convert(dtype, part, compute, narrow));
    TRY(convert(compute, narrow, DType::float64, std::as_writable_bytes(wide)));
    sum_groups(wide, group);
    for (double& sum : wide) sum *= norm;
    TRY(convert(DType::float64, std::as_bytes(wide), compute, narrow));
    TRY(convert(compute, narrow, dtype, part));
  }
  return {};
}

}  // namespace tensorcast::quantized
