// SPDX-License-Identifier: Apache-2.0
// A part of an array, some neighbouring indices of each dimension, as runs of elements that are neighbours in both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "dtype/try.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/tensor_file.hpp"

namespace tensorcast::formats {

// Errors: invalid_argument: more ranges than dimensions.
[[nodiscard]] Result<void> check_range_count(std::size_t ranges, std::size_t dimensions);

class ArrayPart {
 public:
  // `ranges` are those of the first dimensions; the others are whole. Errors: invalid_argument: more ranges than
  // dimensions, or one that is not inside its dimension.
  [[nodiscard]] static Result<ArrayPart> create(std::span<const std::int64_t> shape,
                                                std::span<const IndexRange> ranges);
  // Ranges of all dimensions, which are inside it.
  ArrayPart(std::span<const std::int64_t> shape, std::vector<IndexRange> ranges);

  [[nodiscard]] const std::vector<IndexRange>& ranges() const noexcept { return ranges_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }  // elements
  [[nodiscard]] std::vector<std::int64_t> shape() const;

  // Calls visit(element of the array, element of the part, count) for the runs of the part's elements
  // [first, first + count), in order, until one is an error.
  template <class Visit>
  [[nodiscard]] Result<void> visit(std::uint64_t first, std::uint64_t count, const Visit& visit_run) const {
    for (const std::uint64_t end = first + count; first != end;) {
      const std::uint64_t n = std::min(run_ - first % run_, end - first);
      TRY(visit_run(place_of(first), first, n));
      first += n;
    }
    return {};
  }
  template <class Visit>
  [[nodiscard]] Result<void> visit(const Visit& visit_run) const {
    return visit(0, count_, visit_run);
  }

 private:
  // Where an element of the part is in the array.
  [[nodiscard]] std::uint64_t place_of(std::uint64_t element) const noexcept;

  struct Outer {
    std::uint64_t size;    // of the part
    std::uint64_t stride;  // in the array
  };
  std::vector<IndexRange> ranges_;
  std::uint64_t count_ = 1;
  std::uint64_t run_ = 1;     // elements that are neighbours in the array, too
  std::uint64_t first_ = 0;   // the part's first element in the array
  std::vector<Outer> outer_;  // dimensions of runs, the last one first
};

// Copies elements under 8 bits that need not begin at whole bytes. The bytes of `dst` keep their other elements.
void copy_packed(int bits, const std::byte* src, std::uint64_t src_first, std::byte* dst, std::uint64_t dst_first,
                 std::uint64_t count) noexcept;

}  // namespace tensorcast::formats
