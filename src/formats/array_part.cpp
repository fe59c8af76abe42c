// SPDX-License-Identifier: Apache-2.0
#include "formats/array_part.hpp"

#include <fmt/format.h>

#include <utility>

#include "dtype/errors.hpp"

namespace tensorcast::formats {

Result<void> check_range_count(std::size_t ranges, std::size_t dimensions) {
  if (ranges <= dimensions) return {};
  return invalid(fmt::format("{} ranges do not fit a tensor of {} dimensions", ranges, dimensions));
}

Result<ArrayPart> ArrayPart::create(std::span<const std::int64_t> shape, std::span<const IndexRange> ranges) {
  TRY(check_range_count(ranges.size(), shape.size()));
  std::vector<IndexRange> all(ranges.begin(), ranges.end());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(shape[i]);
    if (i == all.size()) all.push_back({0, size});
    if (all[i].begin <= all[i].end && all[i].end <= size) continue;
    return invalid(
        fmt::format("indices {} to {} are not inside dimension {}, which has {}", all[i].begin, all[i].end, i, size));
  }
  return ArrayPart(shape, std::move(all));
}

ArrayPart::ArrayPart(std::span<const std::int64_t> shape, std::vector<IndexRange> ranges) : ranges_(std::move(ranges)) {
  std::uint64_t stride = 1;
  bool whole = true;  // all dimensions so far, so that the next one continues the run
  for (std::size_t i = shape.size(); i-- > 0;) {
    const std::uint64_t size = ranges_[i].end - ranges_[i].begin;
    if (whole) {
      run_ *= size;
    } else {
      outer_.push_back({size, stride});
    }
    whole = whole && size == static_cast<std::uint64_t>(shape[i]);
    first_ += ranges_[i].begin * stride;
    stride *= static_cast<std::uint64_t>(shape[i]);
    count_ *= size;
  }
}

std::vector<std::int64_t> ArrayPart::shape() const {
  std::vector<std::int64_t> sizes;
  for (const IndexRange& range : ranges_) sizes.push_back(static_cast<std::int64_t>(range.end - range.begin));
  return sizes;
}

std::uint64_t ArrayPart::place_of(std::uint64_t element) const noexcept {
  std::uint64_t place = first_ + element % run_, run = element / run_;
  for (const Outer& outer : outer_) {
    place += run % outer.size * outer.stride;
    run /= outer.size;
  }
  return place;
}

void copy_packed(int bits, const std::byte* src, std::uint64_t src_first, std::byte* dst, std::uint64_t dst_first,
                 std::uint64_t count) noexcept {
  const auto width = static_cast<std::uint64_t>(bits);
  for (std::uint64_t bit = 0; bit != count * width; ++bit) {  // few elements are so narrow, and fewer are cut
    const std::uint64_t from = src_first * width + bit, to = dst_first * width + bit;
    const std::byte mask = std::byte{1} << to % 8;
    const bool is_set = (src[from / 8] >> from % 8 & std::byte{1}) != std::byte{};
    dst[to / 8] = is_set ? dst[to / 8] | mask : dst[to / 8] & ~mask;
  }
}

}  // namespace tensorcast::formats
